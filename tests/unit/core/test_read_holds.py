"""How far back a timeline stays readable, where a whole server would be too much."""

from coordinator.core.read_holds import ReadHolds
from sql.catalog.catalog import Catalog
from storage.types import ShardId, Timestamp

HOUR = 3_600_000_000


def test_a_longer_history_does_not_bring_an_old_catalog_back() -> None:
    known = Timestamp(10 * HOUR - 5)
    holds = ReadHolds(
        Catalog(),
        frontier=Timestamp(10 * HOUR),
        history_us=HOUR,
        timeline="system",
        beginning=known,
    )
    assert holds.since == holds.since_of(ShardId("t1")) == known


def test_a_clock_that_was_ahead_leaves_the_present_readable() -> None:
    present = Timestamp(10 * HOUR)
    holds = ReadHolds(Catalog(), frontier=present, history_us=HOUR, timeline="system")
    assert holds.since == 9 * HOUR
    ahead = Timestamp(13 * HOUR)
    assert holds.advance(ahead, present=present) == present
    assert holds.advance(Timestamp(present + 1), present=Timestamp(present + 1)) == present
