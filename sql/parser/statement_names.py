"""Name statements, objects and ALTER TABLE actions in SQL's words, for messages and tags."""

import re
from typing import Final

from pglast import ast
from pglast.enums import AlterTableType, ObjectType

from sql.parser.syntax import Node, is_a

_A: Final = AlterTableType
_O: Final = ObjectType


def statement_name(node: Node) -> str:
    """`CREATE TRIGGER` for a `CreateTrigStmt`."""
    if is_a(node, ast.DefineStmt):
        return f"CREATE {object_type_name(node.kind)}"
    return _STATEMENTS.get(type(node)) or _spaced(type(node).__name__.removesuffix("Stmt"))


def object_type_name(kind: ObjectType) -> str:
    """`MATERIALIZED VIEW` for `OBJECT_MATVIEW`; command tags use it too."""
    return _OBJECTS.get(kind) or kind.name.removeprefix("OBJECT_").replace("_", " ")


def alter_action_name(action: AlterTableType) -> str:
    """`SET STORAGE` for `AT_SetStorage`."""
    return _ACTIONS.get(action) or _spaced(action.name.removeprefix("AT_"))


def _spaced(name: str) -> str:
    return re.sub("(?<=[a-z])(?=[A-Z])", " ", name).upper()


# Only those that the parser's own name does not yield.

_STATEMENTS: Final[dict[type, str]] = {
    ast.AlterDatabaseSetStmt: "ALTER DATABASE .. SET",
    ast.AlterDatabaseRefreshCollStmt: "ALTER DATABASE .. REFRESH COLLATION VERSION",
    ast.AlterEventTrigStmt: "ALTER EVENT TRIGGER",
    ast.AlterExtensionContentsStmt: "ALTER EXTENSION",
    ast.AlterFdwStmt: "ALTER FOREIGN DATA WRAPPER",
    ast.AlterForeignServerStmt: "ALTER SERVER",
    ast.AlterObjectDependsStmt: "DEPENDS ON EXTENSION",
    ast.AlterOpFamilyStmt: "ALTER OPERATOR FAMILY",
    ast.AlterStatsStmt: "ALTER STATISTICS",
    ast.AlterTSConfigurationStmt: "ALTER TEXT SEARCH CONFIGURATION",
    ast.AlterTSDictionaryStmt: "ALTER TEXT SEARCH DICTIONARY",
    ast.AlterTableMoveAllStmt: "ALTER ALL IN TABLESPACE",
    ast.AlterTableSpaceOptionsStmt: "ALTER TABLESPACE",
    ast.CheckPointStmt: "CHECKPOINT",
    ast.CompositeTypeStmt: "a composite type",
    ast.CreateAmStmt: "CREATE ACCESS METHOD",
    ast.CreateEventTrigStmt: "CREATE EVENT TRIGGER",
    ast.CreateFdwStmt: "CREATE FOREIGN DATA WRAPPER",
    ast.CreateForeignServerStmt: "CREATE SERVER",
    ast.CreateOpClassStmt: "CREATE OPERATOR CLASS",
    ast.CreateOpFamilyStmt: "CREATE OPERATOR FAMILY",
    ast.CreatePLangStmt: "CREATE LANGUAGE",
    ast.CreateRangeStmt: "a range type",
    ast.CreateStatsStmt: "CREATE STATISTICS",
    ast.CreateTableSpaceStmt: "CREATE TABLESPACE",
    ast.CreateTrigStmt: "CREATE TRIGGER",
    ast.CreatedbStmt: "CREATE DATABASE",
    ast.DeclareCursorStmt: "DECLARE CURSOR",
    ast.DropTableSpaceStmt: "DROP TABLESPACE",
    ast.DropdbStmt: "DROP DATABASE",
    ast.RefreshMatViewStmt: "REFRESH MATERIALIZED VIEW",
    ast.RuleStmt: "CREATE RULE",
    ast.SecLabelStmt: "SECURITY LABEL",
}

_OBJECTS: Final = {
    _O.OBJECT_FDW: "FOREIGN DATA WRAPPER",
    _O.OBJECT_FOREIGN_SERVER: "SERVER",
    _O.OBJECT_LARGEOBJECT: "LARGE OBJECT",
    _O.OBJECT_MATVIEW: "MATERIALIZED VIEW",
    _O.OBJECT_OPCLASS: "OPERATOR CLASS",
    _O.OBJECT_OPFAMILY: "OPERATOR FAMILY",
    _O.OBJECT_STATISTIC_EXT: "STATISTICS",
    _O.OBJECT_TSCONFIGURATION: "TEXT SEARCH CONFIGURATION",
    _O.OBJECT_TSDICTIONARY: "TEXT SEARCH DICTIONARY",
    _O.OBJECT_TSPARSER: "TEXT SEARCH PARSER",
    _O.OBJECT_TSTEMPLATE: "TEXT SEARCH TEMPLATE",
}

_ACTIONS: Final = {
    _A.AT_AddInherit: "INHERIT",
    _A.AT_AddOf: "OF",
    _A.AT_AlterColumnGenericOptions: "ALTER COLUMN .. OPTIONS",
    _A.AT_ChangeOwner: "OWNER TO",
    _A.AT_DetachPartitionFinalize: "DETACH PARTITION",
    _A.AT_DisableRowSecurity: "DISABLE ROW LEVEL SECURITY",
    _A.AT_DisableTrig: "DISABLE TRIGGER",
    _A.AT_DisableTrigAll: "DISABLE TRIGGER ALL",
    _A.AT_DisableTrigUser: "DISABLE TRIGGER USER",
    _A.AT_DropCluster: "SET WITHOUT CLUSTER",
    _A.AT_DropInherit: "NO INHERIT",
    _A.AT_DropOf: "NOT OF",
    _A.AT_DropOids: "SET WITHOUT OIDS",
    _A.AT_EnableAlwaysTrig: "ENABLE ALWAYS TRIGGER",
    _A.AT_EnableReplicaTrig: "ENABLE REPLICA TRIGGER",
    _A.AT_EnableRowSecurity: "ENABLE ROW LEVEL SECURITY",
    _A.AT_EnableTrig: "ENABLE TRIGGER",
    _A.AT_EnableTrigAll: "ENABLE TRIGGER ALL",
    _A.AT_EnableTrigUser: "ENABLE TRIGGER USER",
    _A.AT_ForceRowSecurity: "FORCE ROW LEVEL SECURITY",
    _A.AT_GenericOptions: "OPTIONS",
    _A.AT_NoForceRowSecurity: "NO FORCE ROW LEVEL SECURITY",
    _A.AT_SetOptions: "ALTER COLUMN .. SET",
    _A.AT_ResetOptions: "ALTER COLUMN .. RESET",
    _A.AT_SetTableSpace: "SET TABLESPACE",
    _A.AT_SetUnLogged: "SET UNLOGGED",
}
