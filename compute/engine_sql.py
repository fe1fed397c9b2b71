"""Render the SQL that an engine would run for a plan, for EXPLAIN (VERBOSE); nothing is run."""

from collections.abc import Sequence
from itertools import starmap

from sql.emit.duckdb import dialect as duckdb
from sql.emit.emitted_query import EmittedQuery
from sql.emit.spark import dialect as spark
from sql.emit.state import WorkerFunction
from sql.errors import SqlError
from sql.explain.plan_tree import expression_text
from sql.plan.nodes import ColumnId, Plan
from sql.plan.traverse import scans
from sql.types.sql_type import Value


def engine_sql(engine: str, plan: Plan, parameters: Sequence[Value]) -> str | None:
    """The statement, with tables under their own names; None for an engine without SQL. If the
    engine refuses the plan, the text is its refusal. Python functions and the statements that run
    before the main one follow it.
    """
    names = {scan.relation: scan.name for scan in scans(plan)}
    try:
        match engine:
            case "local":
                return duckdb.emit(plan, names, parameters).text
            case "spark":
                return _with_what_is_made(spark.emit(plan, names, parameters))
            case _:
                return None
    except SqlError as error:
        return f"none: {error.message}"


def _with_what_is_made(query: EmittedQuery) -> str:
    texts = {"": _with_functions(query)}
    _add_made(query, texts)
    return "; ".join(f"{name}: {text}" if name else text for name, text in texts.items())


def _add_made(query: EmittedQuery, texts: dict[str, str]) -> None:
    """Add the statements that run before the main one by name: each once, after those it reads."""
    for one in query.made:
        if one.name in texts:
            continue
        _add_made(one.base, texts)
        texts[one.name] = _with_functions(one.base)
        if one.rounds is not None:
            _add_made(one.rounds.step, texts)
            texts[f"{one.name} by rounds of {one.rounds.last}"] = _with_functions(one.rounds.step)


def _with_functions(query: EmittedQuery) -> str:
    return "".join([query.text, *starmap(_shown, query.functions.items())])


def _shown(name: str, function: WorkerFunction) -> str:
    columns = {ColumnId(index): f"${index + 1}" for index in range(len(function.columns))}
    return f"; Arrow UDF {name}: {expression_text(function.expr, columns)}"
