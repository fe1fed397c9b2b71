"""Emit plans as DuckDB SQL: the entry point and DuckDB's dialect.

INVARIANTS
  Q4  a relation stands in FROM by a name of ours; strings are arguments, `$a1` ..; functions of
      `EmittedQuery.calls` are registered with the connection before the statement runs.

Not here: running it, and translating DuckDB's failures (`compute/duckdb/executor.py`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from sql.emit.duckdb.aggregates import aggregate, order_by
from sql.emit.duckdb.arrays import key
from sql.emit.duckdb.constant_lists import constant_rows
from sql.emit.duckdb.equalities import group_conditions
from sql.emit.duckdb.expressions import expression
from sql.emit.duckdb.passes import DUCKDB_PASSES
from sql.emit.duckdb.sets import set_scan, sets_beside
from sql.emit.duckdb.types import ENGINE, argument, array, error, literal
from sql.emit.duckdb.windows import windows
from sql.emit.emitted_query import EmittedQuery
from sql.emit.plans import emit_plan
from sql.emit.state import Dialect, GivenParameter
from sql.plan.depth import PLAN_DEPTH_MAX
from sql.plan.nodes import Plan, RelationId
from sql.rewrite.guards.guard_join_conditions import guarded_by_join_keys, guarded_join_conditions
from sql.rewrite.guards.guard_where_conditions import guarded_where_conditions
from sql.rewrite.passes import RewrittenPlans
from sql.types.sql_type import Value

_REWRITTEN: Final = RewrittenPlans(DUCKDB_PASSES)


def emit(
    plan: Plan, relations: Mapping[RelationId, str], parameters: Sequence[Value] = ()
) -> EmittedQuery:
    """The plan as one statement. `relations`: the name in FROM of each input; `parameters`: $1
    first.

    A statement may be cached by its plan and relations: `with_other_parameters` fits it to other
    parameters.
    """
    query = emit_plan(_REWRITTEN.of(plan), relations, parameters, _DUCKDB)
    # A template may have left a string out that it had asked for; DuckDB refuses to be given it.
    # Looked for in one pass: a long VALUES has an argument for each of its strings.
    used = frozenset(_REFERENCE.findall(query.text))
    arguments = {name: value for name, value in query.arguments.items() if name in used}
    return replace(query, arguments=arguments)


def with_other_parameters(query: EmittedQuery, parameters: Sequence[Value]) -> EmittedQuery | None:
    """The statement that `emit` would return for other parameters; None if its text differs."""
    if not has_same_text(query.parameters, parameters):
        return None
    arguments = dict(query.arguments)
    for number, (given, value) in enumerate(zip(query.parameters, parameters, strict=True), 1):
        name = f"q{number}"
        if given.type is not None and name in arguments:
            found = argument(value, given.type, name)
            assert found is not None, "values of a class are bound alike"
            arguments[name] = found[1]
    return replace(query, arguments=arguments)


def has_same_text(known: Sequence[GivenParameter], parameters: Sequence[Value]) -> bool:
    """Whether the text that was emitted for some parameters is that for others, too."""
    for given, value in zip(known, parameters, strict=True):
        if type(value) is not given.kind:
            return False
        # As text: 1.0 and 1.00 are equal as values.
        if given.written is not None and repr(value) != repr(given.written[0]):
            return False
    return True


def without_parameter_values(query: EmittedQuery) -> EmittedQuery:
    """The statement for a cache and `with_other_parameters`: values of parameters may be large."""
    kept = {name: "" if name[0] == "q" else value for name, value in query.arguments.items()}
    return replace(query, arguments=kept)


def _values(rows: Sequence[str], alias: str, columns: Sequence[str]) -> str:
    return f"(values {', '.join(rows)}) {alias}({', '.join(columns)})"


_REFERENCE: Final = re.compile(r"cast\(\$(\w+) as varchar\)")
"""What `string` below writes."""

_DUCKDB: Final = Dialect(
    engine=ENGINE,
    quote='"',
    key=key,
    literal=literal,
    array=array,
    string=lambda name: f"cast(${name} as varchar)",
    argument=argument,
    expression=expression,
    aggregate=aggregate,
    windows=windows,
    order_by=order_by,
    on=guarded_join_conditions,
    where=lambda below, parts: group_conditions(
        guarded_by_join_keys(below, guarded_where_conditions(below, parts))
    ),
    values=_values,
    error=error,
    set_scan=set_scan,
    sets_beside=sets_beside,
    empty_sets=True,
    materialized="materialized ",
    any_recursion=True,
    deep_correlation=True,
    mixes_unions=True,
    plan_depth_max=PLAN_DEPTH_MAX,
    constant_rows=constant_rows,
)
