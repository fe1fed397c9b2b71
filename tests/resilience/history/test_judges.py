"""Planted anomalies are found, and honest histories pass: one small story each."""

from collections.abc import Callable

import pytest

from tests.resilience.history.black_box import check_list_append, check_real_time_set
from tests.resilience.history.events import Finding, History
from tests.resilience.history.notation import parse_history
from tests.resilience.history.registers import check_registers
from tests.resilience.history.replay import check_replay

Judge = Callable[[History], list[Finding]]

SETS = {
    "an honest run": (
        "",
        """p0 0-1 ok: add s 1
           p1 0-9 ok: set s {}
           p2 2-3 ok: set s {1}
           p3 4-5 info: add s 2
           p4 6-7 ok: set s {1 2}""",
    ),
    "an unknown add may never happen": ("", "p0 0-1 info: add s 1 \n p1 2-3 ok: set s {}"),
    "an unknown add may happen late": (
        "",
        """p0 0-1 info: add s 1
           p1 2-3 ok: set s {}
           p1 4-5 ok: set s {1}""",
    ),
    "an unknown add that was seen stays": (
        "G-single-realtime",
        """p0 0-1 info: add s 1
           p1 2-3 ok: set s {1}
           p1 4-5 ok: set s {}""",
    ),
    "an unknown transaction that was seen in part happened as a whole": (
        "G-single",
        "p0 0-1 info: add s 1, add t 1 \n p1 2-3 ok: set s {1}, set t {}",
    ),
    "an acknowledged add is lost": (
        "G-single-realtime",
        "p0 0-1 ok: add s 1 \n p1 2-3 ok: set s {}",
    ),
    "a read from the future": ("G1c-realtime", "p0 0-1 ok: set s {1} \n p1 2-3 ok: add s 1"),
    "an add stands there twice": ("duplicate", "p0 0-1 ok: add s 1 \n p1 2-3 ok: set s {1 1}"),
    "nobody wrote it": ("phantom", "p1 2-3 ok: set s {7}"),
    "it was refused": ("G1a", "p0 0-1 fail: add s 1 \n p1 2-3 ok: set s {1}"),
    "own writes are missing": ("internal", "p0 0-1 ok: add s 1, set s {}"),
    "half of a two-table commit": (
        "G-single",
        "p0 0-9 ok: add s 1, add t 1 \n p1 0-9 ok: set s {1}, set t {}",
    ),
    "long fork: two readers disagree about the order": (
        "G2",
        """p0 0-9 ok: add s 1
           p1 0-9 ok: add s 2
           p2 0-9 ok: set s {1}
           p3 0-9 ok: set s {2}""",
    ),
    "write skew: both saw an empty set": (
        "G2",
        "p0 0-9 ok: set s {}, add s 1 \n p1 0-9 ok: set s {}, add s 2",
    ),
}

LISTS = {
    "an honest run": (
        "",
        """p0 0-5 ok: append x 1
           p1 0-5 ok: append x 2, list x [1 2]
           p2 6-7 ok: list x [1 2], append x 3, list x [1 2 3]
           p3 6-9 ok: list x [1 2]""",
    ),
    "a lost append": (
        "G-single-realtime",
        """p0 0-1 ok: append x 1
           p1 2-3 ok: append x 2
           p2 4-5 ok: list x [1]""",
    ),
    "appends in the wrong order of time": (
        "G0-realtime",
        """p0 0-1 ok: append x 1
           p1 2-3 ok: append x 2
           p2 2-5 ok: list x [2 1]""",
    ),
    "two orders": (
        "incompatible-order",
        """p0 0-9 ok: append x 1
           p1 0-9 ok: append x 2
           p2 0-9 ok: list x [1 2]
           p3 0-9 ok: list x [2]""",
    ),
    "lost update": (
        "G-single",
        """p0 0-9 ok: list x [], append x 1
           p1 0-9 ok: list x [], append x 2
           p2 0-9 ok: list x [1 2]""",
    ),
    "two tables written in opposite orders": (
        "G0",
        """p0 0-9 ok: append x 1, append y 1
           p1 0-9 ok: append x 2, append y 2
           p2 0-9 ok: list x [1 2], list y [2 1]""",
    ),
    "each reads the other": (
        "G1c",
        "p0 0-9 ok: append x 1, list y [1] \n p1 0-9 ok: append y 1, list x [1]",
    ),
    "write skew": (
        "G2",
        "p0 0-9 ok: list y [], append x 1 \n p1 0-9 ok: list x [], append y 1",
    ),
    "a duplicate": ("duplicate", "p0 0-1 ok: append x 1 \n p1 2-3 ok: list x [1 1]"),
    "own append is not at the end": (
        "internal",
        "p0 0-9 ok: append x 1, list x [1 2] \n p1 0-9 ok: append x 2",
    ),
}

REGISTERS = {
    "an honest run": (
        "",
        """p0 0-1 ok: write r 1
           p1 2-5 ok: read r 1, write r 2
           p2 2-5 ok: read r 1
           p3 6-7 ok: read r 2""",
    ),
    "unread unknown writes do not count": (
        "",
        "p0 0-1 info: write r 1 \n p1 2-3 ok: read r nil",
    ),
    "a stale read": (
        "cyclic-versions",
        "p0 0-1 ok: write r 1 \n p1 2-3 ok: read r nil",
    ),
    "a value comes back": (
        "cyclic-versions",
        """p0 0-1 ok: write r 1
           p1 2-3 ok: write r 2
           p2 4-5 ok: read r 1""",
    ),
    "lost update": (
        "G-single",
        """p0 0-1 ok: write r 1
           p1 2-9 ok: read r 1, write r 2
           p2 2-9 ok: read r 1, write r 3
           p3 10-11 ok: read r 2
           p3 12-13 ok: read r 2""",
    ),
    "read skew": (
        "G-single",
        """p0 0-9 ok: write r 1, write q 1
           p1 0-9 ok: read r 1, read q nil""",
    ),
    "write skew": (
        "G2",
        """p1 0-9 ok: read r nil, write q 1
           p2 0-9 ok: read q nil, write r 1""",
    ),
    "two values in one transaction": (
        "internal",
        """p0 0-9 ok: write r 1
           p1 0-9 ok: read r nil, read r 1""",
    ),
    "it was refused": ("G1a", "p0 0-1 fail: write r 1 \n p1 2-3 ok: read r 1"),
    "nobody wrote it": ("phantom", "p1 2-3 ok: read r 1"),
}

REPLAYS = {
    "an honest run": (
        "",
        """p0 0-1 ok @10: add s 1, append x 1, write r 1
           p1 2-3 ok @10: set s {1}, list x [1], read r 1
           p2 0-9 ok @20: read r 1, write r 2, read r 2
           p3 0-9 ok @20: read r 2
           p4 0-9 ok @9: set s {}""",
    ),
    "two commits of one batch": (
        "",
        """p0 0-9 ok @10: write r 1
           p1 0-9 ok @10: write r 2
           p2 0-9 ok @11: read r 1""",
    ),
    "a commit is missing from a later read": (
        "lost",
        "p0 0-9 ok @10: add s 1 \n p1 0-9 ok @10: set s {}",
    ),
    "a read sees a commit above its timestamp": (
        "unwritten",
        "p0 0-9 ok @11: add s 1 \n p1 0-9 ok @10: set s {1}",
    ),
    "a read is answered below an earlier one": (
        "time-went-back",
        "p0 0-1 ok @11: set s {} \n p1 2-3 ok @10: set s {}",
    ),
    "a write is placed at a timestamp that was read": (
        "time-went-back",
        "p0 0-1 ok @10: set t {} \n p1 2-3 ok @10: add s 1",
    ),
    "a stale register": (
        "stale",
        """p0 0-9 ok @10: write r 1
           p1 0-9 ok @11: write r 2
           p2 0-9 ok @12: read r 1""",
    ),
    "a list out of order": (
        "order",
        """p0 0-9 ok @10: append x 1
           p1 0-9 ok @11: append x 2
           p2 0-9 ok @12: list x [2 1]""",
    ),
    "an unknown write vanishes": (
        "vanished",
        """p0 0-1 info: add s 1
           p1 0-9 ok @10: set s {1}
           p2 0-9 ok @11: set s {}""",
    ),
    "a row stands there twice": (
        "duplicate",
        "p0 0-1 ok @1: add s 1 \n p1 2-3 ok @2: set s {1 1}",
    ),
    "an unknown write may be there": (
        "",
        "p0 0-? info: write r 1 \n p1 2-3 ok @2: read r 1",
    ),
}

CASES = [
    (judge, title, expected, text)
    for judge, stories in (
        (check_real_time_set, SETS),
        (check_list_append, LISTS),
        (check_registers, REGISTERS),
        (check_replay, REPLAYS),
    )
    for title, (expected, text) in stories.items()
]


@pytest.mark.parametrize(
    ("judge", "title", "expected", "text"), CASES, ids=[f"{c[0].__name__}: {c[1]}" for c in CASES]
)
def test_judge(judge: Judge, title: str, expected: str, text: str) -> None:
    found = judge(parse_history(text))
    assert sorted({finding.anomaly for finding in found}) == ([expected] if expected else []), (
        "\n".join(map(str, found)) or "nothing found"
    )


def test_an_explanation_names_every_step_and_transaction() -> None:
    [finding] = check_real_time_set(parse_history(SETS["half of a two-table commit"][1]))
    assert str(finding).splitlines() == [
        "G-single: T0 -wr-> T1 (s holds 1); T1 -rw-> T0 (t does not hold 1)",
        "    T0 p0 ok: add s 1, add t 1",
        "    T1 p1 ok: set s {1}, set t {}",
    ]


def test_the_shortest_of_many_cycles_is_told() -> None:
    honest = "\n".join(f"p{n} {n}0-{n}5 ok: add s {n}" for n in range(1, 30))
    text = honest + "\np90 400-410 ok: set s {" + " ".join(map(str, range(1, 29))) + "}"
    [finding] = check_real_time_set(parse_history(text))
    assert len(finding.transactions) == 2
