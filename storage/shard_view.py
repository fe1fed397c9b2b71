"""Build a ShardView: slices by source; only those that deletes touch are copied (B4).

A view of a tail of thousands of one-row commits is asked for at every read, so the builder does as
little as possible per commit: it collects references, and looks at deletes once at the end.
"""

from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyroaring import BitMap64

from storage.batch import DataFile, Deletes, FileSlice, InlineSlice, ShardView, WriteBatch
from storage.live_files import FileMap, SlicesDigest, slice_digest
from storage.row_schema import conform_to_schema, has_schema
from storage.types import OWN, ShardId, Source

EMPTY: Final = BitMap64()


class ViewBuilder:
    """Collects the layers of one view: base, part of the next version or tail, own writes."""

    def __init__(self, base: FileMap) -> None:
        live_files = [live for live in base.live_files() if not live.dead]
        self._files = {live.file.name: live.whole for live in live_files}
        self._digest = sum(live.digest for live in live_files)
        self._inline: dict[Source, InlineSlice] = {}
        self._deletes: dict[Source, list[BitMap64]] = {}

    def add_file(self, file: DataFile, row_limit: int) -> None:
        """The first rows of a file that the base has not."""
        if row_limit:
            part = FileSlice(file, row_limit, EMPTY)
            self._files[file.name] = part
            self._digest += slice_digest(part)

    def add_inline(self, part: InlineSlice) -> None:
        """The rows of one commit."""
        self._inline[part.source] = part

    def delete(self, deletes: Deletes) -> None:
        """Rows that are gone; they must be in the view."""
        for source, rows in deletes.items():
            self._deletes.setdefault(source, []).append(rows)

    def add_own(self, own: WriteBatch) -> None:
        """A transaction's own writes, on top of everything; rows gone already are ignored."""
        if own.rows is not None and own.rows.num_rows:
            self.add_inline(InlineSlice(OWN, own.rows, EMPTY))
        for file in own.staged:
            self.add_file(file, file.rows)
        present = self._inline.keys() | self._files.keys()
        self.delete({source: own.deletes[source] for source in own.deletes if source in present})

    def hide(self, rows: Deletes) -> None:
        """Leave out rows, those of them that are here."""
        for source, hidden in rows.items():
            inline, part = self._inline.get(source), self._files.get(source)
            end = 0 if part is None else part.row_limit
            end = end if inline is None else inline.num_rows
            self.delete({source: BitMap64([row for row in hidden if row < end])})

    def view(self, shard: ShardId, schema: pa.Schema) -> ShardView:
        """The finished view. Slices without a live row are left out."""
        for source, bitmaps in self._deletes.items():
            rows = bitmaps[0] if len(bitmaps) == 1 else BitMap64.union(*bitmaps)
            if rows:
                self._delete(source, rows)
        for source, part in self._inline.items():
            if not has_schema(part.stored.schema, schema):
                self._inline[source] = replace(part, stored=conform_to_schema(part.rows, schema))
        return ShardView(
            shard=shard,
            schema=schema,
            files_key=SlicesDigest(self._digest),
            files=tuple(self._files.values()),
            inline=tuple(self._inline.values()),
        )

    def _delete(self, source: Source, rows: BitMap64) -> None:
        inline = self._inline.get(source)
        if inline is None:
            self._delete_in_file(source, rows)
            return
        assert rows.max() < inline.num_rows, "B2: a deleted row exists"
        if len(rows) == inline.num_rows:
            del self._inline[source]
        else:
            self._inline[source] = replace(inline, deleted=rows)

    def _delete_in_file(self, source: Source, rows: BitMap64) -> None:
        before = self._files.get(source)
        assert before is not None, f"B2: a deleted row exists, but {source} is not in the view"
        deleted = before.deleted | rows
        assert deleted.max() < before.row_limit, "B2: a deleted row exists"
        self._digest -= slice_digest(before)
        if len(deleted) == before.row_limit:
            del self._files[source]
        else:
            after = FileSlice(before.file, before.row_limit, deleted)
            self._digest += slice_digest(after)
            self._files[source] = after


def selected_rows(view: ShardView, rows: Deletes) -> ShardView:
    """A view of some rows of a view, named as it names them; those that it lacks are left out."""
    files: list[FileSlice] = []
    inline: list[InlineSlice] = []
    for part in view.files:
        wanted = rows.get(part.file.name)
        if wanted is not None:
            left_out = BitMap64(range(part.row_limit)) - (wanted - part.deleted)
            if len(left_out) < part.row_limit:
                files.append(FileSlice(part.file, part.row_limit, left_out))
    for piece in view.inline:
        wanted = rows.get(piece.source)
        if wanted is not None:
            left_out = BitMap64(range(piece.num_rows)) - (wanted - piece.deleted)
            if len(left_out) < piece.num_rows:
                inline.append(replace(piece, deleted=left_out))
    digest = SlicesDigest(sum(map(slice_digest, files)))
    return ShardView(view.shard, view.schema, digest, tuple(files), tuple(inline))
