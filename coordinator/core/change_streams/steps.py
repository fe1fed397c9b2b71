"""What a subscriber asks the core for, and what it gets, as values."""

from dataclasses import dataclass
from typing import NewType

import pyarrow as pa

from sql.catalog.catalog import Table
from sql.catalog.objects import ViewDefinition
from storage.known_rows import Points
from storage.shard import ShardState
from storage.types import ShardId, Timestamp

SubscriptionId = NewType("SubscriptionId", int)


@dataclass(frozen=True, slots=True)
class SubscriptionRequest:
    """What to follow: changes of `tables` with ts > `as_of`, and < `up_to` if that is given.

    `closes`: timestamps are closed for it while nothing commits, since it tells its client how far
    time has come. `views`: another definition of one of them ends it. `paced`: each step costs as
    much as a query, so that there is not one for each commit (S8 of `subscriptions.py`). `asked`:
    of each table, the values without which a row of it cannot matter; nothing: all rows may.
    """

    tables: tuple[Table, ...]
    as_of: Timestamp
    up_to: Timestamp | None = None
    closes: bool = False
    views: tuple[ViewDefinition, ...] = ()
    paced: bool = False
    asked: tuple[Points, ...] = ()

    @property
    def shards(self) -> tuple[ShardId, ...]:
        """Where its tables are stored."""
        return tuple([ShardId(table.shard) for table in self.tables])

    @property
    def exact_tables(self) -> tuple[Table, ...]:
        """Those that are views with `refresh = 'on commit'`: told only where they are exact."""
        return tuple(filter(is_exact_view, self.tables))


def is_exact_view(table: Table) -> bool:
    """Whether it is a materialized view that is exact at some timestamps, and behind at others."""
    return table.query is not None and table.query.on_commit


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """Why nothing more will come. `sqlstate` None: UP TO was reached. `hint`: how to go on."""

    sqlstate: str | None = None
    message: str = ""
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class FollowedShard:
    """A table of a subscription as it is now, and the fields that its rows are told in."""

    state: ShardState
    schema: pa.Schema


@dataclass(frozen=True, slots=True)
class ChangeStep:
    """The next changes of a subscription: those of its tables in (after, upto]. None: `after` is
    `upto`. `end`: what comes behind `upto`. `is_quiet`: no commit in there matters to it. `gaps`:
    in which a view that it follows was behind, up to and with the commit that has attached it; what
    was committed there is told as if it had been with that.
    """

    shards: tuple[FollowedShard, ...]
    after: Timestamp
    upto: Timestamp
    end: StreamEnd | None = None
    is_quiet: bool = False
    gaps: tuple[tuple[Timestamp, Timestamp], ...] = ()

    def told_at(self, ts: Timestamp) -> Timestamp:
        """The timestamp at which a commit is told."""
        return next((end for begin, end in self.gaps if begin <= ts <= end), ts)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to tell but perhaps the end."""
        return self.after == self.upto
