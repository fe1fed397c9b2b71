"""From the outcomes of both servers to verdicts: which cases count, which pass, which must.

INVARIANTS: Q1, Q2 and Q4 of the package.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.clients.suites.outcomes import Outcome

CLIENTS = Path(__file__).parents[1]
ALLOW = CLIENTS / "allow"
RESULTS = CLIENTS / "results"

_NEEDS = re.compile(r"_needs_([a-z_]+)$")


@dataclass(frozen=True, slots=True)
class Verdict:
    """One client on both servers."""

    client: str
    version: str
    cases: int
    """Those that PostgreSQL passes and that need no feature of another issue (Q1)."""
    passed: int
    """Of these, those that Meridian passes."""
    failures: Mapping[str, str] = field(default_factory=dict[str, str])
    """The others, with their reasons."""
    apart: Mapping[str, str] = field(default_factory=dict[str, str])
    """Cases that need a feature of another issue, with their reasons; empty if they pass."""
    wrong: Mapping[str, str] = field(default_factory=dict[str, str])
    """Cases that fail on PostgreSQL: wrong ones, to be mended or dropped."""
    passing: Sequence[str] = ()
    """The names of those that pass on both."""


def needed_feature(case: str) -> str:
    """`triggers` of `soft_delete_needs_triggers`; empty for a case that needs none."""
    found = _NEEDS.search(case)
    return found[1] if found else ""


def judge(peer: Iterable[Outcome], ours: Iterable[Outcome]) -> list[Verdict]:
    """A verdict for each client that PostgreSQL has seen, in the order of names."""
    clients: dict[str, dict[str, Outcome]] = {}
    for outcome in peer:
        clients.setdefault(outcome.client, {})[outcome.case] = outcome
    answers = {(outcome.client, outcome.case): outcome for outcome in ours}
    return [_judge_client(name, clients[name], answers) for name in sorted(clients)]


def _judge_client(
    client: str, peer: Mapping[str, Outcome], ours: Mapping[tuple[str, str], Outcome]
) -> Verdict:
    failures: dict[str, str] = {}
    apart: dict[str, str] = {}
    passing: list[str] = []
    for case in sorted(name for name, outcome in peer.items() if outcome.ok):
        answer = ours.get((client, case))
        reason = "not reported" if answer is None else answer.reason
        if needed_feature(case):
            apart[case] = reason
        elif reason:
            failures[case] = reason
        if not reason:
            passing.append(case)
    return Verdict(
        client=client,
        version=next(iter(peer.values())).version,
        cases=sum(1 for name, outcome in peer.items() if outcome.ok and not needed_feature(name)),
        passed=sum(1 for name in passing if not needed_feature(name)),
        failures=failures,
        apart=apart,
        wrong={name: outcome.reason for name, outcome in sorted(peer.items()) if not outcome.ok},
        passing=tuple(passing),
    )


# --- allow files ----------------------------------------------------------------------------------


def allowed(client: str) -> list[str]:
    """The cases that must pass on Meridian."""
    path = ALLOW / f"{client}.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line for line in lines if line and not line.startswith("#")]


def broken_promises(clients: Iterable[str], ours: Iterable[Outcome]) -> list[tuple[str, str, str]]:
    """Client, case and reason of each case that must pass and does not (Q2)."""
    answers = {(outcome.client, outcome.case): outcome for outcome in ours}
    found: list[tuple[str, str, str]] = []
    for client in sorted(set(clients)):
        for case in allowed(client):
            answer = answers.get((client, case))
            if answer is None:
                found.append((client, case, "not reported"))
            elif not answer.ok:
                found.append((client, case, answer.reason))
    return found


def allow_more(verdict: Verdict) -> int:
    """Add what passes to the client's allow file (Q4); how many lines came."""
    before = set(allowed(verdict.client))
    more = set(verdict.passing) - before
    if more:
        ALLOW.mkdir(exist_ok=True)
        lines = sorted(before | more)
        (ALLOW / f"{verdict.client}.txt").write_text("".join(f"{line}\n" for line in lines))
    return len(more)


# --- results --------------------------------------------------------------------------------------


def keep_results(suite: str, verdicts: Iterable[Verdict]) -> None:
    """What the page is made from."""
    RESULTS.mkdir(exist_ok=True)
    rows = [
        {name: value for name, value in asdict(verdict).items() if name != "passing"}
        for verdict in verdicts
    ]
    (RESULTS / f"{suite}.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")


def results() -> dict[str, list[Verdict]]:
    """The last results of each suite, by its name."""
    return {
        path.stem: [Verdict(**row) for row in json.loads(path.read_text())]
        for path in sorted(RESULTS.glob("*.json"))
    }
