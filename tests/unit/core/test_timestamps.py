"""The choice of a timestamp: every question has an answer, and the answer keeps its constraints."""

import itertools

import pytest

from coordinator.core.messages.identities import Isolation
from coordinator.core.timestamps import (
    BoundSide,
    Close,
    InputSince,
    Question,
    Ready,
    TooFar,
    TooOld,
    TooStale,
    WaitForClock,
    determine,
)
from storage.types import Timestamp

PLACES = [Timestamp(ts) for ts in (0, 9, 10, 11, 15, 20, 21, 25, 30, 31, 36, 40, 41)]
"""Around since (10), read_ts (20), now (30) and now + bound (40)."""


def question(**changes: object) -> Question:
    base = {"since": 10, "read_ts": 20, "now": 30, "bound_us": 10, "closable": 30}
    return Question(**{**base, **changes})  # type: ignore[arg-type]


QUESTIONS = [
    question(isolation=isolation, as_of=as_of, at_least=at_least, own=own, staleness_us=staleness,
             closable=closable, inputs=inputs)
    for isolation, as_of, at_least, own, staleness, closable, inputs in itertools.product(
        Isolation, [None, *PLACES], [False, True], [None, Timestamp(15)], [None, 5, 15, 50],
        [Timestamp(19), Timestamp(24), Timestamp(30)],
        [(), (InputSince("t", Timestamp(12)),)],
    )
]  # fmt: skip


def test_a_choice_meets_every_constraint() -> None:
    answered = 0
    for asked in QUESTIONS:
        found = determine(asked)
        if isinstance(found.choice, Ready | Close | WaitForClock):
            answered += 1
            for constraint in found.constraints:
                lower = constraint.side is BoundSide.LOWER
                met = (
                    found.choice.ts >= constraint.ts if lower else found.choice.ts <= constraint.ts
                )
                assert met, (asked, found)
    assert answered > len(QUESTIONS) // 2


def test_a_refusal_has_an_empty_interval() -> None:
    refused = 0
    for asked in QUESTIONS:
        found = determine(asked)
        if isinstance(found.choice, TooOld | TooFar | TooStale):
            refused += 1
            assert found.upper is not None
            assert found.lower > found.upper, (asked, found)
    assert refused > 0


def test_what_answers_at_once_is_closed_already() -> None:
    for asked in QUESTIONS:
        choice = determine(asked).choice
        match choice:
            case Ready(ts=ts):
                assert ts <= asked.read_ts
            case Close(ts=ts):
                assert asked.read_ts < ts <= asked.now
            case WaitForClock(ts=ts):
                assert asked.now < ts <= asked.now + asked.bound_us
            case _:
                pass


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (question(), Ready),
        (question(isolation=Isolation.SERIALIZABLE), Ready),
        (question(own=Timestamp(15)), Ready),
        (question(as_of=Timestamp(9)), TooOld),
        (question(as_of=Timestamp(10)), Ready),
        (question(as_of=Timestamp(11), inputs=(InputSince("t", Timestamp(12)),)), TooOld),
        (question(as_of=Timestamp(9), at_least=True), Ready),
        (question(as_of=Timestamp(25)), Close),
        (question(as_of=Timestamp(25), at_least=True), Close),
        (question(as_of=Timestamp(40)), WaitForClock),
        (question(as_of=Timestamp(41)), TooFar),
        (question(as_of=Timestamp(41), at_least=True), TooFar),
        (question(staleness_us=10), Ready),
        (question(staleness_us=5), Close),
        (question(staleness_us=5, closable=Timestamp(24)), TooStale),
    ],
)
def test_choices(asked: Question, expected: type) -> None:
    assert type(determine(asked).choice) is expected


def test_at_least_prefers_what_is_there() -> None:
    chosen = determine(question(as_of=Timestamp(12), at_least=True))
    assert chosen.choice == Ready(
        Timestamp(20), "oracle read timestamp, at least what was asked for"
    )
    assert [item.reason for item in chosen.constraints][:2] == [
        "since of the timeline",
        "AS OF AT LEAST",
    ]
