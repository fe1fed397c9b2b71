"""Delta statistics of a data file: row count, nulls, and bounds that truly bound the values.

INVARIANTS
  N1  every value of a column lies within its bounds, in the order in which readers compare them;
      a column without bounds may hold anything.
  N2  strings are cut at 32 characters, the upper bound rounded up; timestamps are rounded outward
      to milliseconds; decimals and integers are exact.

Nothing of arrays and structs, no bounds for booleans and bytes (nobody skips by them), for floats
with a NaN (readers disagree where it sorts) or an infinity (JSON has none), nor for dates outside
the years 1 to 9999. Only the first 32 columns have statistics, as Delta's own writers do it.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Context, Decimal
from functools import lru_cache
from typing import Final, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from storage.errors import Corrupt

Bound: TypeAlias = int | float | Decimal | str

COLUMNS_MAX: Final = 32
STRING_CHARACTERS_MAX: Final = 32
LAST_CHARACTER: Final = "\U0010ffff"

_EXACT: Final = Context(prec=76)
_EPOCH: Final = datetime(1970, 1, 1)
_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """One column of one file. Bounds are None if unknown; dates and timestamps are integers."""

    name: str
    nulls: int | None
    least: Bound | None
    greatest: Bound | None


def encode_statistics(rows: int, schema: pa.Schema, columns: Iterator[ColumnStatistics]) -> str:
    """The `stats` of an `add`, for a file without deleted rows."""
    least: list[str] = []
    greatest: list[str] = []
    nulls: list[str] = []
    for column in columns:
        key, type_ = json.dumps(column.name), schema.field(column.name).type
        if column.nulls is not None:
            nulls.append(f"{key}:{column.nulls}")
        for bounds, value, upper in (
            (least, column.least, False),
            (greatest, column.greatest, True),
        ):
            text = None if value is None else _encode_bound(value, type_, upper=upper)
            if text is not None:
                bounds.append(f"{key}:{text}")
    return (
        f'{{"numRecords":{rows},"minValues":{{{",".join(least)}}},'
        f'"maxValues":{{{",".join(greatest)}}},"nullCount":{{{",".join(nulls)}}},'
        '"tightBounds":true}'
    )


def table_statistics(rows: pa.Table) -> str:
    """The statistics of rows in memory."""
    return encode_statistics(rows.num_rows, rows.schema, _table_columns(rows))


def parquet_statistics(metadata: pq.FileMetaData, schema: pa.Schema) -> str:
    """The statistics of a Parquet file that somebody else wrote, by its footer."""
    return encode_statistics(metadata.num_rows, schema, _footer_columns(metadata, schema))


def loosened(stats: str) -> str:
    """The statistics once rows are deleted: the bounds hold, but may not be attained any more."""
    return stats.replace('"tightBounds":true', '"tightBounds":false')


def tightened(stats: str) -> str:
    """The statistics of the file itself, whatever is deleted in it."""
    return stats.replace('"tightBounds":false', '"tightBounds":true')


def row_count(stats: str) -> int:
    """The rows of the file, deleted ones too. Raises Corrupt."""
    try:
        return int(json.loads(stats)["numRecords"])
    except (ValueError, KeyError, TypeError) as error:
        raise Corrupt(f"statistics of a file: {error!r}") from None


def unbounded_columns(rows: pa.Table, stats: str) -> list[str]:
    """The columns of which some value lies outside the bounds (N1). Raises Corrupt."""
    try:
        noted = json.loads(stats, parse_float=Decimal)
        wrong: list[str] = []
        for column in _table_columns(rows):
            type_ = rows.schema.field(column.name).type
            least = _decode_bound(noted["minValues"].get(column.name), type_)
            greatest = _decode_bound(noted["maxValues"].get(column.name), type_)
            if not _within(rows, column, least, greatest):
                wrong.append(column.name)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(f"statistics of a file: {error!r}") from None
    return wrong


def null_counts(stats: str) -> dict[str, int]:
    """The nulls of each column that has a count. Raises Corrupt."""
    try:
        counts = json.loads(stats)["nullCount"]
        return {str(name): int(count) for name, count in counts.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(f"statistics of a file: {error!r}") from None


def column_bounds(stats: str, name: str, type_: pa.DataType) -> tuple[Bound | None, Bound | None]:
    """The bounds of a column (N1); None where there is none. Raises Corrupt."""
    try:
        least, greatest = _noted_bounds(stats)
        return _decode_bound(least.get(name), type_), _decode_bound(greatest.get(name), type_)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Corrupt(f"statistics of a file: {error!r}") from None


@lru_cache(maxsize=4_096)
def _noted_bounds(stats: str) -> tuple[Mapping[str, Bound], Mapping[str, Bound]]:
    """As they are written. Remembered: the same files are looked at again and again."""
    noted = json.loads(stats, parse_float=Decimal)
    return noted.get("minValues", {}), noted.get("maxValues", {})


def _within(
    rows: pa.Table, column: ColumnStatistics, least: Bound | None, greatest: Bound | None
) -> bool:
    if (least is None and greatest is None) or column.nulls == rows.num_rows:
        return True
    # Values but no bounds of their own: there is a NaN among them, which no bounds hold.
    if column.least is None or column.greatest is None:
        return False
    return (least is None or _at_most(least, column.least)) and (
        greatest is None or _at_most(column.greatest, greatest)
    )


def _at_most(lesser: Bound, greater: Bound) -> bool:
    """Strings by code point; numbers exactly, whatever they were."""
    if isinstance(lesser, str) or isinstance(greater, str):
        return str(lesser) <= str(greater)
    return Decimal(lesser) <= Decimal(greater)


def _decode_bound(value: Bound | None, type_: pa.DataType) -> Bound | None:
    if value is None:
        return None
    # Readers take the digits of a float for the float that they came from.
    if pa.types.is_floating(type_):
        return float(value)
    if not pa.types.is_temporal(type_):
        return value
    if pa.types.is_date(type_):
        return date.fromisoformat(str(value)).toordinal() - _EPOCH_ORDINAL
    moment = datetime.fromisoformat(str(value).removesuffix("Z"))
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _table_columns(rows: pa.Table) -> Iterator[ColumnStatistics]:
    for field in list(rows.schema)[:COLUMNS_MAX]:
        if pa.types.is_nested(field.type):
            continue
        bounds = _table_bounds(rows, field) if _bounded(field.type) else (None, None)
        yield ColumnStatistics(field.name, rows.column(field.name).null_count, *bounds)


def _table_bounds(
    rows: pa.Table, field: "pa.Field[pa.DataType]"
) -> tuple[Bound | None, Bound | None]:
    values = rows.column(field.name)
    if pa.types.is_floating(field.type) and pc.any(pc.is_nan(values)).as_py():
        return None, None
    if pa.types.is_temporal(field.type):
        values = values.cast(pa.int32() if pa.types.is_date(field.type) else pa.int64())
    bounds = cast("dict[str, Bound | None]", pc.min_max(values).as_py())
    return bounds["min"], bounds["max"]


def _footer_columns(metadata: pq.FileMetaData, schema: pa.Schema) -> Iterator[ColumnStatistics]:
    positions = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    for field in list(schema)[:COLUMNS_MAX]:
        if pa.types.is_nested(field.type):
            continue
        position = positions[field.name]
        groups = [
            metadata.row_group(group).column(position) for group in range(metadata.num_row_groups)
        ]
        counts = [_footer_nulls(group) for group in groups]
        nulls = None if None in counts else sum(count or 0 for count in counts)
        bounds = [
            pair
            for group, count in zip(groups, counts, strict=True)
            if count != group.num_values
            for pair in [_footer_bounds(group, field.type)]
        ]
        least, greatest = _combined(bounds)
        yield ColumnStatistics(field.name, nulls, least, greatest)


def _footer_nulls(group: pq.ColumnChunkMetaData) -> int | None:
    statistics = group.statistics
    # None also when the footer does not say.
    return None if statistics is None else statistics.null_count


def _footer_bounds(group: pq.ColumnChunkMetaData, type_: pa.DataType) -> tuple[Bound, Bound] | None:
    """Footers leave NaN out of the bounds of floats, so those say nothing."""
    statistics = group.statistics
    useless = not _bounded(type_) or pa.types.is_floating(type_)
    if useless or statistics is None or not statistics.has_min_max:
        return None
    if group.physical_type == "INT96":
        return None
    least = cast("int | bytes", statistics.min_raw)
    greatest = cast("int | bytes", statistics.max_raw)
    try:
        return _from_raw(least, type_), _from_raw(greatest, type_)
    except UnicodeDecodeError:
        return None


def _from_raw(raw: int | bytes, type_: pa.DataType) -> Bound:
    """The logical value of a physical one."""
    if pa.types.is_decimal(type_):
        unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)
        return Decimal(unscaled).scaleb(-type_.scale, _EXACT)
    if isinstance(raw, bytes):
        return raw.decode()
    return raw


def _combined(bounds: list[tuple[Bound, Bound] | None]) -> tuple[Bound | None, Bound | None]:
    known = [pair for pair in bounds if pair is not None]
    if not known or len(known) < len(bounds):
        return None, None
    # Bounds of one column have one type, whose order is Python's.
    return min(p[0] for p in known), max(p[1] for p in known)


def _bounded(type_: pa.DataType) -> bool:
    return not (pa.types.is_boolean(type_) or pa.types.is_binary(type_))


def _encode_bound(value: Bound, type_: pa.DataType, *, upper: bool) -> str | None:
    """The bound as JSON, rounded outward (N2), or None if it cannot be said."""
    match value:
        case str():
            bound = _string_bound(value, upper=upper)
            return None if bound is None else json.dumps(bound)
        case float():
            return repr(value) if math.isfinite(value) else None
        case Decimal():
            return format(value, "f")
        case int() if pa.types.is_temporal(type_):
            return _temporal_bound(value, type_, upper=upper)
        case int():
            return str(value)


def _string_bound(value: str, *, upper: bool) -> str | None:
    if len(value) <= STRING_CHARACTERS_MAX:
        return value
    end = STRING_CHARACTERS_MAX
    if not upper:
        return value[:end]
    # The character after the cut must be less than the one that stands for "anything".
    while end < len(value) and value[end] == LAST_CHARACTER:
        end += 1
    return value if end == len(value) else value[:end] + LAST_CHARACTER


def _temporal_bound(value: int, type_: pa.DataType, *, upper: bool) -> str | None:
    try:
        if pa.types.is_date(type_):
            return f'"{date.fromordinal(value + _EPOCH_ORDINAL).isoformat()}"'
        millis = -(-value // 1_000) if upper else value // 1_000
        moment = _EPOCH + timedelta(milliseconds=millis)
    except (ValueError, OverflowError):
        return None
    zone = "" if type_ == pa.timestamp("us") else "Z"
    return f'"{moment.isoformat(timespec="milliseconds")}{zone}"'
