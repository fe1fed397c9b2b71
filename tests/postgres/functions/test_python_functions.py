"""What goes to Spark's workers, and what they answer; no worker is started here."""

import pickle
import re
from decimal import Decimal
from typing import Any, cast
from unittest import mock

import pyarrow as pa
import pytest

from compute.engine_sql import engine_sql
from compute.reference.aggregates import aggregate_fold
from compute.reference.function_table import implementations
from compute.reference.registry import AGGREGATES, Maker, Registry, type_independent
from compute.reference.set_returning import SETS
from compute.reference.tagged_errors import decode_error, encode_error
from compute.reference.windows import WINDOWS
from compute.spark import python_functions as outside_functions
from compute.spark.python_functions import ArrowFunction
from sql.binder.expressions.acting_calls import ROW_CALL_FUNCTIONS
from sql.binder.expressions.record_functions import RECORD_FUNCTIONS
from sql.binder.expressions.session_calls import SIDE_EFFECT_FUNCTIONS
from sql.emit.emitted_query import EmittedQuery
from sql.emit.spark.dialect import emit
from sql.emit.state import WorkerFunction
from sql.errors import SqlError
from sql.function_list import function_list_page
from sql.functions.table import FunctionKind, all_functions
from sql.plan.nodes import Aggregate, Const, RelationId
from sql.types.sql_type import FLOAT8, INT4, NUMERIC, TEXT, SqlType
from tests.engines.spark.shared_engine import plan_of

JSONB = SqlType("jsonb")
COLUMNS = [("id", INT4), ("x", FLOAT8), ("doc", JSONB), ("name", TEXT), ("names", SqlType("_text"))]


def answers(function: ArrowFunction, argument: "pa.Array[Any]") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = cast("Any", function(argument)).to_pylist()
    return found


def emitted(text: str) -> EmittedQuery:
    return emit(plan_of(text, t=COLUMNS, u=COLUMNS), {RelationId(r): r for r in ("t", "u")})


def function(text: str) -> ArrowFunction:
    """The only function of a statement, as a worker gets it."""
    ((name, found),) = emitted(text).functions.items()
    sent = pickle.loads(pickle.dumps(ArrowFunction(name, found)))
    assert isinstance(sent, ArrowFunction)
    return sent


@pytest.mark.parametrize(
    ("text", "functions"),
    [
        ("select id + 1, upper(name) from t", 0),
        ("select doc -> 'a' ->> 'b' from t", 1),
        # Equal expressions are one function; what is above them stays Spark's.
        ("select id from t where length(doc ->> 'b') = id and doc ->> 'b' <> 'x'", 1),
        ("select case when id = 1 then doc ->> 'a' else name || initcap(name) end from t", 2),
        # Each side has a key of its own, by which the join can sort.
        ("select t.id from t join u on t.doc = u.doc", 1),
        ("select t.id from t join u on t.doc -> 'a' = u.doc -> 'b'", 2),
        ("select jsonb_agg(id order by x) filter (where id > 1) from t", 1),
        ("select jsonb_agg(doc -> 'a') from t", 2),
        ("select count(*) from t group by doc order by doc", 1),
        # The lambda of Spark's `transform` runs no function, so all of the cast goes outside.
        ("select names::jsonb[] from t", 1),
        ("select doc -> (select max(name) from u where u.id = t.id) from t", 1),
    ],
)
def test_what_goes_outside(text: str, functions: int) -> None:
    query = emitted(text)
    assert len(query.functions) == functions
    assert all(name in query.text for name in query.functions)


def test_explain_tells_what_is_computed_outside() -> None:
    plan = plan_of("select jsonb_agg(doc -> 'a' order by id) from t", t=COLUMNS)
    shown = engine_sql("spark", plan, ())
    assert shown is not None
    assert re.search(r"; Arrow UDF out_\w+: \(\$1 -> 'a'\)(;|$)", shown)
    assert re.search(r"; Arrow UDF out_\w+: jsonb_agg\(\$1, 'UTC' ORDER BY \$2.*\)", shown)


def test_names_tell_equal_values_apart_that_look_otherwise() -> None:
    names = {
        next(iter(emitted(f"select to_jsonb({number}) -> name from t").functions))
        for number in ("1.0", "1.00", "1", "1::float8", "'-0'::float8", "'0'::float8")
    }
    assert len(names) == 6
    both = emitted("select jsonb_object_agg((x * '0'::float8)::text, x * '-0'::float8) from t")
    assert [len(function.columns) for function in both.functions.values()] == [1, 2]
    constants = [WorkerFunction(Const(Decimal(text), NUMERIC), ()) for text in ("1.0", "1.00")]
    assert constants[0] != constants[1]


def test_volatile_functions_are_written_once() -> None:
    query = emitted("select random(1, 6) from t")
    (name,) = query.functions
    assert query.text.count(name) == 1


def test_errors_are_answers_of_their_rows() -> None:
    divide = function("select (doc -> 'a')::int from t")
    docs = pa.array(['{"a": 7}', '{"a": "x"}', None, "{}", '{"a": 1e10}'])
    found = answers(divide, docs)
    assert [answer["v"] for answer in found] == [7, None, None, None, None]
    failed = [decode_error(answer["e"]) if answer["e"] else None for answer in found]
    assert [error and (error.sqlstate, error.message) for error in failed] == [
        None,
        ("22023", "cannot cast jsonb string to type integer"),
        None,
        None,
        ("22003", "integer out of range"),
    ]


def test_too_little_memory_is_an_answer_too() -> None:
    def too_much(*_arguments: object) -> Any:
        raise MemoryError

    divide = function("select (doc -> 'a')::int from t")
    with mock.patch.object(outside_functions, "to_values", too_much):
        found = answers(divide, pa.array(['{"a": 7}', None]))
    assert [answer["v"] for answer in found] == [None, None]
    assert [decode_error(answer["e"]) for answer in found] == [
        SqlError("53200", "out of memory", detail="A worker of Spark needs more than it may take.")
    ] * 2


def test_an_aggregate_takes_lists_of_rows() -> None:
    collect = function("select jsonb_agg(name order by id desc) from t")
    rows = pa.array(
        [[{"x0": "a", "x1": 1}, {"x0": None, "x1": 3}, {"x0": "b", "x1": 2}], [], None],
        pa.list_(pa.struct([("x0", pa.string()), ("x1", pa.int32())])),
    )
    assert [answer["v"] for answer in answers(collect, rows)] == [
        '[null, "b", "a"]',
        None,
        None,
    ]


def test_a_window_makes_lists_of_values() -> None:
    frames = function("select array_agg(id) over (order by id groups 1 preceding) from t")
    rows = pa.array(
        [[{"x0": 2}, {"x0": 3}, {"x0": 3}, {"x0": 7}], [], None],
        pa.list_(pa.struct([("x0", pa.int32())])),
    )
    assert [answer["v"] for answer in answers(frames, rows)] == [
        [[2], [2, 3, 3], [2, 3, 3], [3, 3, 7]],
        [],
        [],
    ]


def test_an_error_passes_through_an_engine() -> None:
    error = SqlError("22P02", "no\nnumber", detail="Detail.", context="JSON data, line 1: xb")
    assert decode_error(encode_error(error)) == error
    assert decode_error("MERIDIAN: no error") is None


@pytest.mark.parametrize(
    "text",
    [
        "select array_agg(names) from t",
        "select (select max(x) from (select sum(u.id) over (order by u.id groups 1 preceding) x"
        " from u where u.id = t.id) q) from t",
        "select (select max(g) from u, generate_series(1,"
        " (select count(*) from u v where v.id = t.id and v.id > u.id)) g) from t",
    ],
)
def test_what_is_refused_says_who_may_run_it(text: str) -> None:
    with pytest.raises(SqlError) as caught:
        emitted(text)
    assert caught.value.sqlstate == "0A000"
    assert caught.value.hint == "The local engine may run it: SET engine = auto."


def test_the_evaluator_has_every_row() -> None:
    missing = [
        row.id
        for row in all_functions()
        if row.kind in (FunctionKind.FUNCTION, FunctionKind.OPERATOR, FunctionKind.CAST)
        and row.id not in implementations()
        # What is bound as something else is never called.
        and row.rewrite is None
        and row.name not in SIDE_EFFECT_FUNCTIONS | ROW_CALL_FUNCTIONS
    ]
    assert not missing


@pytest.mark.parametrize(
    ("kind", "registry", "without"),
    [
        # An array of arrays has two dimensions; only what engines are sent has `only_value`.
        (FunctionKind.AGGREGATE, AGGREGATES, {"array_agg(anyarray)", "only_value(any)"}),
        (FunctionKind.WINDOW, WINDOWS, set[str]()),
        # They are bound as `json_records`.
        (
            FunctionKind.SET,
            SETS,
            {row.id for row in all_functions() if row.name in RECORD_FUNCTIONS},
        ),
    ],
)
def test_the_evaluator_has_every_row_of_a_kind(
    kind: FunctionKind, registry: Registry[Any], without: set[str]
) -> None:
    rows = {row.id for row in all_functions() if row.kind is kind}
    assert rows - registry.makers().keys() == without


def _identity(value: object) -> Any:
    return value


def test_an_id_is_registered_once() -> None:
    registry = Registry[Maker](FunctionKind.FUNCTION)
    registry.maker("lower(text)", "upper(text)")(type_independent(_identity))
    with pytest.raises(AssertionError, match=r"N1: two implementations of upper\(text\)"):
        registry.maker("upper(text)")(type_independent(_identity))
    with pytest.raises(AssertionError, match="N1: an implementation of no row"):
        registry.maker()(type_independent(_identity))
    assert registry.makers().keys() == {"lower(text)", "upper(text)"}
    with pytest.raises(AssertionError, match="N1: registered after the first reading"):
        registry.maker("initcap(text)")(type_independent(_identity))


@pytest.mark.parametrize("unknown", ["lower(texts)", "count(any)", "int4 + int4"])
def test_an_id_is_that_of_a_row_of_its_kind(unknown: str) -> None:
    registry = Registry[Maker](FunctionKind.FUNCTION)
    registry.maker(unknown)(type_independent(_identity))
    with pytest.raises(AssertionError, match="N1: no row of the function table is"):
        registry.makers()


def test_the_table_of_the_evaluator_is_made_once() -> None:
    assert implementations() is implementations(), "every folded constant would make it anew"


def test_the_page_says_what_is_computed_outside() -> None:
    for row in all_functions():
        if (
            row.spark is not None
            or row.rewrite is not None
            or row.name in SIDE_EFFECT_FUNCTIONS | ROW_CALL_FUNCTIONS
        ):
            continue
        if row.name in RECORD_FUNCTIONS:
            continue  # bound as `json_records`, which is looked at by itself
        if row.kind is FunctionKind.AGGREGATE:
            type_ = FLOAT8 if row.args[0].startswith("any") else SqlType(row.args[0])
            args = (Const(None, type_),) * len(row.args)
            found = aggregate_fold(Aggregate(row, args, False, None, (), type_)) is not None
            assert found == (row.duckdb is not None), row.id
        else:
            assert row.id in implementations()
    assert "| `array_agg(anyarray)` | – |" in function_list_page()
    lines = [line for line in function_list_page().splitlines() if "| Arrow UDF |" in line]
    assert any("`jsonb -> text`" in line for line in lines)
