"""What a subscriber asks the core for, and what it gets, as values."""

from dataclasses import dataclass
from typing import NewType

import pyarrow as pa

from sql.catalog.catalog import Table
from storage.shard import ShardState
from storage.types import Timestamp

SubscriptionId = NewType("SubscriptionId", int)


@dataclass(frozen=True, slots=True)
class SubscriptionRequest:
    """What to follow: changes of `table` with ts > `as_of`, and < `up_to` if that is given.

    `closes`: timestamps are closed for it while nothing commits, since it tells its client how far
    time has come.
    """

    table: Table
    as_of: Timestamp
    up_to: Timestamp | None = None
    closes: bool = False


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """Why nothing more will come. `sqlstate` None: UP TO was reached. `hint`: how to go on."""

    sqlstate: str | None = None
    message: str = ""
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class ChangeStep:
    """The next changes of a subscription: those of `state` in (after, upto], in the fields of
    `schema`. None: `after` is `upto`. `end`: what comes behind `upto`.
    """

    state: ShardState
    schema: pa.Schema
    after: Timestamp
    upto: Timestamp
    end: StreamEnd | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to tell but perhaps the end."""
        return self.after == self.upto
