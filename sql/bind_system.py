"""Functions of the session and of types that are constants once their arguments are bound."""

from collections.abc import Callable, Sequence
from typing import Final

from sql.binding import Binding
from sql.errors import not_supported
from sql.plan import Call, ColumnRef, Const, Expr
from sql.syntax import Node, position
from sql.types import OIDS, SqlType

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


_CALLS: Final[dict[tuple[str, int], Callable[[Binding, Sequence[Expr], Sequence[Node]], Expr]]] = {
    ("pg_typeof", 1): _typeof,
    ("current_schemas", 1): _schemas,
}
