"""What a suite's program prints: one JSON object a line, one line a case.

    {"client": "pgx", "version": "5.7.2", "case": "copy_from", "ok": true, "reason": ""}

INVARIANTS
  O1  a line that is not such an object is an error of the suite, and is told.
  O2  a case is reported once; of two reports the worse one counts.
  O3  a reason is one short line without addresses, ports and paths of the machine.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

REASON_LENGTH_MAX = 160
_NAMES = re.compile(r"[a-z0-9][a-z0-9_.+-]*")
_VARYING = (
    (re.compile(r"(?<![\w/.])(?:/[\w.@+-]+){2,}"), "PATH"),
    (re.compile(r"\b127\.0\.0\.1(?:[:,]\d+)?"), "HOST"),
    (re.compile(r"\bport:? \d{4,5}\b"), "port PORT"),
    (re.compile(r"\b0x[0-9a-f]{6,}\b"), "0x.."),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one case on one server."""

    client: str
    version: str
    case: str
    ok: bool
    reason: str


def parse_outcomes(lines: Iterable[str]) -> tuple[list[Outcome], list[str]]:
    """The outcomes, and the lines that are none (O1)."""
    found: dict[tuple[str, str], Outcome] = {}
    wrong: list[str] = []
    for line in filter(str.strip, lines):
        outcome = _parse_outcome(line)
        if outcome is None:
            wrong.append(line.rstrip())
            continue
        key = outcome.client, outcome.case
        if key not in found or found[key].ok:
            found[key] = outcome
    return list(found.values()), wrong


def _parse_outcome(line: str) -> Outcome | None:
    try:
        parsed: object = json.loads(line)
    except ValueError:
        return None
    match parsed:
        case {
            "client": str(client),
            "version": str(version),
            "case": str(case),
            "ok": bool(ok),
            **rest,
        } if _NAMES.fullmatch(client) and case.split() == [case]:
            reason = short_reason(str(rest.get("reason") or ""))
            return Outcome(client, version, case, ok, "" if ok else reason or "no reason given")
        case _:
            return None


def short_reason(text: str) -> str:
    """The first line that says something, without what differs from run to run (O3)."""
    line = next((part.strip() for part in text.splitlines() if part.strip()), "")
    for pattern, word in _VARYING:
        line = pattern.sub(word, line)
    return line if len(line) <= REASON_LENGTH_MAX else line[: REASON_LENGTH_MAX - 2] + ".."
