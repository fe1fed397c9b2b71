"""Bind pg_typeof(), current_schemas() and similar functions that the binder itself can answer."""

from collections.abc import Callable, Sequence
from typing import Final

from pglast import ast, parser

from sql.binder.expressions.catalog_casts import shown_as
from sql.binder.expressions.serial_sequences import SERIAL_SEQUENCE_FUNCTION as SERIAL
from sql.binder.expressions.serial_sequences import serial_call
from sql.binder.resolve.catalog_lookup import existing_schemas
from sql.binder.resolve.coercion import zone_arguments
from sql.binder.resolve.expression_domain import domain_of
from sql.binder.resolve.function_choice import convert_arguments
from sql.binder.resolve.type_names import resolve_type
from sql.binder.state import Binding
from sql.errors import SqlError, not_supported
from sql.functions.table import function_by_id
from sql.parser.syntax import Node, is_a, node_position
from sql.plan.nodes import Call, Case, Const, Expr, IsTest, Test
from sql.types.sql_type import BOOL, TEXT, TYPE_OIDS, SqlType
from sql.types.styles import DEFAULT_STYLES

_NAMES: Final = SqlType("_name")


def system_call(
    binding: Binding, name: str, exprs: Sequence[Expr], nodes: Sequence[Node], place: int | None
) -> Expr | None:
    """The bound call, or None if it is not one of these functions."""
    key = (name, len(exprs))
    if key in _TYPES:
        exprs = convert_arguments(binding, name, exprs, nodes, _TYPES[key], place)
    found = _CALLS.get(key)
    return None if found is None else found(binding, exprs, nodes)


def _typeof(binding: Binding, exprs: Sequence[Expr], _nodes: Sequence[Node]) -> Expr:
    domain = domain_of(binding, exprs[0])
    shown = exprs[0].type
    shown = shown_as(binding, exprs[0]) or shown
    oid = shown.oid if domain is None else domain.oid
    return Const(oid, SqlType("regtype"))


def _schemas(binding: Binding, exprs: Sequence[Expr], _nodes: Sequence[Node]) -> Expr:
    """The schemas of the search path that exist; `true`: with pg_catalog, which is always there."""
    (implicit_too,) = exprs
    assert "_name" in TYPE_OIDS, "there are arrays of names"
    binding.uses_session = True
    context = binding.context
    named = list(dict.fromkeys(existing_schemas(context, context.creation_path)))
    whole = list(dict.fromkeys(existing_schemas(context, context.search_path)))
    if "pg_catalog" not in whole:
        whole.insert(int(context.temporary_first), "pg_catalog")
    answers = [Const(tuple(names), _NAMES) for names in (whole, named)]
    if isinstance(implicit_too, Const):
        missing = implicit_too.value is None
        return Const(None, _NAMES) if missing else answers[0 if implicit_too.value else 1]
    without = IsTest(Test.IS_FALSE, implicit_too, BOOL)
    cases = ((implicit_too, answers[0]), (without, answers[1]))
    return Case(cases, Const(None, _NAMES), _NAMES)


def _valid_input(binding: Binding, exprs: Sequence[Expr], nodes: Sequence[Node]) -> Expr:
    """Whether a text is one of a value of a type, which the second argument names."""
    text, named = exprs
    if not isinstance(named, Const):
        raise not_supported("pg_input_is_valid() of a computed type", node_position(nodes[1]))
    if binding.context.styles != DEFAULT_STYLES:
        raise not_supported("pg_input_is_valid() under these styles", node_position(nodes[0]))
    if named.value is None:
        return Const(None, BOOL)
    row = function_by_id("input_is_valid(text,any)")
    type_ = _type_called(binding, str(named.value))
    return Call(row, (text, Const(None, type_), *zone_arguments(binding, row)), BOOL)


def _type_called(binding: Binding, text: str) -> SqlType:
    """The type of a name that a value holds; errors have no place in the statement."""
    try:
        trees = parser.parse_sql(f"select null::{text}")
        statement: Node = trees[0].stmt
        (target,) = statement.targetList
        more = target.name or any(getattr(statement, clause) for clause in _CLAUSES)
        if len(trees) == 1 and not more and is_a(target.val, ast.TypeCast):
            return resolve_type(binding, target.val.typeName)
    except SqlError as error:
        raise SqlError(error.sqlstate, error.message) from None
    except (parser.ParseError, ValueError):
        pass
    raise SqlError("42601", f'invalid type name "{text}"')


_CLAUSES: Final = (
    "fromClause",
    "whereClause",
    "groupClause",
    "havingClause",
    "windowClause",
    "sortClause",
    "limitCount",
    "limitOffset",
    "lockingClause",
)


_CALLS: Final[
    dict[tuple[str, int], Callable[[Binding, Sequence[Expr], Sequence[Node]], Expr | None]]
] = {
    (SERIAL, 2): serial_call,
    ("pg_typeof", 1): _typeof,
    ("current_schemas", 1): _schemas,
    ("pg_input_is_valid", 2): _valid_input,
}
_TYPES: Final[dict[tuple[str, int], Sequence[SqlType]]] = {
    ("current_schemas", 1): (BOOL,),
    ("pg_input_is_valid", 2): (TEXT, TEXT),
}
"""What they take; the others look for themselves."""
