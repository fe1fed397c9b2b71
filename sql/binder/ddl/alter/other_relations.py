"""ALTER TABLE, VIEW, INDEX and SEQUENCE of relations other than tables: defaults, parameters.

ALTER TABLE may name any relation, and does whatever that kind allows; the other forms name only
their own kind. OWNER TO is in `owners.py`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pglast.enums import AlterTableType, ObjectType

from sql.binder.ddl.alter.actions import alter_columns
from sql.binder.ddl.alter.set_schema import skip_missing_relation
from sql.binder.ddl.storage_options import refresh_option
from sql.binder.ddl.storage_parameters import (
    CHANGES_NOTHING,
    index_parameters,
    parameter_notice,
    refuse_other_tablespace,
    without_parameters,
)
from sql.binder.ddl.view_refresh import altered_refresh
from sql.binder.dml.target_relation import writable_columns
from sql.binder.dml.updatable_views import parse_check_option, refuse_check_option
from sql.binder.resolve.catalog_lookup import Relation, find_relation_named, relation_kind
from sql.binder.state import Binding
from sql.binder.stored.column_expressions import checked_default, stored_text_of
from sql.binder.stored.views import has_materialized_view, parse_view_query, view_plan
from sql.catalog.catalog import Column, Table
from sql.catalog.objects import (
    IndexDefinition,
    MaterializedView,
    SequenceDefinition,
    ViewDefinition,
)
from sql.errors import SqlError, not_supported
from sql.parser.statement_names import object_type_name
from sql.parser.syntax import Node, copy_node, offset_to_position
from sql.statements.bound import AlterTable
from sql.statements.ddl import ChangeObjects, Redefinition

_A = AlterTableType
_OPTIONS: Final = (_A.AT_SetRelOptions, _A.AT_ResetRelOptions)

_KINDS: Final = {
    ObjectType.OBJECT_VIEW: "view",
    ObjectType.OBJECT_INDEX: "index",
    ObjectType.OBJECT_SEQUENCE: "sequence",
    ObjectType.OBJECT_MATVIEW: MaterializedView.kind,
}
_PLURALS: Final = {
    "view": "views",
    "index": "indexes",
    "sequence": "sequences",
    MaterializedView.kind: "materialized views",
}

_SAID: Final = {
    _A.AT_ColumnDefault: "ALTER COLUMN ... SET DEFAULT",
    _A.AT_DropNotNull: "ALTER COLUMN ... DROP NOT NULL",
    _A.AT_SetNotNull: "ALTER COLUMN ... SET NOT NULL",
    _A.AT_SetExpression: "ALTER COLUMN ... SET EXPRESSION",
    _A.AT_DropExpression: "ALTER COLUMN ... DROP EXPRESSION",
    _A.AT_SetStatistics: "ALTER COLUMN ... SET STATISTICS",
    _A.AT_SetOptions: "ALTER COLUMN ... SET",
    _A.AT_ResetOptions: "ALTER COLUMN ... RESET",
    _A.AT_SetStorage: "ALTER COLUMN ... SET STORAGE",
    _A.AT_SetCompression: "ALTER COLUMN ... SET COMPRESSION",
    _A.AT_AlterColumnType: "ALTER COLUMN ... SET DATA TYPE",
    _A.AT_AddIdentity: "ALTER COLUMN ... ADD IDENTITY",
    _A.AT_SetIdentity: "ALTER COLUMN ... SET",
    _A.AT_DropIdentity: "ALTER COLUMN ... DROP IDENTITY",
    _A.AT_AddColumn: "ADD COLUMN",
    _A.AT_DropColumn: "DROP COLUMN",
    _A.AT_AddConstraint: "ADD CONSTRAINT",
    _A.AT_AlterConstraint: "ALTER CONSTRAINT",
    _A.AT_ValidateConstraint: "VALIDATE CONSTRAINT",
    _A.AT_DropConstraint: "DROP CONSTRAINT",
    _A.AT_EnableRowSecurity: "ENABLE ROW SECURITY",
    _A.AT_DisableRowSecurity: "DISABLE ROW SECURITY",
    _A.AT_AttachPartition: "ATTACH PARTITION",
    _A.AT_DetachPartition: "DETACH PARTITION",
    _A.AT_SetRelOptions: "SET",
    _A.AT_ResetRelOptions: "RESET",
}
"""What PostgreSQL calls the actions; those that are not here are 0A000 for all."""

_PARAMETERS: Final = {
    "view": ("security_barrier", "security_invoker"),
}
"""Storage parameters that PostgreSQL has, and that are not kept."""


def alters_other_relation(binding: Binding, node: Node) -> bool:
    """Whether an ALTER may name a relation that is not a table."""
    if node.objtype in _KINDS:
        return True
    found = find_relation_named(binding, node.relation)
    other = found is not None and relation_kind(found) != "table"
    return node.objtype == ObjectType.OBJECT_TABLE and other


def alter_other_relation(binding: Binding, node: Node) -> AlterTable | ChangeObjects:
    """Bind the actions on such a relation."""
    relation = node.relation
    tag = f"ALTER {object_type_name(node.objtype)}"
    found, wanted = find_relation_named(binding, relation), _KINDS.get(node.objtype)
    if found is None:
        return skip_missing_relation(binding, node, tag)
    kind = relation_kind(found)
    if wanted not in (None, kind):
        article = "an" if wanted == "index" else "a"
        raise SqlError("42809", f'"{relation.relname}" is not {article} {wanted}')
    if isinstance(found, Table):
        return _altered_materialized_view(binding, found, node.cmds, tag)
    for command in node.cmds:
        _refuse(found, kind, command)
    if isinstance(found, IndexDefinition):
        return _with_index_parameters(found, node.cmds, tag)
    if not isinstance(found, ViewDefinition):
        return ChangeObjects(tag)
    after = found
    for command in node.cmds:
        after = _altered_view(binding, after, command)
    changed = () if after == found else (replace(after, version=found.version + 1),)
    return ChangeObjects(tag, objects=changed)


def _refuse(found: Relation, kind: str, command: Node) -> None:
    """What is not done to such a relation."""
    if command.subtype == _A.AT_ColumnDefault and kind == "view":
        return
    if command.subtype == _A.AT_SetTableSpace and kind == "index":
        refuse_other_tablespace(command.name)
        return
    if command.subtype in _OPTIONS and isinstance(found, IndexDefinition):
        return
    if command.subtype in _OPTIONS and isinstance(found, tuple):
        for option in command.def_ if command.subtype == _A.AT_SetRelOptions else ():
            raise not_supported(f"the storage parameter {option.defname} of a key's index", None)
        return
    if command.subtype in _OPTIONS and not isinstance(found, SequenceDefinition):
        _check_options(kind, command)
        return
    raise _not_performed(found, kind, command)


def _not_performed(found: Relation, kind: str, command: Node) -> SqlError:
    said = _SAID.get(command.subtype)
    if said is None:
        return not_supported(f"this action on {_PLURALS[kind]}")
    name = found[1].name if isinstance(found, tuple) else found.name
    message = f'ALTER action {said} cannot be performed on relation "{name}"'
    detail = f"This operation is not supported for {_PLURALS[kind]}."
    return SqlError("42809", message, detail=detail)


def _check_options(kind: str, command: Node) -> None:
    """Storage parameters: none is kept but check_option, so there is none to be reset."""
    if command.subtype == _A.AT_ResetRelOptions:
        return
    names: list[str] = [option.defname for option in command.def_]
    for place, option in enumerate(command.def_):
        name = option.defname
        if name in names[:place]:
            raise SqlError("22023", f'parameter "{name}" specified more than once')
    for option in command.def_:
        name = option.defname
        if name in _PARAMETERS[kind]:
            what = f"the storage parameter {name} of {_PLURALS[kind]}"
            raise not_supported(what, offset_to_position(option.location))
        if kind != "view" or name != "check_option":
            raise SqlError("22023", f'unrecognized parameter "{name}"')


def _with_index_parameters(
    index: IndexDefinition, commands: Sequence[Node], tag: str
) -> ChangeObjects:
    parameters, notices = index.parameters, list[tuple[str, str, str | None]]()
    for command in commands:
        if command.subtype == _A.AT_ResetRelOptions:
            parameters = without_parameters(command.def_, parameters)
        elif command.subtype == _A.AT_SetRelOptions:
            parameters = index_parameters(command.def_, index.method, parameters)
            notices.append((CHANGES_NOTHING, parameter_notice(command.def_) or "", None))
    if parameters == index.parameters:
        return ChangeObjects(tag, notices=tuple(notices))
    after = replace(index, parameters=parameters, version=index.version + 1)
    return ChangeObjects(tag, objects=(after,), notices=tuple(notices))


# --- materialized views ------------------------------------------------------------------------

_OF_MATERIALIZED_VIEWS: Final = {
    *_OPTIONS, _A.AT_SetStatistics, _A.AT_SetOptions, _A.AT_ResetOptions, _A.AT_SetStorage,
    _A.AT_SetCompression, _A.AT_ClusterOn, _A.AT_DropCluster, _A.AT_SetTableSpace,
    _A.AT_SetAccessMethod,
}  # fmt: skip
"""What may be done to the table that stores a materialized view."""


def _altered_materialized_view(
    binding: Binding, table: Table, commands: Sequence[Node], tag: str
) -> AlterTable:
    kept: list[Node] = []
    after = table
    for command in commands:
        if command.subtype not in _OF_MATERIALIZED_VIEWS:
            raise _not_performed(table, table.kind, command)
        if command.subtype in _OPTIONS:
            resets = command.subtype == _A.AT_ResetRelOptions
            option = refresh_option(command.def_, resets=resets)
            after = altered_refresh(binding, after, option)
            kept += [] if option.others is None else [copy_node(command, def_=option.others)]
        else:
            kept.append(command)
    if after == table:
        return (
            replace(alter_columns(binding, table, kept), tag=tag) if kept else AlterTable(tag=tag)
        )
    if kept:
        raise not_supported("changing refresh together with other parameters")
    after = replace(after, version=table.version + 1)
    return AlterTable((Redefinition(table, after),), tag=tag)


# --- views -------------------------------------------------------------------------------------


def _altered_view(binding: Binding, view: ViewDefinition, command: Node) -> ViewDefinition:
    if command.subtype == _A.AT_ColumnDefault:
        return _with_default(binding, view, command.name, command.def_)
    for option in command.def_:
        if option.defname == "check_option":
            view = replace(view, check_option=_check_option(binding, view, command, option))
    return view


def _with_default(
    binding: Binding, view: ViewDefinition, name: str, node: Node | None
) -> ViewDefinition:
    if name not in view.columns:
        raise SqlError("42703", f'column "{name}" of relation "{view.name}" does not exist')
    place = view.columns.index(name)
    others: Sequence[tuple[int, str]] = [d for d in view.defaults if d[0] != place]
    if node is None:
        return replace(view, defaults=tuple(others))
    _, columns = view_plan(binding, view)
    try:
        checked_default(binding, Column(name, columns[place].type), node)
    except SqlError as error:
        # PostgreSQL has no text to point into by then.
        error.position = None
        raise
    made = (*others, (place, stored_text_of(binding, node)))
    return replace(view, defaults=tuple(sorted(made)))


def _check_option(binding: Binding, view: ViewDefinition, command: Node, option: Node) -> str:
    if command.subtype == _A.AT_ResetRelOptions:
        return ""
    said = parse_check_option(option)
    writable = writable_columns(binding, view) or ()
    refuse_check_option(
        parse_view_query(view.text),
        has_columns=any(writable),
        of_materialized=has_materialized_view(
            binding.context.catalog, [relation[2] for relation in view.relations]
        ),
    )
    return said
