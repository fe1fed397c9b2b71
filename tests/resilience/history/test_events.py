"""Recording and reading histories."""

import pytest

from tests.resilience.history.events import Add, History, Kind, ReadSet, Recorder, merge
from tests.resilience.history.notation import parse_history


def test_a_recorder_keeps_the_order_and_the_answers() -> None:
    times = iter(range(100, 200))
    recorder = Recorder(lambda: next(times))
    recorder.invoke(0, Add("s", 1))
    recorder.invoke(1, ReadSet("s"))
    recorder.ok(1, ReadSet("s", (1,)), ts=7)
    recorder.info(0)
    first, second = recorder.history().transactions()
    assert (first.status, first.began, first.ended) == (Kind.INFO, 0, None)
    assert (second.status, second.began, second.ended, second.ts) == (Kind.OK, 1, 2, 7)
    assert [event.at for event in recorder.history().events] == [100, 101, 102, 103]


def test_without_completion_the_outcome_is_unknown() -> None:
    recorder = Recorder()
    recorder.invoke(0, Add("s", 1))
    [transaction] = recorder.history().transactions()
    assert transaction.status is Kind.INFO
    assert transaction.ended is None


def test_a_process_is_not_used_again_after_an_unknown_outcome() -> None:
    recorder = Recorder()
    recorder.invoke(0, Add("s", 1))
    recorder.info(0)
    with pytest.raises(AssertionError, match="E2"):
        recorder.invoke(0, Add("s", 2))


def test_merging_lets_equal_times_overlap() -> None:
    one = parse_history("p0 0-5 ok: add s 1")
    two = parse_history("p1 5-9 ok: set s {}")
    first, second = merge([one, two]).transactions()
    assert first.ended is not None
    assert second.began < first.ended


def test_shares_of_the_outcomes() -> None:
    history = parse_history("p0 0-1 ok: add s 1\np1 0-1 fail: add s 2\np2 0-? info: add s 3")
    assert history.shares() == pytest.approx({Kind.OK: 1 / 3, Kind.FAIL: 1 / 3, Kind.INFO: 1 / 3})
    assert History(()).shares()[Kind.OK] == 0
