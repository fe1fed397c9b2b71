"""Encode numeric columns in PostgreSQL's binary format, without a loop if 64 bits suffice.

    unscaled 64-bit numbers ─▶ groups of four digits, aligned at the point ─▶ zeros cut ─▶ cells

INVARIANTS
  G1  every cell equals `values.encode_numeric` of its value.
"""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from coordinator.pgwire.cells import VariableCells, big_endian, valid_mask
from ingest.copy_text.kernels import (
    Bytes,
    Column,
    Ints,
    Mask,
    decimal_scale,
    decimal_words,
    from_offsets,
)
from sql.types.sql_type import NUMERIC_PRECISION_MAX, SqlType

SCALE_MAX: Final = 18
"""More digits behind the point than 64 bits hold."""

_SHORT_SCALE: Final = 9
_HEADER_BYTES: Final = 8
_GROUP_DIGITS: Final = 4
_GROUP: Final = 10_000
_WHOLE_GROUPS: Final = 5
_NEGATIVE: Final = 0x4000
_ZEROS_BEHIND: Final = np.array(
    [4 if n == 0 else len(str(n)) - len(str(n).rstrip("0")) for n in range(_GROUP)], np.int64
)


def numeric_cells(column: Column, type_: SqlType) -> VariableCells | None:
    """The cells; None if a number needs more than 64 bits."""
    if len(column) == 0:
        return None
    column = _shorter(column) if type_.trim else column
    scale = decimal_scale(column.type)
    low, high = decimal_words(column)
    too_wide = (high != low >> 63).any() or (low == np.iinfo(np.int64).min).any()
    if scale > SCALE_MAX or too_wide:
        return None
    groups = _groups(np.abs(low), scale)
    used = groups != 0
    present = used.any(axis=1)
    first = np.where(present, used.argmax(axis=1), 0)
    last = groups.shape[1] - 1 - used[:, ::-1].argmax(axis=1)
    count = np.where(present, last - first + 1, 0)
    scales = _display_scales(groups, scale) if type_.trim else np.full(len(low), scale, np.int64)
    weight = np.where(present, _WHOLE_GROUPS - 1 - first, 0)
    sign = np.where(low < 0, _NEGATIVE, 0)
    header = np.hstack([big_endian(part, ">i2") for part in (count, weight, sign, scales)])
    return _cut(header, groups, first, count, valid_mask(column))


def _shorter(column: Column) -> Column:
    """With half the digits behind the point, if no number has more: then more fit 64 bits."""
    if decimal_scale(column.type) <= _SHORT_SCALE:
        return column
    try:
        return column.cast(pa.decimal128(NUMERIC_PRECISION_MAX, _SHORT_SCALE))
    except pa.ArrowInvalid:
        return column


def _groups(unscaled: Ints, scale: int) -> Ints:
    """Groups of each number: `_WHOLE_GROUPS` before the point, then those behind it."""
    whole, rest = np.divmod(unscaled, np.int64(10**scale))
    columns: list[Ints] = []
    for _ in range(_WHOLE_GROUPS):
        whole, group = np.divmod(whole, np.int64(_GROUP))
        columns.insert(0, group)
    digits = scale
    while digits > 0:
        # The last group is filled up with zeros behind.
        taken = min(digits, _GROUP_DIGITS)
        group, rest = np.divmod(rest, np.int64(10 ** (digits - taken)))
        columns.append(group * np.int64(10 ** (_GROUP_DIGITS - taken)))
        digits -= taken
    return np.stack(columns, axis=1)


def _display_scales(groups: Ints, scale: int) -> Ints:
    """How many digits behind the point are not trailing zeros."""
    behind = groups[:, _WHOLE_GROUPS:]
    if scale == 0:
        return np.zeros(len(groups), np.int64)
    used = behind != 0
    last = behind.shape[1] - 1 - used[:, ::-1].argmax(axis=1)
    final = behind[np.arange(len(behind)), last]
    needed = _GROUP_DIGITS * (last + 1) - _ZEROS_BEHIND[final]
    return np.where(used.any(axis=1), needed, 0)


def _cut(
    header: Bytes, groups: Ints, first: Ints, count: Ints, valid: Mask | None
) -> VariableCells:
    """Headers and the groups between the first and the last that are not zero."""
    places = np.arange(groups.shape[1])
    kept = (places >= first[:, None]) & (places < (first + count)[:, None])
    sizes = _HEADER_BYTES + 2 * count
    mask = np.hstack([np.ones(header.shape, np.bool_), np.repeat(kept, 2, axis=1)])
    if valid is not None:
        mask &= valid[:, None]
        sizes = np.where(valid, sizes, 0)
    digits = np.ascontiguousarray(groups.astype(">i2")).view(np.uint8).reshape(len(groups), -1)
    starts: npt.NDArray[np.int32] = np.zeros(len(groups) + 1, np.int32)
    np.cumsum(sizes, out=starts[1:])
    return VariableCells(from_offsets(starts, np.hstack([header, digits])[mask]), valid)
