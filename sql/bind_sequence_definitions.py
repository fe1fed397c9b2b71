"""CREATE, ALTER and DROP SEQUENCE, and setval()."""

from collections.abc import Sequence
from dataclasses import replace

from pglast import ast
from pglast.enums import DropBehavior

from sql.bind_definitions import creation_schema
from sql.bind_sequences import integer_of, named_sequence, sequence_of
from sql.bind_views import told_views, views_over
from sql.binding import Binding
from sql.catalog import Catalog
from sql.catalog_objects import SequenceDefinition
from sql.definition_statements import ChangeObjects, CreateSequence, cascades
from sql.errors import SqlError, duplicate_table, not_supported
from sql.look_up import look_up_sequence, relation_exists, schema_exists
from sql.sequence_users import (
    cascaded_uses,
    still_used,
    told_name,
    told_uses,
    users_of,
    uses_of,
    views_without,
    without_defaults,
)
from sql.statements import AlterTable, Query, SetSequence
from sql.syntax import Node, at, is_a, strings
from sql.traverse import pruned


def create_sequence(binding: Binding, node: Node) -> CreateSequence:
    """CREATE SEQUENCE [IF NOT EXISTS]."""
    relation = node.sequence
    if relation.relpersistence == "u":
        raise not_supported("UNLOGGED", at(relation.location))
    schema = creation_schema(binding, relation)
    exists = relation_exists(binding, schema, relation.relname)
    if exists and not node.if_not_exists:
        raise duplicate_table(relation.relname)
    bare = SequenceDefinition(0, schema, relation.relname, "")
    made = sequence_of(binding, bare, node.options or (), created=True)
    return CreateSequence(made, exists)


def alter_sequence(binding: Binding, node: Node) -> ChangeObjects | AlterTable:
    """ALTER SEQUENCE [IF EXISTS] with options."""
    relation = node.sequence
    found = look_up_sequence(binding, relation.relname, schema=relation.schemaname)
    if found is None:
        if node.missing_ok:
            return AlterTable(missing=relation.relname, tag="ALTER SEQUENCE")
        raise SqlError(
            "42P01", f'relation "{relation.relname}" does not exist', at(relation.location)
        )
    made, fresh = altered_sequence(binding, found, node.options or ())
    return ChangeObjects("ALTER SEQUENCE", objects=(made,), fresh=fresh)


def altered_sequence(
    binding: Binding, found: SequenceDefinition, options: Sequence[Node]
) -> tuple[SequenceDefinition, frozenset[int]]:
    """A sequence with other options, and its oid if it begins anew."""
    made = sequence_of(
        binding, found, [o for o in options if o.defname != "restart"], created=False
    )
    restarts = [option for option in options if option.defname == "restart"]
    fresh: frozenset[int] = frozenset()
    if made.start != found.start and found.first is None:
        made = replace(made, first=found.start)
    if restarts:
        value = made.start if restarts[0].arg is None else integer_of(restarts[0])
        _check_restart(made, value)
        # Where it stands is named anew: its first value is the one given, START stays.
        made = replace(made, state=f"@{value}")
        fresh = frozenset({made.oid})
    return replace(made, version=found.version + 1), fresh


def _check_restart(sequence: SequenceDefinition, value: int) -> None:
    if value < sequence.least:
        message = f"RESTART value ({value}) cannot be less than MINVALUE ({sequence.least})"
        raise SqlError("22023", message)
    if value > sequence.greatest:
        message = f"RESTART value ({value}) cannot be greater than MAXVALUE ({sequence.greatest})"
        raise SqlError("22023", message)


def drop_sequences(binding: Binding, node: Node) -> ChangeObjects:
    """DROP SEQUENCE [IF EXISTS] .. [CASCADE]."""
    catalog = binding.context.catalog
    dropped: list[SequenceDefinition] = []
    notices: list[tuple[str, str, str | None]] = []
    for names in node.objects:
        *qualifier, name = strings(names)
        schema = qualifier[-1] if qualifier else None
        found = look_up_sequence(binding, name, schema=schema)
        if found is not None:
            dropped.append(found)
            continue
        if schema is not None and not schema_exists(binding, schema):
            if not node.missing_ok:
                raise SqlError("3F000", f'schema "{schema}" does not exist')
            notices.append(("00000", f'schema "{schema}" does not exist, skipping', None))
        elif node.missing_ok:
            notices.append(("00000", f'sequence "{name}" does not exist, skipping', None))
        else:
            shown = name if schema is None else f"{schema}.{name}"
            raise SqlError("42P01", f'sequence "{shown}" does not exist')
    dropped = list(dict.fromkeys(dropped))
    for sequence in dropped:
        if sequence.identity:
            raise _needed_by_identity(catalog, sequence)
    gone = {sequence.oid for sequence in dropped}
    path = binding.context.search_path
    # PostgreSQL's order.
    used = [use for sequence in reversed(dropped) for use in uses_of(catalog, {sequence.oid}, path)]
    views = views_over(catalog, gone)
    if (used or views) and node.behavior != DropBehavior.DROP_CASCADE:
        raise still_used(
            [f"sequence {told_name(sequence, path)}" for sequence in dropped],
            [*told_uses(used), *told_views(catalog, views, gone)],
        )
    told = [
        *cascaded_uses(used, views=True),
        *(f"drop cascades to view {view.name}" for view in views),
    ]
    notices += cascades(told)
    return ChangeObjects(
        "DROP SEQUENCE",
        dropped=(*dropped, *views),
        objects=views_without(catalog, {*gone, *(view.oid for view in views)}),
        tables=without_defaults(catalog, gone),
        notices=tuple(notices),
    )


def _needed_by_identity(catalog: Catalog, sequence: SequenceDefinition) -> SqlError:
    ((table, column), *_) = users_of(catalog, sequence)
    message = (
        f"cannot drop sequence {sequence.name} because column {column.name} of table "
        f"{table.name} requires it"
    )
    hint = f"You can drop column {column.name} of table {table.name} instead."
    return SqlError("2BP01", message, hint=hint)


# --- setval ------------------------------------------------------------------------------------


def set_sequence(binding: Binding, node: Node) -> SetSequence | None:
    """A SELECT whose only column is setval(); None for every other query."""
    targets: Sequence[Node] = node.targetList or ()
    if len(targets) != 1 or not is_a(targets[0].val, ast.FuncCall):
        return None
    call = targets[0].val
    if strings(call.funcname)[-1] != "setval" or node.op:
        return None
    args: Sequence[Node] = list(call.args or ())
    if len(args) not in (2, 3):
        raise not_supported(f"setval() with {len(args)} arguments", at(call.location))
    sequence = named_sequence(binding, args[0], "setval")
    bigint = ast.TypeName(names=(ast.String("pg_catalog"), ast.String("int8")), typemod=-1)
    boolean = ast.TypeName(names=(ast.String("pg_catalog"), ast.String("bool")), typemod=-1)
    rest = list(args[2:])
    value = args[1]
    called: Node = rest[0] if rest else ast.A_Const(val=ast.Boolean(boolval=True))
    columns = (
        ast.ResTarget(val=ast.TypeCast(arg=value, typeName=bigint), name="setval"),
        ast.ResTarget(val=ast.TypeCast(arg=called, typeName=boolean), name="called"),
    )
    query = type(node)(**({name: getattr(node, name) for name in node} | {"targetList": columns}))
    result = binding.bind_query(binding, query, None)
    result.settle(binding)
    tables = tuple(binding.tables.values())
    return SetSequence(sequence, Query(pruned(result.plan), (), tables))
