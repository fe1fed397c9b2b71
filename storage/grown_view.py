"""Make a ShardView from another one that has a little less: later commits, own writes, hidden rows.

    view ──┬─ slices, shared ───────────────▶ view
           └─ a few that deletes touch, or new ones

A view of thousands of commits costs as much as all of them; what is added since costs this much
again only for itself.

INVARIANTS
  G1  the view is equal to the one that `ViewBuilder` makes of all layers together.
  G2  slices of a tail ascend by the time of their commit, so that bisection finds one (`place_of`).
      Own rows come last.
  G3  who adds what cannot be added is told (`CannotGrowError`), and makes the view anew.
"""

from dataclasses import replace

from pyroaring import BitMap64

from storage.batch import DataFile, Deletes, FileSlice, InlineSlice, ShardView, WriteBatch, place_of
from storage.live_files import SliceChange, SlicesDigest
from storage.row_schema import conform_to_schema, has_schema
from storage.shard_view import EMPTY
from storage.types import OWN, Source, is_file


class CannotGrowError(Exception):
    """A row is to be deleted that is not in the view (G3)."""


class ViewGrower:
    """One view that is made from another; see the module."""

    def __init__(self, view: ShardView) -> None:
        self._view = view
        self._inline = list(view.inline)
        self._rows = view.inline_rows
        self._files: list[FileSlice] | None = None
        self._changes: dict[Source, SliceChange] = {}

    def add_file(self, file: DataFile, row_limit: int) -> None:
        """The first rows of a file that the view has not."""
        if row_limit:
            part = FileSlice(file, row_limit, EMPTY)
            self._changed_files().append(part)
            self._note(None, part)

    def add_inline(self, part: InlineSlice) -> None:
        """The rows of a commit after all others (G2)."""
        self._append(part)

    def delete(self, deletes: Deletes) -> None:
        """Rows that are gone; they must be in the view. Raises CannotGrowError."""
        for source, rows in deletes.items():
            if rows and not self._delete(source, rows):
                raise CannotGrowError

    def add_own(self, own: WriteBatch) -> None:
        """A transaction's own writes, on top of everything; rows gone already are ignored."""
        if own.rows is not None and own.rows.num_rows:
            self._append(InlineSlice(OWN, own.rows, EMPTY))
        for file in own.staged:
            self.add_file(file, file.rows)
        for source, rows in own.deletes.items():
            if rows:
                self._delete(source, rows)

    def hide(self, rows: Deletes) -> None:
        """Leave out rows, those of them that are here."""
        for source, hidden in rows.items():
            self._delete(source, hidden, or_beyond=True)

    def view(self) -> ShardView:
        """The finished view."""
        before = self._view
        key = before.files_key
        if self._changes:
            assert isinstance(key, SlicesDigest), "G1: the views of a shard have digests"
            key = key.changed(self._changes)
        files = before.files if self._files is None else tuple(self._files)
        inline = tuple(self._inline)
        rows = [self._rows]
        return ShardView(before.shard, before.schema, key, files, inline, rows, before.upto)

    def _append(self, part: InlineSlice) -> None:
        schema = self._view.schema
        if not has_schema(part.stored.schema, schema):
            part = replace(part, stored=conform_to_schema(part.rows, schema))
        self._inline.append(part)
        self._rows += part.num_rows

    def _delete(self, source: Source, rows: BitMap64, *, or_beyond: bool = False) -> bool:
        """Delete rows of a slice; False if it is not here. `or_beyond`: rows may be after its last
        one, and are left out.
        """
        if is_file(source):
            return self._delete_in_file(source, rows, or_beyond=or_beyond)
        at = place_of(self._inline, source)
        if at is None:
            return False
        part = self._inline[at]
        deleted = _with_deleted(part.deleted, rows, part.num_rows, or_beyond=or_beyond)
        if len(deleted) == part.num_rows:
            del self._inline[at]
            self._rows -= part.num_rows
        else:
            self._inline[at] = replace(part, deleted=deleted)
        return True

    def _delete_in_file(self, source: Source, rows: BitMap64, *, or_beyond: bool) -> bool:
        files = self._view.files if self._files is None else self._files
        at = next((at for at, part in enumerate(files) if part.file.name == source), None)
        if at is None:
            return False
        part = files[at]
        deleted = _with_deleted(part.deleted, rows, part.row_limit, or_beyond=or_beyond)
        if len(deleted) == part.row_limit:
            del self._changed_files()[at]
            self._note(part, None)
        else:
            after = FileSlice(part.file, part.row_limit, deleted)
            self._changed_files()[at] = after
            self._note(part, after)
        return True

    def _changed_files(self) -> list[FileSlice]:
        if self._files is None:
            self._files = list(self._view.files)
        return self._files

    def _note(self, before: FileSlice | None, after: FileSlice | None) -> None:
        part = before or after
        assert part is not None, "a slice that changes is there before or after"
        name = part.file.name
        known = self._changes.get(name)
        self._changes[name] = (before if known is None else known[0], after)


def _with_deleted(deleted: BitMap64, rows: BitMap64, end: int, *, or_beyond: bool) -> BitMap64:
    """All rows of a slice that are deleted, of which it has `end`."""
    if or_beyond and rows and rows.max() >= end:
        rows = BitMap64([row for row in rows if row < end])
    made = deleted | rows
    assert not made or made.max() < end, "B2: a deleted row exists"
    return made
