"""The input of a vacuum, made by the core: the state of a shard, and which files are in use.

Pure, for the core. The deleting is `vacuum.py`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from storage.live_files import LiveFile
from storage.shard import ShardState
from storage.types import ShardId, Timestamp


@dataclass(frozen=True, slots=True)
class Vacuuming:
    """What is vacuumed: the shard as it is, and who uses what. Names are relative to the table."""

    shard: ShardId
    number: int
    """The newest version; -1: there is none."""
    cut: Timestamp
    since: Timestamp
    frontier: Timestamp
    ticks_per_ms: int
    in_use: frozenset[str]
    suspects: frozenset[str]
    """Orphans that may go, if they still are."""
    taken_over: int | None = None
    """The newest version when this coordinator took over; None: the table is younger than that."""

    @property
    def is_alone(self) -> bool:
        """No coordinator before this one can bring a version any more: its number is taken."""
        return self.taken_over is None or self.number > self.taken_over


def names_in_use(
    state: ShardState, rewritten: Iterable[LiveFile], staged: Iterable[str]
) -> frozenset[str]:
    """The files of a table that somebody may still read or commit."""
    names: set[str] = {*staged}
    for version in state.versions:
        for live in version.files.live_files():
            names.add(live.file.name)
            if live.vector is not None and live.vector.storage_type == "u":
                names.add(live.vector.file_name)
    for commit in state.tail:
        names.update(file.name for file in commit.batch.staged)
    names.update(live.file.name for live in rewritten)
    return frozenset(names)
