"""Fold the changes of a batch: what becomes of each key, column by column; pure.

    (1, 'a', big) ─ UPDATE (1, 'b', UNCHANGED) ─ UPDATE (2, 'c', UNCHANGED)
        ─▶ goes: key 1 · comes: (2, 'c', UNCHANGED), whose UNCHANGED is the value of our row 1

INVARIANTS
  S4  states are folded in order, through changes of the key. A value that some record of the batch
      gave is never replaced by UNCHANGED; only one that no record gave is.
  S5  applying the result once is the same as applying the changes one by one.

Without a key, rows are told apart by all their values, and counted: one equal row goes.
"""

import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ingest.reader import UNCHANGED, ChangeKind, ChangeRow, Unchanged, UpstreamChange
from sql.types.sql_type import Value

FoldedKey: TypeAlias = "tuple[Value | Unchanged, ...]"


@dataclass(frozen=True, slots=True)
class FoldedRow:
    """The state of a row after the batch.

    `origin` is the key that the row had before it: its UNCHANGED values are that row's. None: the
    row came with the batch. An UNCHANGED value without an origin is one that nobody knows.
    """

    row: ChangeRow
    origin: "FoldedKey | None" = None


@dataclass(slots=True)
class FoldedChanges:
    """What a table with a key has to do, in this order: truncate, remove, add."""

    truncated: bool = False
    gone: set[FoldedKey] = field(default_factory=set)
    """Keys of rows from before the batch that are to be removed, if they are there."""
    rows: dict[FoldedKey, FoldedRow] = field(default_factory=dict)
    """What is to be added, by its key."""


@dataclass(frozen=True, slots=True)
class FoldedBag:
    """What a table without a key has to do, in this order: truncate, remove, add."""

    truncated: bool
    gone: Sequence[ChangeRow]
    """One equal row goes for each of them."""
    rows: Sequence[ChangeRow]


def fold_changes(changes: Iterable[UpstreamChange], key: Sequence[int]) -> FoldedChanges:
    """Fold the changes of a table whose key is at these places (S4)."""
    folded = FoldedChanges()
    for change in changes:
        match change.kind:
            case ChangeKind.TRUNCATE:
                folded = FoldedChanges(truncated=True)
            case ChangeKind.INSERT:
                new = _given(change.new)
                folded.rows[folded_key(new, key)] = FoldedRow(new)
            case ChangeKind.UPDATE:
                _fold_update(folded, change, key)
            case ChangeKind.DELETE:
                old = folded_key(_given(change.old), key)
                if folded.rows.pop(old, None) is None and not folded.truncated:
                    folded.gone.add(old)
    return folded


def _fold_update(folded: FoldedChanges, change: UpstreamChange, key: Sequence[int]) -> None:
    new = _given(change.new)
    new_key = folded_key(new, key)
    old_key = new_key if change.old is None else folded_key(change.old, key)
    before = folded.rows.pop(old_key, None)
    if before is not None:
        folded.rows[new_key] = FoldedRow(_fill(new, before.row), before.origin)
    elif folded.truncated or old_key in folded.gone:
        # Our own row is gone: a bad record has superseded it. Nobody knows its values.
        folded.rows[new_key] = FoldedRow(new)
    else:
        folded.gone.add(old_key)
        folded.rows[new_key] = FoldedRow(new, old_key)


def _fill(new: ChangeRow, before: ChangeRow) -> ChangeRow:
    if UNCHANGED not in new:
        return new
    return tuple(
        [old if value is UNCHANGED else value for value, old in zip(new, before, strict=True)]
    )


def _given(row: "ChangeRow | None") -> ChangeRow:
    assert row is not None, "the contract of UpstreamChange: the row is there"
    return row


def folded_key(row: ChangeRow, key: Sequence[int]) -> FoldedKey:
    """The values of the key."""
    # As PostgreSQL compares keys, all NaN are one value.
    found = tuple([_NAN if row[at] != row[at] else row[at] for at in key])
    assert UNCHANGED not in found, "upstream sends keys whole"
    return found


_NAN: Final = float("nan")


def fold_bag(changes: Iterable[UpstreamChange]) -> FoldedBag:
    """Fold the changes of a table without a key."""
    truncated = False
    gone: Counter[FoldedKey] = Counter()
    came: Counter[FoldedKey] = Counter()
    rows: dict[FoldedKey, ChangeRow] = {}

    def remove(row: ChangeRow) -> None:
        exact = exact_values(row)
        rows[exact] = row
        if came[exact] > 0:
            came[exact] -= 1
        elif not truncated:
            gone[exact] += 1

    for change in changes:
        if change.kind is ChangeKind.TRUNCATE:
            truncated, gone, came = True, Counter(), Counter()
            continue
        if change.old is not None:
            remove(change.old)
        if change.new is not None:
            exact = exact_values(change.new)
            rows[exact] = change.new
            came[exact] += 1
    return FoldedBag(truncated, _repeated(gone, rows), _repeated(came, rows))


def _repeated(counts: Counter[FoldedKey], rows: Mapping[FoldedKey, ChangeRow]) -> list[ChangeRow]:
    return [rows[exact] for exact in counts.elements()]


def exact_values(row: ChangeRow) -> FoldedKey:
    """The row such that rows are equal if their bits are: a NaN is one, and -0 is not 0."""
    return tuple([_exact(value) for value in row])


def _exact(value: "Value | Unchanged") -> "Value | Unchanged":
    if isinstance(value, float):
        return struct.pack("!d", value)
    if isinstance(value, tuple):
        return tuple([struct.pack("!d", one) if isinstance(one, float) else one for one in value])
    return value
