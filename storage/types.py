"""Identifier types of storage: timestamps, shards, epochs, commit tokens, row sources.

A shard is one table's data. Its id never changes and never comes from a user: the table's
directory in the warehouse is called after the shard, not after the table.
"""

from dataclasses import dataclass
from typing import NewType

Timestamp = NewType("Timestamp", int)
"""A point of the `system` timeline: microseconds since the Unix epoch."""

ShardId = NewType("ShardId", str)
"""The data of one table, and the name of its directory: `t` and 16 hexadecimal digits."""

Epoch = NewType("Epoch", int)
"""The reign of one coordinator over a stash; grows by one at each start."""

Token = NewType("Token", str)
"""Names one attempt to commit, so that an unknown outcome can be looked up."""

Source = NewType("Source", str)
"""Where a row lives: the name of a data file, `@<ts>` for an inline batch committed at ts, or
`@own`.
"""

FIRST_TIMESTAMP = Timestamp(0)

OWN = Source("@own")
"""The rows that a transaction has written itself and not committed."""


@dataclass(frozen=True, slots=True)
class ClockState:
    """`jumps`: how often a clock began to be doubted. `doubted`: it is not believed now."""

    jumps: int = 0
    doubted: bool = False


def inline_source(ts: Timestamp) -> Source:
    """The source of the rows committed inline at `ts`."""
    return Source(f"@{ts}")


def inline_ts(source: Source) -> Timestamp:
    """When the rows of an inline source were committed."""
    return Timestamp(int(source.removeprefix("@")))


def is_file(source: Source) -> bool:
    """True if the rows of this source live in a data file."""
    return not source.startswith("@")
