"""Runs cases one after the other, and prints a line of JSON for each.

A case that fails or hangs stops none after it. Runs in Debian's Python, with pyodbc as its client.
"""

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

SECONDS_MAX = 30


class Mismatch(Exception):
    """A check that did not hold."""


def equal(found: Any, wanted: Any) -> None:
    """End the case unless both are equal."""
    if found != wanted:
        raise Mismatch(f"found {found!r}, wanted {wanted!r}")


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise TimeoutError("time-out of 30 s")


def run_all(client: str, version: str, cases: Mapping[str, Callable[[], None]]) -> None:
    """Run the cases whose names match ONLY."""
    signal.signal(signal.SIGALRM, _stop)
    for name, body in cases.items():
        if not re.search(os.environ.get("ONLY", ""), f"{client}.{name}"):
            continue
        reason = ""
        signal.alarm(SECONDS_MAX)
        try:
            body()
        except Exception as error:
            text = " ".join(str(error).split())
            reason = text if isinstance(error, Mismatch) else f"{type(error).__name__}: {text}"
        finally:
            signal.alarm(0)
        line = {"client": client, "version": version, "case": name, "ok": not reason}
        print(json.dumps({**line, "reason": reason}), flush=True)
        if reason:
            print(f"{client}.{name}: {reason}", file=sys.stderr)
