"""Which rows a plan depends on, as stories; and by brute force that other rows do not matter."""

from dataclasses import replace

import pyarrow as pa
import pytest
from pyroaring import BitMap64

from compute.access.row_predicates import RowPredicate
from compute.arrow import table_schema
from compute.reference.executor import execute_plan
from sql.binder.bind import bind
from sql.catalog.catalog import Catalog, Column, Table
from sql.parser.parse import parse
from sql.plan.nodes import Plan, RelationId
from sql.plan.read_conditions import read_conditions
from sql.statements.bound import BoundQuery, Modify
from sql.types.sql_type import INT4, INT8, TEXT, Value
from storage.batch import InlineSlice, ShardView
from storage.known_rows import KnownRows
from storage.types import ShardId, Source
from tests.support.transcript import Command, run_transcript
from tests.unit.sql.described import TESTDATA, context

COLUMNS = (Column("id", INT8), Column("k", INT4), Column("v", INT4), Column("s", TEXT))
TABLES = {
    ("public", name): Table(oid, "public", name, f"shard_{name}", COLUMNS)
    for oid, name in enumerate(("l", "r"), 20_000)
}
SCHEMA = table_schema(COLUMNS)

Row = tuple[Value, ...]


def plan_of(text: str) -> Plan:
    """The plan of a query, or the source of a modification."""
    (statement,) = parse(text)
    bound = bind(statement, replace(context(), catalog=Catalog(1, tables=TABLES)), ()).bound
    match bound:
        case BoundQuery():
            return bound.plan
        case Modify():
            return bound.source
        case _:
            raise AssertionError(bound)


def _answer(command: Command) -> str:
    lines: list[str] = []
    for relation, conditions in sorted(read_conditions(plan_of(command.body)).items()):
        table = TABLES["public", relation.removeprefix("shard_")]
        shown = "all" if conditions is None else RowPredicate(table, conditions, ()).describe()
        lines.append(f"{table.name}: {shown}")
    return "\n".join(lines) or "-"


def test_story() -> None:
    run_transcript(TESTDATA / "read_conditions.txt", _answer)


# --- D1 by brute force ---------------------------------------------------------------------------

VALUES = (None, 1, 2)
ROWS: tuple[Row, ...] = tuple((i, None, v, None) for i in VALUES for v in VALUES)

QUERIES = [
    f"select l.id, l.v, r.id, r.v from l {kind} join r on {on} {where}"
    for kind in ("inner", "left", "right", "full")
    for on in ("l.id = r.id", "l.id = r.id and l.v = 1", "l.id = r.id and r.v = 1", "r.v = 2")
    for where in (
        "",
        "where l.id = 1",
        "where r.id = 1",
        "where l.v = 1 and r.v is null",
        "where r.v is distinct from 1 and l.v = 2",
        "where coalesce(l.v, r.v) = 1 and l.id = r.v",
    )
] + [
    "select count(*) from l where v = 1",
    "select v, count(*) from l group by v having v = 1",
    "select v, count(*) from l group by v having count(*) > 1",
    "select max(id) from l where v = 1 having max(id) > 1",
    "select * from l where id in (select id from r where v = 1) and v = 2",
    "select * from l where id not in (select id from r where v = 1) and v = 2",
    "select * from l where not exists (select from r where r.id = l.id and r.v = l.v) and v = 1",
    "select (select max(v) from r where r.id = l.id and r.v < 2) from l where l.v = 1",
    "select * from l where (select count(*) from r where r.v = 1) = 1",
    "select * from l, lateral (select v from r where r.id = l.id and r.v = 1) x where l.v = 2",
    "select * from l left join lateral (select v from r where r.id = l.id) x on x.v = 1",
    "select * from (select id + 1 as n, v from l) x where n = 2 and v = 1",
    "select * from (select * from l order by id, v limit 1) x where v = 1",
    "select distinct v from l where id = 1",
    "select id from l where v = 1 union all select id from r where v = 2",
    "select * from (select id from l union select v from r) x where id = 1",
    "select id from l where v = 1 except select id from r where v = 2",
    "select * from l a join l b on a.id = b.v where a.v = 1 and b.id = 2",
    "select * from l where id = 1 or v = 2",
    "select * from l where case when id = 1 then v = 2 else false end",
]


def _view(name: str, rows: list[Row]) -> ShardView:
    columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    arrays = [pa.array(list(c), f.type) for c, f in zip(columns, SCHEMA, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=SCHEMA)
    piece = InlineSlice(Source("@1"), table, BitMap64())
    return ShardView(ShardId(f"shard_{name}"), SCHEMA, "k", (), (piece,))


def _known(row: Row) -> KnownRows:
    return KnownRows.of(_view("l", [row]).inline[0].rows)


@pytest.mark.parametrize("text", QUERIES)
def test_rows_that_do_not_match_change_nothing(text: str) -> None:
    """Add each possible row to each table, at several contents: it matches, or changes nothing."""
    plan = plan_of(text)
    found = read_conditions(plan)
    contents: list[list[Row]] = [[], [ROWS[4]], [ROWS[3], ROWS[4], ROWS[8]], list(ROWS[:5])]
    spared = 0
    for left in contents:
        for right in contents:
            inputs = {"l": left, "r": right}
            before = _result(plan, inputs)
            for name, present in inputs.items():
                conditions = found.get(RelationId(f"shard_{name}"), ())
                if conditions is None:
                    continue
                predicate = RowPredicate(TABLES["public", name], conditions, ())
                for row in ROWS:
                    if predicate.matches(_known(row)):
                        continue
                    spared += 1
                    after = _result(plan, {**inputs, name: [*present, row]})
                    assert after == before, f"{row} of {name} does not match, and matters"
    assert spared or all(conditions is None for conditions in found.values())


def _result(plan: Plan, inputs: dict[str, list[Row]]) -> list[Row]:
    views = {RelationId(f"shard_{name}"): _view(name, rows) for name, rows in inputs.items()}
    return sorted(execute_plan(plan, views), key=repr)
