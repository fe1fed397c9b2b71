"""pg_get_serial_sequence(): find the sequence that a column owns, by the names of table and column.

of constants      known at binding time
of parameters     computed by the session before the statement runs
of columns        an expression over the catalogs (`sql/data/catalog_functions.txt`)
"""

from collections.abc import Sequence

from sql.binder.expressions.session_calls import session_call_parameter
from sql.binder.resolve.catalog_lookup import look_up_table, relation_exists, schema_exists
from sql.binder.resolve.coercion import coerce_implicitly
from sql.binder.state import Binding
from sql.catalog.system_catalogs import SYSTEM_SCHEMAS
from sql.errors import SqlError, undefined_schema
from sql.parser.qualified_names import relation_name_parts
from sql.parser.syntax import Node, node_position
from sql.plan.nodes import Const, Expr, Param
from sql.types.sql_type import TEXT, quoted_name

SERIAL_SEQUENCE_FUNCTION = "pg_get_serial_sequence"


def serial_call(binding: Binding, exprs: Sequence[Expr], nodes: Sequence[Node]) -> Expr | None:
    """The bound call; None if its arguments are computed for each row."""
    if not all(isinstance(expr, Const | Param) for expr in exprs):
        return None
    if not all(expr.type.name in ("unknown", "text", "varchar", "name") for expr in exprs):
        return None
    pairs = zip(exprs, nodes, strict=True)
    args = [coerce_implicitly(binding, expr, node, TEXT) for expr, node in pairs]
    table, column = (arg.value if isinstance(arg, Const) else None for arg in args)
    if isinstance(table, str) and isinstance(column, str):
        return Const(serial_sequence(binding, table, column), TEXT)
    return session_call_parameter(
        binding, SERIAL_SEQUENCE_FUNCTION, args, TEXT, node_position(nodes[0])
    )


def serial_sequence(binding: Binding, named: str, column_name: str) -> str | None:
    """The sequence's qualified name, or None. Raises the errors of a missing table or column."""
    parts = relation_name_parts(named, binding.context.database, None)
    schema = parts[0] if len(parts) > 1 else None
    known = schema is None or schema in SYSTEM_SCHEMAS or schema_exists(binding, schema)
    if schema is not None and not known:
        raise undefined_schema(schema)
    table = look_up_table(binding, parts[-1], schema=schema)
    if table is None:
        path = binding.context.search_path if schema is None else (schema,)
        if any(relation_exists(binding, candidate, parts[-1]) for candidate in path):
            return None  # of another kind, whose columns own nothing
        raise SqlError("42P01", f'relation "{".".join(parts)}" does not exist')
    column = table.column(column_name)
    if column is None:
        message = f'column "{column_name}" of relation "{table.name}" does not exist'
        raise SqlError("42703", message)
    for owned in binding.context.catalog.sequences():
        if owned.owner == table.oid and owned.owner_field == column.field:
            relation_exists(binding, owned.schema, owned.name)
            return f"{quoted_name(owned.schema)}.{quoted_name(owned.name)}"
    return None
