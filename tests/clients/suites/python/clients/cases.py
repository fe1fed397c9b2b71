"""Cases of one client: functions that raise nothing if the client got the right answer.

    cases = Cases("psycopg", psycopg.__version__)

    @cases.case
    def a_name() -> None: ...

    if __name__ == "__main__":
        cases.run()

INVARIANTS
  C1  each case is reported once, on the standard output; chatter goes to the standard error.
  C2  a case that does not end is reported after SECONDS_MAX: by an alarm, or, if the interpreter is
      stuck in a library, by a thread that starts the program again with the cases that are left.
"""

import contextlib
import inspect
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

SECONDS_MAX = 30
STUCK_SECONDS_MAX = 40


class TookTooLong(Exception):
    """The case did not end in time (C2)."""


class Cases:
    """The cases of one client, in the order of their definition."""

    def __init__(self, client: str, version: str, seconds_max: int = SECONDS_MAX) -> None:
        self._client = client
        self._version = version
        self._seconds_max = seconds_max
        self._cases: dict[str, Callable[[], Any]] = {}
        self._output = sys.stdout
        self._script = sys.argv[0]

    def case(self, function: Callable[[], Any]) -> Callable[[], Any]:
        """A decorator: the function is a case, and its name is the case's. It may be async."""
        self._cases[function.__name__] = function
        return function

    def run(self) -> None:
        """Run those that the command line names, or all."""
        arguments = sys.argv[1:]
        kept: list[str] = []
        if arguments[:1] == ["--cache"]:
            kept, arguments = arguments[:2], arguments[2:]
        names = arguments or list(self._cases)
        # What libraries print must not be taken for outcomes.
        self._output = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)
        signal.signal(signal.SIGALRM, _alarm)
        for index, name in enumerate(names):
            self._run_case(name, [*kept, *names[index + 1 :]], is_last=index + 1 == len(names))

    def _run_case(self, name: str, left: Sequence[str], *, is_last: bool) -> None:
        stuck = threading.Timer(
            self._seconds_max + STUCK_SECONDS_MAX - SECONDS_MAX,
            self._give_up,
            (name, left, is_last),
        )
        stuck.daemon = True
        stuck.start()
        signal.alarm(self._seconds_max)
        try:
            made = self._cases[name]()
            if inspect.isawaitable(made):
                _await(made)
            reason = ""
        except BaseException as error:  # a case ends nothing but itself
            traceback.print_exc(file=sys.stderr)
            reason = reason_of(error)
        finally:
            signal.alarm(0)
            stuck.cancel()
        self._report(name, reason)

    def _report(self, name: str, reason: str) -> None:
        outcome = {
            "client": self._client,
            "version": self._version,
            "case": name,
            "ok": not reason,
            "reason": reason,
        }
        print(json.dumps(outcome), file=self._output, flush=True)

    def _give_up(self, name: str, left: Sequence[str], is_last: bool) -> None:
        self._report(name, "no end within the time")
        if is_last:
            os._exit(0)
        os.dup2(self._output.fileno(), 1)
        os.execv(sys.executable, [sys.executable, self._script, *left])


def _alarm(*_: object) -> None:
    raise TookTooLong("no end within the time")


def _await(made: Awaitable[Any]) -> None:
    import asyncio

    async def awaited() -> None:
        await made

    asyncio.run(awaited())


def reason_of(error: BaseException) -> str:
    """SQLSTATE and first line of an error, or of the one that it was made from."""
    code = _code(error)
    lines = str(error).strip().splitlines() or [""]
    words = (code, type(error).__name__ if not code else "", lines[0])
    return " ".join(word for word in words if word) or "failed"


def _code(error: BaseException) -> str:
    seen: BaseException | None = error
    while seen is not None:
        if code := _sqlstate(seen):
            return code
        seen = seen.__cause__ or seen.__context__
    return ""


def _sqlstate(error: BaseException) -> str:
    for name in ("sqlstate", "pgcode"):
        if isinstance(code := getattr(error, name, None), str):
            return code
    origin = getattr(error, "orig", None)
    return _sqlstate(origin) if isinstance(origin, BaseException) else ""


def same(found: object, wanted: object) -> None:
    """Both are equal."""
    assert found == wanted, f"{found!r} instead of {wanted!r}"


@contextlib.contextmanager
def fails(sqlstate: str, kind: type[BaseException] = Exception) -> Iterator[list[BaseException]]:
    """The block raises an error of this kind with this SQLSTATE; it is put into the list."""
    found: list[BaseException] = []
    try:
        yield found
    except kind as error:
        found.append(error)
    assert found, f"no error instead of {sqlstate}"
    assert (code := _code(found[0])) == sqlstate, f"{code} instead of {sqlstate}: {found[0]}"


def address() -> dict[str, str]:
    """Host, port, user, password and database of the server."""
    names = ("host", "port", "user", "password", "database")
    return {name: os.environ.get(f"PG{name.upper()}", "") for name in names}


def url(scheme: str = "postgresql") -> str:
    """The server's URL."""
    at = address()
    password = f":{at['password']}" if at["password"] else ""
    return f"{scheme}://{at['user']}{password}@{at['host']}:{at['port']}/{at['database']}"


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder that is gone afterwards."""
    place = Path(tempfile.mkdtemp(prefix="suite-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
