"""Functions of the session and of types that are constants once their arguments are bound."""

from collections.abc import Callable, Sequence
from typing import Final

from pglast import ast, parser

from sql.bind_types import type_named
from sql.binding import Binding
from sql.coerce import implicit, zone_arguments
from sql.errors import SqlError, not_supported
from sql.functions import function_by_id
from sql.plan import Call, ColumnRef, Const, Expr
from sql.styles import PLAIN
from sql.syntax import Node, is_a, position
from sql.types import BOOL, OIDS, TEXT, SqlType

_NAMES: Final = SqlType("_name")


def system_call(
    binding: Binding, name: str, exprs: Sequence[Expr], nodes: Sequence[Node]
) -> Expr | None:
    """What the call is, or None if it is none of these."""
    found = _CALLS.get((name, len(exprs)))
    return None if found is None else found(binding, exprs, nodes)


def _typeof(binding: Binding, exprs: Sequence[Expr], _nodes: Sequence[Node]) -> Expr:
    oid = _domain_of(binding, exprs[0])
    return Const(exprs[0].type.oid if oid is None else oid, SqlType("regtype"))


def _domain_of(binding: Binding, expr: Expr) -> int | None:
    """The oid of the domain of a plain column, or of what was just cast to one with rules."""
    if isinstance(expr, ColumnRef):
        column = binding.origin(expr.id)
        return None if column is None or column.domain is None else column.domain.oid
    if isinstance(expr, Call) and expr.function.name == "checked":
        schema, name = (str(arg.value) for arg in expr.args[4:6] if isinstance(arg, Const))
        found = binding.context.catalog.type_named(schema, name)
        return None if found is None else found.oid
    return None


def _schemas(binding: Binding, exprs: Sequence[Expr], nodes: Sequence[Node]) -> Expr:
    """The schemas of the search path that exist; `true`: with pg_catalog, which is always there."""
    first = exprs[0]
    if not isinstance(first, Const) or not isinstance(first.value, bool | None):
        raise not_supported("current_schemas() of an expression", position(nodes[0]))
    assert "_name" in OIDS, "there are arrays of names"
    binding.uses_session = True
    if first.value is None:
        return Const(None, _NAMES)
    context = binding.context
    path = context.search_path if first.value else context.creation_path
    schemas = [name for name in path if name in context.catalog.schemas]
    if first.value and "pg_catalog" not in schemas:
        schemas.insert(int(context.temporary_first), "pg_catalog")
    return Const(tuple(dict.fromkeys(schemas)), _NAMES)


def _valid_input(binding: Binding, exprs: Sequence[Expr], nodes: Sequence[Node]) -> Expr:
    """Whether a text is one of a value of a type, which the second argument names."""
    text, named = (
        implicit(binding, expr, node, TEXT) for expr, node in zip(exprs, nodes, strict=True)
    )
    if not isinstance(named, Const):
        raise not_supported("pg_input_is_valid() of a computed type", position(nodes[1]))
    if binding.context.styles != PLAIN:
        raise not_supported("pg_input_is_valid() under these styles", position(nodes[0]))
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
            return type_named(binding, target.val.typeName)
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


_CALLS: Final[dict[tuple[str, int], Callable[[Binding, Sequence[Expr], Sequence[Node]], Expr]]] = {
    ("pg_typeof", 1): _typeof,
    ("current_schemas", 1): _schemas,
    ("pg_input_is_valid", 2): _valid_input,
}
