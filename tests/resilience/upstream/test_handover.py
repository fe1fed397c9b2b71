"""Another coordinator takes over a source whose old one stands still, and goes on later.

The old one neither acknowledges nor commits, and takes no slot from its successor (W1 to W3).
"""

from pathlib import Path

import psycopg
import pytest

from tests.resilience.upstream.feed import finish
from tests.resilience.upstream.handover import (
    State,
    acknowledging,
    before_its_slot,
    committing,
    committing_in_vain,
    copying,
    handing_over,
    inspecting,
    making_its_slot,
    stalled,
    streaming,
    with_a_backlog,
)
from tests.session.change_streams.followers import until

GOES_ON_S = 2.0
"""So long a deposed one goes on without its stash."""

SHORT: list[State] = [before_its_slot]
LONG: list[State] = [
    inspecting,
    making_its_slot,
    copying,
    streaming,
    with_a_backlog,
    stalled,
    committing,
    committing_in_vain,
    acknowledging,
]


@pytest.mark.parametrize(
    "state", [*SHORT, *(pytest.param(state, marks=pytest.mark.slow) for state in LONG)]
)
def test_the_old_coordinator_stands_still(state: State, tmp_path: Path) -> None:
    with handing_over(tmp_path) as pair:
        with state(pair):
            pair.new.server.start()
        took = pair.takes_over()
        print(f"{state.__name__}: {took:.1f} s until all was read that upstream had before")
        pair.feed.progress(30)
        # It hears of its successor late, and may do as it likes until then.
        pair.old.link.freeze()
        pair.old.resume()
        pair.ended.wait(GOES_ON_S)
        pair.old.link.mend()
        assert pair.old.server.wait() == 1, pair.old.server.log
        assert "another coordinator has taken over" in pair.old.server.log.splitlines()[-1]
        pair.feed.progress(30)
        finish(pair.feed)
        until(lambda: [active for active, _ in pair.slots()] == [True])


def test_who_is_cut_off_from_the_stash_leaves_upstream_alone(tmp_path: Path) -> None:
    """It knows nothing of a table that joins, and so could acknowledge what its successor has not
    committed.
    """
    with handing_over(tmp_path) as pair:
        pair.create()
        # A commit under way would hold it up.
        pair.ended.set()
        for writer in pair.writers:
            writer.join()
        pair.catch_up(pair.old)
        pair.old.link.freeze()
        pair.new.server.start()
        pair.takes_over()
        with (
            psycopg.connect(pair.upstream.dsn, autocommit=True) as there,
            psycopg.connect(pair.new.server.dsn, autocommit=True) as here,
        ):
            there.execute("CREATE TABLE late (n int PRIMARY KEY)")
            here.execute("CREATE TABLE late FROM SOURCE feed (REFERENCE 'public.late')")
            assert here.execute("SELECT count(*) FROM late").fetchall() == [(0,)]
            pair.new.link.freeze()
            there.execute("INSERT INTO late VALUES (1)")
            # Whoever would take the slot has some time for it.
            pair.ended.clear()
            pair.ended.wait(GOES_ON_S)
            row = there.execute("SELECT (pg_current_wal_insert_lsn() - '0/0')::int8").fetchone()
            assert row is not None
            assert all(acknowledged < row[0] for _, acknowledged in pair.slots())
            pair.new.link.thaw()
            here.execute("SET real_time_recency = on")
            assert here.execute("SELECT n FROM late").fetchall() == [(1,)]
        pair.old.link.thaw()
        assert pair.old.server.wait() == 1, pair.old.server.log
