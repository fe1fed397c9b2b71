"""Logical plans as DuckDB SQL: the dialect of the local engine, and the way in.

INVARIANTS
  Q4  a relation stands in FROM by a name of ours; strings are arguments, `$a1` ..; functions of
      `EmittedQuery.calls` are registered with the connection before the statement runs.

Not here: running it, and turning DuckDB's failures into ours (`compute/local.py`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from sql.emit.asked_windows import with_asked_windows
from sql.emit.duckdb_aggregates import aggregate, order_by
from sql.emit.duckdb_arrays import key
from sql.emit.duckdb_expressions import expression
from sql.emit.duckdb_sets import set_scan, sets_beside
from sql.emit.duckdb_types import ENGINE, argument, array, error, literal
from sql.emit.duckdb_windows import windows
from sql.emit.emitted import EmittedQuery
from sql.emit.guarding.asked_defaults import with_asked_defaults
from sql.emit.guarding.asked_subqueries import run_if_asked
from sql.emit.guarding.condition_columns import with_condition_columns
from sql.emit.guarding.filtered_arguments import with_filtered_arguments
from sql.emit.guarding.guarded_filters import guarded_parts
from sql.emit.guarding.guarded_joins import guarded_by_keys, guarded_conditions
from sql.emit.guarding.guarded_subqueries import with_guarded_branches
from sql.emit.guarding.outer_rows import with_rows_outside
from sql.emit.guarding.pulled_up import with_pulled_up
from sql.emit.inherited_order import with_inherited_order
from sql.emit.joined_subqueries import with_joined_subqueries
from sql.emit.made_rows import with_rows_in_case
from sql.emit.outer_zeros import with_outer_zeros
from sql.emit.scope import Dialect
from sql.emit.selects import emit_plan
from sql.plan import Plan, RelationId
from sql.types import Value
from sql.volatile_calls import called_once


def emit(
    plan: Plan, relations: Mapping[RelationId, str], parameters: Sequence[Value] = ()
) -> EmittedQuery:
    """The plan as one statement. `relations`: the name in FROM of each input; `parameters`: $1
    first.

    A statement may be cached by its plan and relations: `emitted_again` tells for which parameters.
    """
    plan = with_pulled_up(called_once(with_inherited_order(plan)))
    plan = run_if_asked(with_joined_subqueries(plan, only_failing=True))
    plan = with_asked_windows(with_filtered_arguments(with_asked_defaults(plan)))
    plan = with_condition_columns(plan)
    plan = with_outer_zeros(with_rows_in_case(with_rows_outside(plan)))
    plan = with_guarded_branches(plan, by_key=False)
    query = emit_plan(plan, relations, parameters, _DUCKDB)
    # A template may have left a string out that it had asked for; DuckDB refuses to be given it.
    # Looked for in one pass: a long VALUES has an argument for each of its strings.
    used = frozenset(_REFERENCE.findall(query.text))
    arguments = {name: value for name, value in query.arguments.items() if name in used}
    return replace(query, arguments=arguments)


def emitted_again(query: EmittedQuery, parameters: Sequence[Value]) -> EmittedQuery | None:
    """What `emit` would answer for other parameters; None if that is another text."""
    arguments = dict(query.arguments)
    for number, (given, value) in enumerate(zip(query.parameters, parameters, strict=True), 1):
        name = f"q{number}"
        if type(value) is not given.kind:
            return None
        # As text: 1.0 and 1.00 are equal as values.
        if given.written is not None and repr(value) != repr(given.written[0]):
            return None
        if given.type is not None and name in arguments:
            found = argument(value, given.type, name)
            assert found is not None, "values of a class are bound alike"
            arguments[name] = found[1]
    return replace(query, arguments=arguments)


def without_values(query: EmittedQuery) -> EmittedQuery:
    """To be kept for `emitted_again`: values of parameters may be large."""
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
    on=guarded_conditions,
    where=lambda below, parts: guarded_by_keys(below, guarded_parts(below, parts)),
    values=_values,
    error=error,
    set_scan=set_scan,
    sets_beside=sets_beside,
    empty_sets=True,
    materialized="materialized ",
    any_recursion=True,
    deep_correlation=True,
    mixes_unions=True,
)
