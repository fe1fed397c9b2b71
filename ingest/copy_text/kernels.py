"""Typed adapters for the few pyarrow and numpy calls that rows and COPY are made of.

pyarrow's stubs do not follow its kernels (overloads by kind of array, missing arguments), so this
module is the adapter: `Any` stays in it, and everybody else sees `Column` and numpy arrays.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv

if TYPE_CHECKING:
    Column: TypeAlias = pa.Array[pa.Scalar[pa.DataType]]
else:
    # Only the stubs make it generic.
    Column = pa.Array
Bytes: TypeAlias = npt.NDArray[np.uint8]
Ints: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]

_pc: Final[Any] = pyarrow.compute
_csv: Final[Any] = pyarrow.csv
_np: Final[Any] = np
_pa: Final[Any] = pa
_NOTHING: Final = pa.scalar(b"", pa.binary())


def join_pieces(*pieces: Column | str | bytes) -> Column:
    """The pieces of each row side by side; NULL if one of them is."""
    is_text = any(isinstance(p, str) or (isinstance(p, pa.Array) and _is_text(p)) for p in pieces)
    joined: Column = _pc.binary_join_element_wise(*pieces, "" if is_text else _NOTHING)
    return joined


def _is_text(column: Column) -> bool:
    return pa.types.is_string(column.type)


def fill_nulls(column: Column, value: object) -> Column:
    """The column with a value for NULL."""
    if column.null_count == 0:
        return column
    result: Column = _pc.fill_null(column, value)
    return result


def choose_by_mask(mask: Mask | Column, then: Column | str, otherwise: Column | str) -> Column:
    """`then` where the mask is true, else `otherwise`."""
    condition = _pa.array(mask) if isinstance(mask, np.ndarray) else mask
    result: Column = _pc.if_else(condition, then, otherwise)
    return result


def with_nulls_of(texts: Column, column: Column) -> Column:
    """NULL where the column is."""
    if column.null_count == 0:
        return texts
    result: Column = _pc.if_else(column.is_valid(), texts, pa.scalar(None, texts.type))
    return result


def null_where(column: Column, mask: Mask) -> Column:
    """NULL where the mask is true."""
    if not mask.any():
        return column
    result: Column = _pc.if_else(_pa.array(mask), pa.scalar(None, column.type), column)
    return result


def replace_masked(texts: Column, mask: Mask, patches: Column) -> Column:
    """The texts with the masked ones replaced by the patches, in order."""
    result: Column = _pc.replace_with_mask(texts, _pa.array(mask), patches)
    return result


def filter_rows(column: Column, mask: Mask) -> Column:
    """The masked rows."""
    result: Column = column.filter(_pa.array(mask))
    return result


def take_rows(column: Column, places: Ints) -> Column:
    """The rows at these places, in this order."""
    result: Column = column.take(_pa.array(places))
    return result


def take_valid(column: Column, places: Ints, valid: Mask) -> Column:
    """The rows at these places, in this order, for the rows that the mask has; NULL for others."""
    if valid.all():
        return take_rows(column, places)
    spread = np.zeros(len(valid), np.int64)
    spread[valid] = places
    result: Column = column.take(_pa.array(spread, mask=~valid))
    return result


def concat_columns(columns: Sequence[Column], type_: pa.DataType) -> Column:
    """One behind the other; of that type if there are none."""
    if not columns:
        return column_of([], type_)
    column: Column = columns[0] if len(columns) == 1 else _pa.concat_arrays(list(columns))
    return column


def dictionary_of(column: Column) -> tuple[Column, Ints]:
    """The different values, and for each row the place of its own."""
    encoded: Any = column.dictionary_encode()
    return encoded.dictionary, numbers(encoded.indices).astype(np.int64)


def trim_right(texts: Column, characters: str) -> Column:
    """Without these characters at the end."""
    result: Column = _pc.ascii_rtrim(texts, characters)
    return result


def pad_right(texts: Column, width: int) -> Column:
    """With blanks up to so many characters."""
    result: Column = _pc.utf8_rpad(texts, width)
    return result


def pad_right_with(texts: Column, width: int, padding: str) -> Column:
    """Padded to a number of characters; longer texts stay."""
    padded: Column = _pc.utf8_rpad(texts, width, padding)
    return padded


def replace_regex(texts: Column, pattern: str, replacement: str) -> Column:
    """What RE2 matches is replaced; the replacement may name its groups."""
    replaced: Column = _pc.replace_substring_regex(texts, pattern, replacement)
    return replaced


def parts_of_text(texts: Column, pattern: str) -> dict[str, Column] | None:
    """The named groups of a pattern, "" for those that are not there; None if a text does not
    match. NULL stays NULL.
    """
    found: Any = _pc.extract_regex(texts, pattern)
    if found.null_count != texts.null_count:
        return None
    return {
        found.type.field(at).name: _pc.struct_field(found, [at])
        for at in range(found.type.num_fields)
    }


def split_texts(texts: Column, trimmed: int, separator: str) -> tuple[Column, Ints]:
    """The parts of all texts but for so many characters at both ends, and how many each has; a
    text of which nothing is left has none, and so has NULL.
    """
    inner = _pc.utf8_slice_codeunits(texts, trimmed, -trimmed)
    lists: Any = _pc.split_pattern(inner, separator)
    counts: Ints = numbers(_pc.list_value_length(lists)).astype(np.int64)
    is_empty = mask_of(_pc.equal(inner, ""))
    parts: Column = filter_rows(lists.flatten(), np.repeat(~is_empty, counts))
    return parts, np.where(is_empty, 0, counts)


def lists_of(items: Column, counts: Ints, nulls: Mask) -> Column:
    """A column of lists: the items, so many for each row; NULL where the mask says so."""
    ends = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    starts = _pa.array(ends, mask=np.append(nulls, [False]))
    lists: Column = _pa.ListArray.from_arrays(starts, items)
    return lists


def structs_of(columns: Sequence[Column], type_: pa.DataType, nulls: Mask) -> Column:
    """A column of a struct's type, of its fields; NULL where the mask says so."""
    assert isinstance(type_, pa.StructType), "it has fields"
    fields = [*type_]
    structs: Column = _pa.StructArray.from_arrays(
        list(columns), fields=fields, mask=_pa.array(nulls)
    )
    return structs


def is_nearer_zero(column: Column, bound: "pa.Scalar[pa.DataType]") -> Mask:
    """Which values are nearer to zero than the bound; NULL is not."""
    return mask_of(_pc.less(_pc.abs(column), bound))


def equal(column: Column, value: object) -> Mask:
    """Which values are equal; NULL is not."""
    return mask_of(_pc.equal(column, value))


def mask_of(column: Column) -> Mask:
    """A boolean column as a mask; NULL is false."""
    mask: Mask = _pc.fill_null(column, False).to_numpy(zero_copy_only=False)
    return mask


def numbers(column: Column) -> npt.NDArray[Any]:
    """The numbers of a column, 0 for NULL."""
    values: npt.NDArray[Any] = fill_nulls(column, 0).to_numpy(zero_copy_only=False)
    return values


def greatest_number(column: Column) -> int:
    """Of the days or microseconds in a column of times or of arrays of them; 0 if that is more."""
    values: Any = _pc.list_flatten(column) if pa.types.is_list(column.type) else column
    whole = pa.int32() if pa.types.is_date32(values.type) else pa.int64()
    return max(_pc.max(values.cast(whole)).as_py() or 0, 0)


def offsets(values: Column) -> npt.NDArray[np.int32]:
    """Where the values of a string or binary column start, and where the last one ends."""
    count = len(values)
    buffer = values.buffers()[1]
    if buffer is None or count == 0:
        return np.zeros(count + 1, np.int32)
    starts: npt.NDArray[np.int32] = _np.frombuffer(buffer, np.int32, count + 1, values.offset * 4)
    return starts


def characters(values: Column) -> Bytes:
    """The bytes that `offsets` counts in."""
    buffer = values.buffers()[2] if len(values) else None
    data: Bytes = np.empty(0, np.uint8) if buffer is None else _np.frombuffer(buffer, np.uint8)
    return data


def content(values: Column) -> memoryview:
    """The bytes of all values, one behind the other, without a copy."""
    starts = offsets(values)
    buffer = values.buffers()[2] if len(values) else None
    if buffer is None:
        return memoryview(b"")
    view: memoryview = memoryview(_pa.py_buffer(buffer))[int(starts[0]) : int(starts[-1])]
    return view


def from_offsets(starts: npt.NDArray[np.int32], data: Bytes) -> Column:
    """A binary column of consecutive slices of the data, without a copy."""
    buffers = [None, _pa.py_buffer(starts), _pa.py_buffer(data)]
    column: Column = _pa.Array.from_buffers(pa.binary(), len(starts) - 1, buffers)
    return column


def column_of(values: Sequence[object] | npt.NDArray[Any], type_: pa.DataType) -> Column:
    """A column of Python or numpy values."""
    column: Column = _pa.array(values, type_)
    return column


def to_python_list(column: Column) -> list[Any]:
    """Python values, None for NULL."""
    values: list[Any] = _pa.Array.to_pylist(column)
    return values


def as_text(column: Column) -> Column:
    """Arrow's own text of the values."""
    return column.cast(pa.string())


def decimal_scale(type_: pa.DataType) -> int:
    """Digits behind the point of a decimal type."""
    assert isinstance(type_, pa.Decimal128Type), "numeric is decimal128"
    scale: int = type_.scale
    return scale


def round_decimals(column: Column, digits: int) -> Column:
    """Decimals with so many digits behind the point; a half is rounded away from zero."""
    rounded: Column = _pc.round(column, digits, round_mode="half_towards_infinity")
    return rounded


def match_regex(texts: Column, pattern: str) -> Column:
    """Which texts match the regular expression (RE2)."""
    result: Column = _pc.match_substring_regex(texts, pattern)
    return result


def text_lengths(texts: Column) -> Ints:
    """Characters of each text, 0 for NULL."""
    counts: Ints = numbers(_pc.utf8_length(texts)).astype(np.int64)
    return counts


def replace_text(texts: Column, old: str, new: str) -> Column:
    """Every occurrence replaced."""
    result: Column = _pc.replace_substring(texts, old, new)
    return result


def contains_substring(texts: Column, piece: str) -> Mask:
    """Which texts contain the piece; NULL does not."""
    return mask_of(_pc.match_substring(texts, piece))


def parse_fields(
    block: bytes, count: int, *, delimiter: str, quote: str | None, null: str
) -> list[Column]:
    """Delimited lines as columns of strings; an unquoted `null` is NULL. Raises ArrowInvalid."""
    names = [f"c{index}" for index in range(count)]
    table = _csv.read_csv(
        pa.BufferReader(block),
        read_options=_csv.ReadOptions(
            use_threads=False, block_size=len(block) + 1, column_names=names
        ),
        parse_options=_csv.ParseOptions(
            delimiter=delimiter,
            quote_char=quote or False,
            double_quote=quote is not None,
            escape_char=False,
            newlines_in_values=quote is not None,
            ignore_empty_lines=False,
        ),
        convert_options=_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return [chunked.combine_chunks() for chunked in table.columns]


def decimal_words(column: Column) -> tuple[Ints, Ints]:
    """The low and high 64 bits of the unscaled numbers of a decimal128 column, 0 for NULL."""
    buffer = column.buffers()[1]
    count = len(column)
    words: Ints = _np.frombuffer(buffer, np.int64, 2 * count, column.offset * 16).reshape(count, 2)
    if column.null_count:
        words = np.where(mask_of(column.is_valid())[:, None], words, 0)
    return words[:, 0], words[:, 1]
