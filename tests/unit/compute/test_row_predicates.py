"""Predicates of scans: equal ones are one, parameters are constants, statistics of files."""

from decimal import Decimal

import pyarrow as pa
import pytest

from compute.access.key_predicates import NewKeys
from compute.access.row_predicates import RowPredicate
from compute.arrow import table_schema
from coordinator.core.predicates import (
    BULKS_MAX,
    KEYS_MAX,
    PREDICATE_BYTES_MAX,
    PREDICATES_MAX,
    KeyLookUps,
    ReadSet,
)
from sql.binder.bind import bind
from sql.catalog.catalog import Catalog, Column, Key, Table
from sql.parser.parse import parse
from sql.plan.nodes import RelationId
from sql.plan.read_conditions import ReadCondition, read_conditions
from sql.statements.bound import BoundQuery
from sql.types.sql_type import DATE, INT8, TEXT, TIMESTAMP, UUID, Value, numeric, varchar
from storage.batch import DataFile
from storage.delta.statistics import table_statistics
from storage.known_rows import KnownRows
from storage.types import Source
from tests.unit.sql.described import context

COLUMNS = (
    Column("id", INT8),
    Column("s", TEXT),
    Column("n", numeric(10, 2)),
    Column("d", DATE),
    Column("t", TIMESTAMP),
    Column("v", varchar(5)),
    Column("u", UUID),
)
KEY = Key("t_pkey", (0,), primary=True)
TABLE = Table(20_000, "public", "t", "shard", COLUMNS, keys=(KEY,))
CATALOG = Catalog(1, tables={("public", "t"): TABLE})
ROW = {
    "id": 5,
    "s": "abc",
    "n": Decimal("1.50"),
    "d": 18_000,
    "t": 1_000_000,
    "v": "xyz",
    "u": "00000000-0000-0000-0000-00000000000a",
}


def predicate(where: str, *parameters: Value) -> RowPredicate:
    """The predicate of a scan of t."""
    return RowPredicate(TABLE, conditions_of(where), parameters)


def conditions_of(where: str) -> tuple[ReadCondition, ...]:
    """The conditions of a scan of t."""
    (statement,) = parse(f"select * from t where {where}")
    base = context()
    bound = bind(
        statement,
        type(base)(catalog=CATALOG, search_path=("public",), now=base.now),
        (),
    ).bound
    assert isinstance(bound, BoundQuery)
    conditions = read_conditions(bound.plan)[RelationId("shard")]
    assert conditions is not None
    return conditions


def rows(*values: dict[str, object]) -> pa.Table:
    """Rows that are ROW but for some columns."""
    schema = table_schema(COLUMNS)
    columns: list[pa.Array[pa.Scalar[pa.DataType]]] = []
    for field in schema:
        column = [{**ROW, **row}[field.name] for row in values]
        plain = {"d": pa.int32(), "t": pa.int64()}.get(field.name, field.type)
        columns.append(pa.array(column, plain).cast(field.type))
    return pa.Table.from_arrays(columns, schema=schema)


CONDITIONS = [
    ("id = 5", True),
    ("id = 6", False),
    ("id > 5", False),
    ("id >= 5 and s = 'abc'", True),
    ("s < 'abc'", False),
    ("s between 'ab' and 'b'", True),
    ("n = 1.5", True),
    ("n > 1.5", False),
    ("d = date '2019-04-14'", True),
    ("d > date '2019-04-14'", False),
    ("t = timestamp '1970-01-01 00:00:01'", True),
    ("t < timestamp '1970-01-01 00:00:01'", False),
    ("v = 'xyz'", True),
    ("v in ('a', 'b')", False),
    ("u = '00000000-0000-0000-0000-00000000000A'", True),
    ("u = '00000000-0000-0000-0000-00000000000b'", False),
    ("id in (1, 2, 3)", False),
    ("id in (1, 5)", True),
    ("id = null", False),
]


@pytest.mark.parametrize(("where", "holds"), CONDITIONS)
def test_one_row_in_memory_and_in_a_file(where: str, *, holds: bool) -> None:
    table = rows({})
    file = DataFile(Source("f"), 1, 1, table_statistics(table))
    found = predicate(where)
    assert found.matches(KnownRows.of(table)) is holds
    assert found.may_match_file(file) or not holds
    points = found.points
    if points is not None and points.only:
        known = KnownRows.of(table)
        key = tuple(known.values(ordinal)[0] for ordinal in points.ordinals)
        assert (key in points.keys) is holds


@pytest.mark.parametrize("where", [where for where, holds in CONDITIONS if not holds])
def test_statistics_of_a_file_spare_ranges_beside_it(where: str) -> None:
    file = DataFile(Source("f"), 1, 1, table_statistics(rows({})))
    # Strict comparisons at a bound are not told from others; long strings are cut, and NULL has no
    # place.
    untold = any(part in where for part in (" > ", " < ", "u = ", "null"))
    assert predicate(where).may_match_file(file) is untold


def test_files_without_statistics_may_match() -> None:
    assert predicate("id = 1").may_match_file(DataFile(Source("f"), 1, 1, '{"numRecords":1}'))
    assert predicate("id = 1").may_match_file(DataFile(Source("f"), 1, 1, "not json"))


def test_a_column_that_is_not_known_may_hold_anything() -> None:
    known = KnownRows.of(rows({}))
    partly = KnownRows(known.count, {0: known.columns[0]})
    assert predicate("s = 'other'").matches(partly)
    assert predicate("id = 5 and s = 'other'").matches(partly)
    assert not predicate("id = 6 and s = 'other'").matches(partly)
    assert predicate("id = 6 or s = 'other'").matches(partly)


def test_parameters_are_constants() -> None:
    assert predicate("id = $1", 5).matches(KnownRows.of(rows({})))
    assert not predicate("id = $1", 6).matches(KnownRows.of(rows({})))
    assert not predicate("id = $1", None).matches(KnownRows.of(rows({})))
    points = predicate("id = $1", 6).points
    assert points is not None
    assert points.keys == {(6,)}


@pytest.mark.parametrize("value", [5, None])
@pytest.mark.parametrize(
    "where",
    [
        "id = $1",
        "$1 = id",
        "s = 'abc' and id = $1",
        "id = $1 and id = 5",
        "id = $1 and s is not null",
        "id = $1 or s = 'abc'",
        "id in ($1, 6)",
        "id > $1",
        "id = $1 and s > 'a'",
        "id::int8 = $1 and u = '00000000-0000-0000-0000-00000000000a'",
    ],
)
def test_keys_are_known_without_a_look_at_the_conditions(where: str, value: Value) -> None:
    one, other = predicate(where, value), predicate(where, value)
    other._conjunctions()
    assert one.points == other._points


def test_an_error_is_a_match() -> None:
    assert predicate("1 / (id - 5) > 0").matches(KnownRows.of(rows({})))
    assert not predicate("id = 6 and 1 / (id - 5) > 0").matches(KnownRows.of(rows({})))


def test_equal_predicates_are_one() -> None:
    reads = ReadSet()
    for where in ("id = 5", "id = 5", "id = 6", "id = 5"):
        reads.add(predicate(where))
    reads.add(predicate("id = $1", 5))
    reads.add(predicate("id = $1", 5))
    assert reads.predicates is not None
    assert len(reads.predicates) == 3


def test_a_read_set_is_bounded() -> None:
    many, large = ReadSet(), ReadSet()
    conditions = conditions_of("id = $1")
    for number in range(PREDICATES_MAX + 1):
        assert many.predicates is not None
        many.add(RowPredicate(TABLE, conditions, (number,)))
    assert many.predicates is None
    large.add(predicate("s = $1", "x" * PREDICATE_BYTES_MAX))
    assert large.predicates is None


def new_keys(first: int, count: int) -> NewKeys:
    """Keys in a row."""
    return NewKeys(TABLE, KEY, pa.table({"id": pa.array(range(first, first + count), pa.int64())}))


def test_look_ups_of_one_constraint_are_one_predicate_and_bounded() -> None:
    look_ups = KeyLookUps()
    for number in range(500):
        look_ups.add(new_keys(number, 1).predicate())
    assert look_ups.predicates is not None
    (found,) = look_ups.predicates
    points = found.points
    assert points is not None
    assert len(points.keys) == 500
    for number in range(KEYS_MAX // 10_000):
        look_ups.add(new_keys(number * 10_000, 10_000).predicate())
    assert look_ups.predicates is None


def test_a_bulk_of_keys_is_looked_up_by_column() -> None:
    bulk = new_keys(0, 50_000).predicate()
    assert bulk.points is None
    assert bulk.matches(KnownRows.of(rows({"id": 49_999})))
    assert not bulk.matches(KnownRows.of(rows({"id": 50_000})))
    look_ups = KeyLookUps()
    for _ in range(BULKS_MAX + 1):
        look_ups.add(bulk)
    assert look_ups.predicates is None
