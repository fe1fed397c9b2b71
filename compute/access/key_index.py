"""Index of the keys of a table view: find duplicates and locate rows by key, without an engine.

    view ─┬─ small inline slices      a dictionary, to which each look-up adds the new slices
          ├─ large slices, own rows   compared column by column
          └─ files                    those whose statistics and filter may hold a key: their key
                                      columns, read once and cached while there is room

INVARIANTS
  Z1  a row counts only if it is live in the given view; the index itself only names candidates.
  Z2  memory is bounded by TAIL_ROWS_MAX, beyond which only the dictionary of the newest look-up
      stays, and by CACHED_BYTES_MAX for columns of files; those that were used longest ago go
      first. Filters of files (`bloom_filters.py`) are small and stay when the columns are evicted.
  Z3  a look-up passes the slices that no whole view has shown that was looked at, and is not newer.
      Such a view showed all that later ones show of its commits: what is deleted does not return.
"""

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import pyarrow as pa
from pyroaring import BitMap64

from compute.access.bloom_filters import FEW_KEYS_MAX, BloomFilterCache, build_bloom_filter
from compute.access.computed_keys import ComputedKey, key_ordinals
from compute.access.file_bounds import FileBounds
from compute.access.key_predicates import KeyValues, NewKeys, SingleKey, columns_of_key
from compute.access.row_keys import RowKey, row_keys
from compute.access.sorted_keys import SortedKeys
from compute.access.warm_columns import WarmColumn
from compute.arrow import table_schema
from sql.catalog.catalog import Key
from storage.batch import DataFile, Deletes, FileSlice, InlineSlice, RowIdentity, ShardView
from storage.known_rows import KnownRows
from storage.row_schema import conform_to_schema
from storage.types import OWN, ShardId, Source, Timestamp, inline_ts
from storage.unencoded_rows import UnencodedRows

ReadColumns: TypeAlias = Callable[[ShardId, DataFile, Sequence[str]], pa.Table]
"""Loads some columns of all rows of a data file. Blocks."""

ReadRows: TypeAlias = Callable[[ShardId, DataFile, Sequence[int]], pa.Table]
"""Loads some rows of a data file, all columns; the indexes ascend. Blocks."""

_ColumnsOfFile: TypeAlias = tuple[ShardId, Source, int]
"""The key columns of a file, by their `columns_id`."""

RowsWarm: TypeAlias = Callable[[ShardId, DataFile, Sequence[int]], bool]
"""Whether rows of a data file are in memory."""


def _never_warm(_shard: ShardId, _file: DataFile, _rows: Sequence[int]) -> bool:
    return False


WarmRow: TypeAlias = Callable[[ShardId, DataFile, int], tuple[Mapping[str, WarmColumn], int] | None]
"""The columns by name that hold a row of a data file, and its place in them, if it is in memory."""


def _no_warm_row(_shard: ShardId, _file: DataFile, _row: int) -> None:
    return None


WARM_KEYS_MAX: Final = 20
"""Keys that are looked up on the loop, if their files are in memory. Larger: longer stalls."""

UNFILTERED_FILES_MAX: Final = 3
"""Files in which several keys are searched without asking their filters first, if their key columns
are in memory and sorted. Larger: more to search than hashing the keys would cost."""

SMALL_ROWS_MAX: Final = 1_000
"""Rows of a commit whose keys go into the dictionary."""

OWN_ROWS_MAX: Final = 20_000
"""Own rows that are compared on the loop. Larger: longer stalls, 0.1 ms for so many. Smaller:
long blocks leave the short way sooner."""

CACHED_BYTES_MAX: Final = 192 << 20
"""Key columns of files. Larger: fewer files read again for keys without an order, such as UUIDs."""

TAIL_ROWS_MAX: Final = 500_000
"""Rows in all dictionaries together; the least recently used dictionary is evicted first."""


SEEN_COMMITS_MAX: Final = 256
"""Looked-at commits that are kept of a dictionary. Larger: a reader whose timestamp is older than
all of them pays less often for a look at every slice."""

_NEVER: Final = Timestamp(0)


@dataclass(slots=True)
class _Tail:
    """The small inline slices of one shard by one key."""

    rows: dict[KeyValues, list[tuple[Source, int]]] = field(
        default_factory=dict[KeyValues, list[tuple[Source, int]]]
    )
    known: set[Source] = field(default_factory=set[Source])
    count: int = 0
    seen: list[Timestamp] = field(default_factory=list[Timestamp])
    """Whole views up to these commits were looked at; they ascend (Z3)."""
    large: list[Source] = field(default_factory=list[Source])
    """Slices that are not in the dictionary."""

    @property
    def slices(self) -> int:
        """How many it knows of."""
        return len(self.known) + len(self.large)

    def add_seen(self, view: ShardView) -> None:
        """All slices of a view were looked at."""
        if view.upto is None or not view.is_whole:
            return
        place = bisect_right(self.seen, view.upto)
        if place == 0 or self.seen[place - 1] != view.upto:
            self.seen.insert(place, view.upto)
            if len(self.seen) > SEEN_COMMITS_MAX:
                del self.seen[0]

    def seen_before(self, view: ShardView) -> Timestamp:
        """The newest commit up to which everything was looked at that the view shows."""
        place = 0 if view.upto is None else bisect_right(self.seen, view.upto)
        return self.seen[place - 1] if place else _NEVER

    def unknown(self, view: ShardView) -> list[InlineSlice]:
        """The slices of a view that are not in the dictionary (Z3)."""
        before = self.seen_before(view)
        new: list[InlineSlice] = []
        for part in reversed(view.inline):
            if part.source != OWN:
                if inline_ts(part.source) <= before:
                    break
                if part.source in self.known or part.source in self.large:
                    continue
            new.append(part)
        large = [view.inline_slice(source) for source in self.large]
        return [*(part for part in large if part is not None), *reversed(new)]


class KeyIndex:
    """See the module. A server has one, which its threads share."""

    def __init__(
        self,
        read: ReadColumns,
        read_rows: ReadRows,
        rows_warm: RowsWarm = _never_warm,
        warm_row: WarmRow = _no_warm_row,
    ) -> None:
        self.read_columns = read
        """For who looks at columns that are no key."""
        self.read_rows = read_rows
        """For who wants the rows that were located."""
        self.rows_warm = rows_warm
        """Whether `read_rows` would not block."""
        self.warm_row = warm_row
        """A row where it stands, without a copy, if it is in memory."""
        self._tails: OrderedDict[tuple[ShardId, tuple[str, ...]], _Tail] = OrderedDict()
        self._columns: OrderedDict[_ColumnsOfFile, SortedKeys] = OrderedDict()
        self._filters = BloomFilterCache()
        self._bounds = FileBounds()
        self._bytes = 0
        self._tail_rows = 0
        # Threads that look up keys of several statements change both maps.
        self._lock = threading.Lock()

    def find_in_memory(self, view: ShardView, keys: NewKeys, going: Deletes) -> KeyValues | None:
        """One of the keys that a live inline row has. `going`: rows that are deleted, too."""
        tail, others = self._tail(view, keys)
        wanted = keys.values if keys.is_small and keys.count <= len(tail.rows) else ()
        for values in wanted:
            for source, row in tail.rows.get(values, ()):
                part = view.inline_slice(source)
                if part is not None and _is_live(part.deleted, going, source, row):
                    return values
        for part in others if wanted else view.inline:
            rows = columns_of_key(keys.key, part.rows)
            live = _Live(part.source, part.num_rows, part.deleted, going)
            found = _first(rows, keys.among(rows), live)
            if found is not None:
                return found
        return None

    def files(self, view: ShardView, keys: NewKeys) -> tuple[FileSlice, ...]:
        """The files that may hold one of the keys."""
        parts = [part for part in view.files if keys.may_be_in(part.file)]
        return tuple(
            self._filtered(view.shard, parts, keys) if keys.count <= FEW_KEYS_MAX else parts
        )

    def _filtered(
        self, shard: ShardId, parts: Sequence[FileSlice], keys: NewKeys
    ) -> Sequence[FileSlice]:
        """The files that may hold a key by their Bloom filters."""
        if len(parts) <= UNFILTERED_FILES_MAX:
            places = [_place(shard, part.file.name, keys) for part in parts]
            known = [self._columns.get(place) for place in places]
            if all(columns is not None and columns.is_ordered for columns in known):
                return parts
        return [
            part for part in parts if not self._lacks(_place(shard, part.file.name, keys), keys)
        ]

    def _lacks(self, place: _ColumnsOfFile, keys: NewKeys | SingleKey) -> bool:
        """Whether the Bloom filter of a file excludes all of the keys."""
        known = self._filters.get(place)
        if known is None or keys.hashes is None:
            return False
        return not known.may_have(keys.hashes)

    def find_in_files(
        self, shard: ShardId, parts: Sequence[FileSlice], keys: NewKeys, going: Deletes
    ) -> KeyValues | None:
        """One of the keys that a live row of these files has. Blocks."""
        for part in parts:
            place = _place(shard, part.file.name, keys)
            if keys.count > FEW_KEYS_MAX and self._lacks(place, keys):
                continue
            rows = self._file_columns(shard, part.file, keys)
            live = _Live(part.file.name, part.row_limit, part.deleted, going)
            found = _first(rows.rows, rows.among(keys), live)
            if found is not None:
                return found
        return None

    def is_warm(self, view: ShardView, keys: NewKeys, files: Sequence[FileSlice]) -> bool:
        """Whether a look-up of these keys in these files reads no file and compares few rows."""
        if keys.count > WARM_KEYS_MAX or not keys.is_small:
            return False
        places = [_place(view.shard, part.file.name, keys) for part in files]
        with self._lock:
            known = [self._columns.get(place) for place in places]
        return all(columns is not None and columns.is_ordered for columns in known)

    def locate(
        self, view: ShardView, keys: NewKeys, going: Deletes, files: Sequence[FileSlice]
    ) -> dict[RowKey, RowIdentity]:
        """The live rows that have one of the keys. `files`: those of the view that may hold one.
        Blocks if there are any.
        """
        tail, others = self._tail(view, keys)
        wanted = keys.values if keys.is_small else ()
        found: dict[RowKey, RowIdentity] = {}
        for values in wanted:
            for source, row in tail.rows.get(values, ()):
                part = view.inline_slice(source)
                if part is not None and _is_live(part.deleted, going, source, row):
                    found[values] = (source, row)
        for part in others if wanted else view.inline:
            rows = columns_of_key(keys.key, part.rows)
            live = _Live(part.source, part.num_rows, part.deleted, going)
            found.update(_places(keys, rows, keys.among(rows), live))
        for file in files:
            columns = self._file_columns(view.shard, file.file, keys)
            live = _Live(file.file.name, file.row_limit, file.deleted, going)
            found.update(_places(keys, columns.rows, columns.among(keys), live))
        return found

    def locate_all(self, view: ShardView, keys: NewKeys) -> list[RowIdentity]:
        """All live rows that have one of the keys, which several rows may share. Blocks."""
        found: list[RowIdentity] = []
        for part in view.inline:
            rows = columns_of_key(keys.key, part.rows)
            found += [(part.source, row) for row in keys.among(rows) if row not in part.deleted]
        for file in self.files(view, keys):
            columns = self._file_columns(view.shard, file.file, keys)
            found += [
                (file.file.name, row)
                for row in keys.among(columns.rows)
                if row < file.row_limit and row not in file.deleted
            ]
        return found

    def places(
        self,
        view: ShardView,
        key: SingleKey,
        *,
        may_read: bool,
        at_most: int | None = None,
        is_unique: bool = False,
    ) -> list[RowIdentity] | None:
        """The live rows that have a key, found by sorted key columns. Without `may_read` the answer
        is None if a file would have to be read or many rows compared; with it, the call may block.
        Raises TooManyRows if a file or slice has more than `at_most` such rows, live or not.
        `is_unique`: no two live rows of any view have the key, so one is enough.
        """
        tail, others = self._tail(view, key)
        found: list[RowIdentity] = []
        versions: Sequence[RowIdentity] = tail.rows.get(key.values, ())
        # A row that changes often has left many versions: the newest one of the view is near.
        for source, row in reversed(versions) if is_unique else versions:
            part = view.inline_slice(source)
            if part is not None and row not in part.deleted:
                found.append((source, row))
                if is_unique:
                    return found
        for part in others:
            columns = self._inline_columns(view.shard, part, key, may_read=may_read)
            if columns is None:
                return None
            rows = columns.having(key, at_most)
            found += [(part.source, row) for row in rows if row not in part.deleted]
        for file in view.files:
            place = _place(view.shard, file.file.name, key)
            if not self._bounds.may_hold(place, file.file, key):
                continue
            columns = self._columns.get(place)
            # The filter may be there though the columns were evicted (Z2).
            if (columns is None or not columns.is_quick) and self._lacks(place, key):
                continue
            if columns is None and may_read:
                columns = self._file_columns(view.shard, file.file, key)
            if columns is None or not (may_read or columns.is_ordered):
                return None
            rows = columns.having(key, at_most)
            if rows:
                self._used(place)
            for row in rows:
                if row < file.row_limit and row not in file.deleted:
                    found.append((file.file.name, row))
                    if is_unique:
                        return found
        return found

    def _used(self, place: _ColumnsOfFile) -> None:
        """Columns have given a row (Z2)."""
        with self._lock:
            if place in self._columns:
                self._columns.move_to_end(place)

    def _inline_columns(
        self, shard: ShardId, part: InlineSlice, key: SingleKey, *, may_read: bool
    ) -> SortedKeys | None:
        """The key columns of a slice that is not in the dictionary."""
        if part.source == OWN:
            # They have the same name in every transaction, and others come with each statement.
            is_small = may_read or part.num_rows <= OWN_ROWS_MAX
            return SortedKeys(columns_of_key(key.key, part.rows), once=True) if is_small else None
        place = _place(shard, part.source, key)
        columns = self._columns.get(place)
        if columns is None and (may_read or part.num_rows <= SMALL_ROWS_MAX):
            columns = SortedKeys(columns_of_key(key.key, part.rows))
            with self._lock:
                self._keep(place, columns)
        if columns is None or not (may_read or columns.is_ordered):
            return None
        return columns

    def _tail(
        self, view: ShardView, keys: NewKeys | SingleKey
    ) -> tuple[_Tail, Sequence[InlineSlice]]:
        """The dictionary, and the slices of the view that are not in it."""
        with self._lock:
            return self._grown_tail(view, keys)

    def _grown_tail(
        self, view: ShardView, keys: NewKeys | SingleKey
    ) -> tuple[_Tail, Sequence[InlineSlice]]:
        place = (view.shard, keys.fields)
        tail = self._tails.get(place)
        if tail is None or tail.slices > 2 * len(view.inline) + SMALL_ROWS_MAX:
            self._forget(place)
            tail = self._tails[place] = _Tail()
        self._tails.move_to_end(place)
        before = tail.count
        others: list[InlineSlice] = []
        for part in tail.unknown(view):
            if part.source != OWN and part.num_rows <= SMALL_ROWS_MAX:
                for row, values in enumerate(_keys_of(keys.key, part)):
                    tail.rows.setdefault(values, []).append((part.source, row))
                tail.known.add(part.source)
                tail.count += part.num_rows
                continue
            others.append(part)
            if part.source != OWN and part.source not in tail.large:
                tail.large.append(part.source)
        tail.add_seen(view)
        self._tail_rows += tail.count - before
        while self._tail_rows > TAIL_ROWS_MAX and len(self._tails) > 1:
            self._forget(next(iter(self._tails)))
        return tail, others

    def _forget(self, place: tuple[ShardId, tuple[str, ...]]) -> None:
        tail = self._tails.pop(place, None)
        if tail is not None:
            self._tail_rows -= tail.count

    def _file_columns(
        self, shard: ShardId, file: DataFile, keys: NewKeys | SingleKey
    ) -> SortedKeys:
        place = _place(shard, file.name, keys)
        with self._lock:
            rows = self._columns.get(place)
            if rows is not None:
                self._columns.move_to_end(place)
        if rows is None:
            read = self._key_columns(shard, file, keys)
            rows = SortedKeys(read)
            made = None
            if self._filters.get(place) is None and tuple(read.schema.types) == keys.types:
                made = build_bloom_filter(read.columns)
            with self._lock:
                self._keep(place, rows)
                if made is not None:
                    self._filters.add(place, made)
        return rows

    def _key_columns(self, shard: ShardId, file: DataFile, keys: NewKeys | SingleKey) -> pa.Table:
        """The key columns of all rows of a file, read and, if need be, computed."""
        ordinals = key_ordinals(keys.key)
        names = [keys.table.columns[ordinal].field for ordinal in ordinals]
        read = self.read_columns(shard, file, names)
        if read.schema.names != names:
            schema = table_schema([keys.table.columns[ordinal] for ordinal in ordinals])
            read = conform_to_schema(read, schema)
        if not isinstance(keys.key, ComputedKey):
            return read
        return keys.key.columns_of(dict(zip(ordinals, read.columns, strict=True)))

    def _keep(self, place: _ColumnsOfFile, rows: SortedKeys) -> None:
        if place in self._columns or rows.nbytes > CACHED_BYTES_MAX // 4:
            return
        self._columns[place] = rows
        self._bytes += rows.nbytes
        while self._bytes > CACHED_BYTES_MAX:
            _, gone = self._columns.popitem(last=False)
            self._bytes -= gone.nbytes


def _place(shard: ShardId, name: Source, keys: NewKeys | SingleKey) -> _ColumnsOfFile:
    return shard, name, keys.columns_id


def _keys_of(key: Key, part: InlineSlice) -> Iterator[KeyValues]:
    """The keys of all rows of a slice."""
    stored = part.stored
    if isinstance(stored, UnencodedRows) and not isinstance(key, ComputedKey):
        ordinals = key.columns
        return iter([tuple([row[at] for at in ordinals]) for row in stored.values])
    return _keys(columns_of_key(key, part.rows))


def _keys(rows: pa.Table) -> Iterator[KeyValues]:
    known = KnownRows.of(rows)
    return zip(*[known.values(place) for place in range(rows.num_columns)], strict=True)


@dataclass(frozen=True, slots=True)
class _Live:
    """Which rows of a source count: the first `limit`, without two kinds of deleted ones."""

    source: Source
    limit: int
    deleted: BitMap64
    going: Deletes

    def has(self, row: int) -> bool:
        return row < self.limit and _is_live(self.deleted, self.going, self.source, row)


def _first(rows: pa.Table, candidates: Sequence[int], live: _Live) -> KeyValues | None:
    """The key of the first live candidate."""
    for row in candidates:
        if live.has(row):
            one = KnownRows.of(rows.slice(row, 1))
            return tuple(one.values(place)[0] for place in range(rows.num_columns))
    return None


def _places(
    keys: NewKeys, rows: pa.Table, candidates: Sequence[int], live: _Live
) -> dict[RowKey, RowIdentity]:
    """The live candidates by their keys."""
    chosen = [row for row in candidates if live.has(row)]
    if not chosen:
        return {}
    found = row_keys(keys.key, rows.take(pa.array(chosen, pa.int64())))
    return {
        values: (live.source, row)
        for values, row in zip(found, chosen, strict=True)
        if values is not None
    }


def _is_live(deleted: BitMap64, going: Deletes, source: Source, row: int) -> bool:
    return row not in deleted and row not in going.get(source, ())
