"""Which function binds which statement that defines, changes or maintains objects.

`bind.py` imports it with the first of them: a server starts without.
"""

from collections.abc import Callable, Mapping
from typing import Final

from pglast import ast

from sql.binder.ddl.alter.set_schema import set_schema
from sql.binder.ddl.alter.statement import alter_table, rename
from sql.binder.ddl.casts import create_cast
from sql.binder.ddl.comments import comment
from sql.binder.ddl.connections import alter_connection, alter_named, create_connection
from sql.binder.ddl.create import create_schema, create_table
from sql.binder.ddl.domains import alter_domain, create_domain
from sql.binder.ddl.drop import drop
from sql.binder.ddl.enums import alter_enum, create_enum
from sql.binder.ddl.extended_statistics import alter_statistics, create_statistics
from sql.binder.ddl.extensions import alter_extension, create_extension
from sql.binder.ddl.indexes import create_index
from sql.binder.ddl.materialized_views import create_as, refresh_materialized_view
from sql.binder.ddl.physical_layout import cluster, reindex
from sql.binder.ddl.roles.grant import alter_default_privileges, grant
from sql.binder.ddl.roles.membership import grant_role
from sql.binder.ddl.roles.owners import alter_owner, drop_owned, reassign_owned
from sql.binder.ddl.roles.roles import alter_role, create_role, drop_role
from sql.binder.ddl.sequences import alter_sequence, create_sequence
from sql.binder.ddl.sources import (
    alter_source,
    create_source,
    create_table_from,
    create_tables_from,
    detach_source,
    drop_source,
)
from sql.binder.ddl.views import create_view
from sql.binder.session.meridian_statements import (
    advance_read_hold,
    advance_timeline,
    create_read_hold,
    create_table_in,
    create_timeline,
    drop_read_hold,
    drop_timeline,
    optimize,
    vacuum,
)
from sql.binder.session.stored_settings import set_for_database, set_for_role
from sql.binder.session.subscribe import copy_subscription, subscribe
from sql.binder.state import Binding
from sql.parser.meridian_nodes import (
    AdvanceReadHoldNode,
    AdvanceTimelineNode,
    AlterConnectionNode,
    AlterNamedNode,
    AlterSourceNode,
    CopySubscribeNode,
    CreateConnectionNode,
    CreateReadHoldNode,
    CreateSourceNode,
    CreateTableFromNode,
    CreateTableInNode,
    CreateTablesFromNode,
    CreateTimelineNode,
    DetachSourceNode,
    DropReadHoldNode,
    DropSourceNode,
    DropTimelineNode,
    OptimizeNode,
    SubscribeNode,
)
from sql.parser.syntax import Node
from sql.statements.bound import BoundStatement

DEFINITION_BINDERS: Final[Mapping[type, Callable[[Binding, Node], BoundStatement]]] = {
    ast.CreateTableAsStmt: create_as,
    ast.RefreshMatViewStmt: refresh_materialized_view,
    ast.CreateStmt: create_table,
    ast.CreateSchemaStmt: create_schema,
    ast.CreateSeqStmt: create_sequence,
    ast.IndexStmt: create_index,
    ast.CreateStatsStmt: create_statistics,
    ast.AlterStatsStmt: alter_statistics,
    ast.ViewStmt: create_view,
    ast.CreateEnumStmt: create_enum,
    ast.CreateExtensionStmt: create_extension,
    ast.AlterExtensionStmt: alter_extension,
    ast.CreateCastStmt: create_cast,
    ast.CreateDomainStmt: create_domain,
    ast.AlterDomainStmt: alter_domain,
    ast.AlterEnumStmt: alter_enum,
    ast.AlterSeqStmt: alter_sequence,
    ast.DropStmt: drop,
    ast.CommentStmt: comment,
    ast.CreateRoleStmt: create_role,
    ast.AlterRoleStmt: alter_role,
    ast.AlterRoleSetStmt: set_for_role,
    ast.AlterDatabaseSetStmt: set_for_database,
    ast.DropRoleStmt: drop_role,
    ast.GrantRoleStmt: grant_role,
    ast.GrantStmt: grant,
    ast.AlterDefaultPrivilegesStmt: alter_default_privileges,
    ast.AlterOwnerStmt: alter_owner,
    ast.ReassignOwnedStmt: reassign_owned,
    ast.DropOwnedStmt: drop_owned,
    ast.AlterTableStmt: alter_table,
    ast.RenameStmt: rename,
    ast.AlterObjectSchemaStmt: set_schema,
    ast.VacuumStmt: vacuum,
    ast.ReindexStmt: reindex,
    ast.ClusterStmt: cluster,
    CreateTimelineNode: create_timeline,
    DropTimelineNode: drop_timeline,
    AdvanceTimelineNode: advance_timeline,
    CreateTableInNode: create_table_in,
    CreateReadHoldNode: create_read_hold,
    AdvanceReadHoldNode: advance_read_hold,
    DropReadHoldNode: drop_read_hold,
    OptimizeNode: optimize,
    SubscribeNode: subscribe,
    CopySubscribeNode: copy_subscription,
    CreateConnectionNode: create_connection,
    AlterConnectionNode: alter_connection,
    AlterNamedNode: alter_named,
    CreateSourceNode: create_source,
    AlterSourceNode: alter_source,
    DropSourceNode: drop_source,
    CreateTableFromNode: create_table_from,
    CreateTablesFromNode: create_tables_from,
    DetachSourceNode: detach_source,
}
