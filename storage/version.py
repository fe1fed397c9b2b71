"""A version of a Delta table, as the log tells it: files, cut, and what has come with it."""

from dataclasses import dataclass

from storage.batch import Deletes
from storage.live_files import FileMap
from storage.types import Source, Timestamp


@dataclass(frozen=True, slots=True)
class Version:
    """A Delta version: all writes up to `cut`.

    `added` are the files that the version before had not; `deletes` are the deletes of
    (previous cut, cut] by time, all resolved to files as the version before names them.
    `merged_from` is the first of several versions in the log that this one stands for
    (`storage/cuts.py`). `rewritten` are the files that a compaction brought: nothing new is in
    them.
    """

    number: int
    cut: Timestamp
    files: FileMap
    added: tuple[Source, ...] = ()
    deletes: tuple[tuple[Timestamp, Deletes], ...] = ()
    merged_from: int | None = None
    rewritten: tuple[Source, ...] = ()
    schema_text: str = ""
    """The definition that the log has told last; empty if nobody looked."""
    next_id: int | None = None
    """How many ids its rows and those before have taken (W1 of `row_versions.py`); None: the log
    does not say (W5)."""
    has_vectors: bool = False
    """Whether the log has told that files may have deletion vectors (G4 of `flush_plan.py`)."""
    behind_since: Timestamp | None = None
    """Since when a view is behind, as the log has told last (`view_marks.py`)."""

    @property
    def begins_table(self) -> bool:
        """True if nothing came before: all that it holds is `added` or deleted by `deletes`."""
        return 0 in (self.number, self.merged_from)

    @property
    def newest_write(self) -> Timestamp:
        """The last commit that came with this version."""
        written = [self.files[name].runs.times[-1] for name in self.added]
        return Timestamp(max(written + [ts for ts, _ in self.deletes], default=0))

    def wrote_between(self, after: Timestamp, upto: Timestamp) -> bool:
        """True if a commit with after < ts <= upto came with this version."""
        return any(after < ts <= upto for ts, _ in self.deletes) or any(
            self.files[name].runs.any_within(after, upto) for name in self.added
        )
