"""Answer `meridian doctor`: a thread of its own tells how a running server is.

    doctor ── DIR/.s.doctor ─▶ thread ─▶ a JSON line a part: health, settings, stacks, log
                                 └── the loop, if it turns ─▶ metrics, troubles

INVARIANTS
  P1  it answers while the loop stands: what needs the loop comes last, and is waited for LOOP_S.
  P2  only the server's own user and root are answered, as the kernel says who connects.
  P3  secrets are hidden in every part (`hidden_secrets.py`). Stacks name functions, without values.
  P4  an answer changes nothing. One at a time is given, and nobody has it for long (ANSWER_S).

Rejected: a signal. One that is not awaited ends its process, and `faulthandler` reads frames that
other threads change meanwhile. Rejected: HTTP, which the loop answers, where somebody listens.
"""

import asyncio
import json
import logging
import os
import re
import socket
import struct
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from typing import Final

from coordinator.config import Settings
from coordinator.hidden_secrets import HIDDEN, without_secrets
from coordinator.monitoring.observation import ObservedServer, ObservedServing, ServerObserver
from coordinator.server.listeners import SocketFile
from coordinator.server.log import newest_lines
from coordinator.version import PRODUCT_VERSION

log = logging.getLogger("meridian.doctor")

DOCTOR_SOCKET: Final = ".s.doctor"
"""In the data directory."""
LOOP_S: Final = 3.0
"""How long a loop that stands is waited for. Longer: a doctor waits longer, and knows no more."""
ANSWER_S: Final = 10.0
"""For one who does not read. Longer: the next one waits."""

_TASKS_MAX: Final = 300
_TASK_FRAMES: Final = 6
_PEER: Final = struct.Struct("3i")
_NOT_SHOWN: Final = ("first_password", "is_password_shown")
_URL_PASSWORD: Final = re.compile(r"(://[^:/@]*:).*@")
_QUERY_PASSWORD: Final = re.compile(r"(password=)[^&]*", re.IGNORECASE)
_ENVIRONMENT: Final = "spark.executorEnv."
"""Whatever processes are given in their environments may be a secret."""


def shown_settings(settings: Settings) -> str:
    """All settings, a line each, without secrets (P3)."""
    lines: list[str] = []
    for item in fields(Settings):
        value = getattr(settings, item.name)
        if item.name in _NOT_SHOWN:
            continue
        named = value.items() if isinstance(value, dict) else [("", value)]
        for name, one in named:
            shown = HIDDEN if name.startswith(_ENVIRONMENT) else one
            lines.append(_setting(f"{item.name}.{name}" if name else item.name, shown))
    return "".join(f"{line}\n" for line in lines)


def _setting(name: str, value: object) -> str:
    if not isinstance(value, str) or value == HIDDEN:
        return f"{name} = {value}"
    if name == "stash":
        # A URL alone: all up to its last @ may be the password, whatever characters it has.
        value = _URL_PASSWORD.sub(rf"\1{HIDDEN}@", value)
        value = _QUERY_PASSWORD.sub(rf"\1{HIDDEN}", value)
    # In quotes all of a value is hidden whose name is that of a secret.
    quoted = value.replace("'", "''").replace("\n", " ")
    return without_secrets(f"{name} = '{quoted}'")


def _running_stacks(loop: asyncio.AbstractEventLoop) -> str:
    """Where each thread is, and each task of the loop."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts: list[str] = []
    frames = sys._current_frames()  # pyright: ignore[reportPrivateUsage]
    for ident, frame in frames.items():
        stack = "".join(traceback.format_stack(frame))
        parts.append(f"thread {names.get(ident, ident)}\n{stack}")
    return "\n".join((*parts, *_tasks(loop)))


def _tasks(loop: asyncio.AbstractEventLoop) -> Iterator[str]:
    # The loop goes on meanwhile: a task may end, and its stack is empty then.
    for task in sorted(asyncio.all_tasks(loop), key=lambda one: one.get_name())[:_TASKS_MAX]:
        name = getattr(task.get_coro(), "__qualname__", "?")
        frames = task.get_stack(limit=_TASK_FRAMES)
        where = [f"  {f.f_code.co_filename}:{f.f_lineno} {f.f_code.co_qualname}" for f in frames]
        yield "\n".join((f"task {name}", *where, ""))


def find_troubles(serving: ObservedServing) -> Iterator[str]:
    """A line for each table, source and view that is not as it should be."""
    for line in serving.timelines:
        for shard in line.shards:
            if shard.state.fence is not None:
                reason = f"{shard.state.fence.value}: {shard.state.fenced}"
                yield without_secrets(f"table {shard.table.qualified} is fenced: {reason}")
        for source in line.sources:
            if source.state in ("stalled", "paused", "broken"):
                name = f"{source.definition.schema}.{source.definition.name}"
                said = " ".join((source.code, source.reason, source.hint)).strip()
                yield without_secrets(f"source {name} is {source.state}{said and ': '}{said}")
    for view in serving.views:
        if view.state == "behind":
            said = view.last_error or "no attempt has ended yet"
            told = f"view {view.name} has been behind for {view.behind_s:.0f} s: {said}"
            yield without_secrets(told)


@contextmanager
def answering_doctor(settings: Settings, root: Path, observer: ServerObserver) -> Generator[None]:
    """Answer in this block, which a loop runs; `root`: the data directory, whose lock is held."""
    try:
        listener, file = _listen(root)
    except OSError as error:
        log.warning("meridian doctor will not be answered: %s", error)
        yield
        return
    answers = _Answers(settings, observer, asyncio.get_running_loop())
    thread = threading.Thread(target=_serve, args=(listener, answers), name="doctor", daemon=True)
    thread.start()
    try:
        yield
    finally:
        file.remove()
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _listen(root: Path) -> tuple[socket.socket, SocketFile]:
    """By a path that is short, wherever the directory is."""
    directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            os.unlink(DOCTOR_SOCKET, dir_fd=directory)
        listener.bind(f"/proc/self/fd/{directory}/{DOCTOR_SOCKET}")
        file = SocketFile.of(root / DOCTOR_SOCKET)
        file.path.chmod(0o600)
        listener.listen(4)
    except BaseException:
        listener.close()
        raise
    finally:
        os.close(directory)
    return listener, file


def _serve(listener: socket.socket, answers: "_Answers") -> None:
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return  # the block has ended
        with client:
            try:
                if _user_of(client) in (0, os.geteuid()):  # P2
                    client.settimeout(ANSWER_S)
                    answers.send_to(client)
            except OSError:
                continue  # it has gone, or does not read
            except Exception:
                # A task boundary: whoever asks next is answered.
                log.exception("an answer to meridian doctor has failed")


def _user_of(client: socket.socket) -> int:
    peer = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    _, user, _ = _PEER.unpack(peer)
    return int(user)


class _Answers:
    def __init__(
        self, settings: Settings, observer: ServerObserver, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._settings = settings
        self._observer = observer
        self._loop = loop

    def send_to(self, client: socket.socket) -> None:
        """All parts, each as soon as it is known (P1)."""
        parts: list[tuple[str, Callable[[], str]]] = [
            ("server", lambda: f"meridian {PRODUCT_VERSION}\npid {os.getpid()}\n"),
            ("health", lambda: f"{self._observer.health.state.value}\n"),
            ("settings", lambda: shown_settings(self._settings)),
            ("log", lambda: "".join(f"{line}\n" for line in newest_lines())),
            ("stacks", lambda: _running_stacks(self._loop)),
        ]
        for name, make in parts:
            _send(client, name, make)
        try:
            observed = self._observed()
        except TimeoutError:
            _send(client, "loop", lambda: f"it has not turned for {LOOP_S:.0f} s\n")
            return
        except Exception:
            # Ours: the doctor is told, as of a part that fails.
            _send(client, "failure", traceback.format_exc)
            return
        if (serving := observed.serving) is not None:
            _send(client, "troubles", lambda: "".join(f"{s}\n" for s in find_troubles(serving)))
        _send(client, "metrics", lambda: _metrics(observed))

    def _observed(self) -> ObservedServer:
        """As the loop sees it. Raises TimeoutError if the loop stands."""
        found: Future[ObservedServer] = Future()

        def observe() -> None:
            try:
                found.set_result(self._observer.observe())
            except Exception as error:
                # It is told to the thread that waits for it.
                found.set_exception(error)

        self._loop.call_soon_threadsafe(observe)
        return found.result(LOOP_S)


def _metrics(observed: ObservedServer) -> str:
    # A server without the HTTP listener does not import it until here.
    from coordinator.monitoring.metrics import rendered_metrics

    return rendered_metrics(observed).decode()


def _send(client: socket.socket, name: str, make: Callable[[], str]) -> None:
    try:
        text = make()
    except Exception:
        # What cannot be told is told, too, and the other parts are.
        name, text = "failure", f"{name}: {traceback.format_exc()}"
    client.sendall(json.dumps([name, text]).encode() + b"\n")
