"""CLUSTER, REINDEX, UNLOGGED, storage of columns and the like: accepted, and nothing changes.

    names checked as PostgreSQL does ─▶ NOTICE that nothing changes

A table's rows are in files that the server lays out by itself, every commit is durable, and there
are no triggers: foreign keys are checked whatever is disabled.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from pglast.enums import AlterTableType, ReindexObjectType

from sql.binder.ddl.alter.state import AlterTableState
from sql.binder.ddl.storage_options import (
    reset_storage_options,
    storage_options,
    with_storage_options,
)
from sql.binder.ddl.storage_parameters import CHANGES_NOTHING, refuse_other_tablespace
from sql.binder.resolve.catalog_lookup import (
    find_relation_named,
    relation_kind,
    schema_exists,
    undefined_relation,
)
from sql.binder.resolve.relations import find_table
from sql.binder.state import Binding
from sql.binder.stored.column_expressions import without_position
from sql.catalog.catalog import Table
from sql.errors import SqlError, undefined_schema
from sql.parser.option_values import option_boolean
from sql.parser.syntax import Node, offset_to_position
from sql.statements.ddl import ChangeObjects
from sql.statements.maintenance import MaintenanceKind, MaintenanceStatement
from sql.types.sql_type import format_type

UNLOGGED_NOTICE: Final = "the table is durable, although it is UNLOGGED"

_A = AlterTableType


_REINDEX: Final = "REINDEX changes nothing: rows are found without indexes"
_CLUSTER: Final = "CLUSTER changes nothing: OPTIMIZE rewrites a table"


def _told(kind: MaintenanceKind, text: str, *, alone: bool) -> ChangeObjects | MaintenanceStatement:
    """`alone`: it cannot run inside of a transaction block."""
    if alone:
        return MaintenanceStatement(kind, (), notice=SqlError(CHANGES_NOTHING, text))
    return ChangeObjects(kind.value, notices=((CHANGES_NOTHING, text, None),))


def reindex(binding: Binding, node: Node) -> ChangeObjects | MaintenanceStatement:
    """REINDEX INDEX, TABLE, SCHEMA, DATABASE or SYSTEM."""
    alone = False
    for option in node.params or ():
        match option.defname:
            case "tablespace":
                refuse_other_tablespace(option.arg.sval)
            case "concurrently":
                alone = option_boolean(option)
            case "verbose":
                option_boolean(option)
            case name:
                message = f'unrecognized REINDEX option "{name}"'
                raise SqlError("42601", message, offset_to_position(option.location))
    match node.kind:
        case ReindexObjectType.REINDEX_OBJECT_INDEX:
            found = find_relation_named(binding, node.relation)
            if found is None:
                raise undefined_relation(binding, node.relation)
            if relation_kind(found) != "index":
                raise SqlError("42809", f'"{node.relation.relname}" is not an index')
        case ReindexObjectType.REINDEX_OBJECT_TABLE:
            _table(binding, node)
        case ReindexObjectType.REINDEX_OBJECT_SCHEMA:
            known = schema_exists(binding, node.name)
            told = _told(MaintenanceKind.REINDEX, _REINDEX, alone=True)
            assert isinstance(told, MaintenanceStatement), "it runs alone"
            problem = None if known else undefined_schema(node.name)
            return replace(told, command="REINDEX SCHEMA", problem=problem)
        case _:
            alone = True
    return _told(MaintenanceKind.REINDEX, _REINDEX, alone=alone)


def _table(binding: Binding, node: Node) -> Table:
    return without_position(partial(find_table, binding, node.relation, _not_a_table))


def _not_a_table(name: str, _kind: str) -> SqlError:
    return SqlError("42809", f'"{name}" is not a table or materialized view')


def cluster(binding: Binding, node: Node) -> ChangeObjects | MaintenanceStatement:
    """CLUSTER [table [USING index]]."""
    for option in node.params or ():
        if option.defname != "verbose":
            message = f'unrecognized CLUSTER option "{option.defname}"'
            raise SqlError("42601", message, offset_to_position(option.location))
        option_boolean(option)
    if node.relation is not None:
        table = _table(binding, node)
        if node.indexname is not None:
            _check_index(binding, table, node.indexname)
    return _told(MaintenanceKind.CLUSTER, _CLUSTER, alone=node.relation is None)


def _check_index(binding: Binding, table: Table, name: str) -> None:
    names = {key.name for key in table.keys}
    names |= {index.name for index in binding.context.catalog.indexes(table.oid)}
    if name not in names:
        raise SqlError("42704", f'index "{name}" for table "{table.name}" does not exist')


# --- actions of ALTER TABLE ---------------------------------------------------------------------


def _notice(work: AlterTableState, text: str) -> None:
    work.notices.append((CHANGES_NOTHING, text, None))


def _set_logged(work: AlterTableState, _command: Node) -> None:
    work.table = replace(work.table, unlogged=False)


def _set_unlogged(work: AlterTableState, _command: Node) -> None:
    if not work.table.unlogged:
        _notice(work, UNLOGGED_NOTICE)
    work.table = replace(work.table, unlogged=True)


def _set_tablespace(_work: AlterTableState, command: Node) -> None:
    refuse_other_tablespace(command.name)


def _cluster_on(work: AlterTableState, command: Node) -> None:
    _check_index(work.binding, work.table, command.name)
    _notice(work, _CLUSTER)


def _without_cluster(_work: AlterTableState, _command: Node) -> None:
    pass


def _triggers(work: AlterTableState, _command: Node) -> None:
    _notice(work, "there are no triggers, and foreign keys are always checked")


def _one_trigger(work: AlterTableState, command: Node) -> None:
    message = f'trigger "{command.name}" for table "{work.table.name}" does not exist'
    raise SqlError("42704", message)


def _set_statistics(work: AlterTableState, command: Node) -> None:
    work.column(command.name)
    target = command.def_.ival if command.def_ is not None else -1
    if target < -1:
        raise SqlError("22023", f"statistics target {target} is too low")
    _notice(work, "a statistics target changes nothing: statistics are kept as rows are written")


def _set_storage(work: AlterTableState, command: Node) -> None:
    column, name = work.column(command.name), command.def_.sval
    if name.lower() not in _STORAGES:
        raise SqlError("22023", f'invalid storage type "{name}"')
    if column.type.size > 0 and name.lower() not in ("plain", "default"):
        shown = format_type(column.type.bare())
        raise SqlError("0A000", f"column data type {shown} can only have storage PLAIN")
    _notice(work, "the storage of a column changes nothing: files are compressed as a whole")


def _replica_identity(work: AlterTableState, command: Node) -> None:
    if command.def_.name is not None:
        _check_index(work.binding, work.table, command.def_.name)
        for index in work.binding.context.catalog.indexes(work.table.oid):
            if index.name == command.def_.name and not index.unique:
                message = f'cannot use non-unique index "{index.name}" as replica identity'
                raise SqlError("42809", message)
    _notice(work, "a replica identity changes nothing: there is no logical replication")


_STORAGES: Final = ("plain", "external", "extended", "main", "default")


def _set_options(work: AlterTableState, command: Node) -> None:
    options = storage_options(command.def_)
    for text in options.notices:
        _notice(work, text)
    work.table = with_storage_options(work.table, options)


def _reset_options(work: AlterTableState, command: Node) -> None:
    work.table = reset_storage_options(work.table, command.def_)


PHYSICAL_ACTIONS: Final[Mapping[AlterTableType, Callable[[AlterTableState, Node], None]]] = {
    _A.AT_SetRelOptions: _set_options,
    _A.AT_ResetRelOptions: _reset_options,
    _A.AT_SetLogged: _set_logged,
    _A.AT_SetUnLogged: _set_unlogged,
    _A.AT_SetTableSpace: _set_tablespace,
    _A.AT_ClusterOn: _cluster_on,
    _A.AT_DropCluster: _without_cluster,
    _A.AT_SetStatistics: _set_statistics,
    _A.AT_SetStorage: _set_storage,
    _A.AT_ReplicaIdentity: _replica_identity,
    _A.AT_EnableTrigAll: _triggers,
    _A.AT_DisableTrigAll: _triggers,
    _A.AT_EnableTrigUser: _triggers,
    _A.AT_DisableTrigUser: _triggers,
    _A.AT_EnableTrig: _one_trigger,
    _A.AT_DisableTrig: _one_trigger,
    _A.AT_EnableAlwaysTrig: _one_trigger,
    _A.AT_EnableReplicaTrig: _one_trigger,
}
"""Actions that change no row and no rule."""
