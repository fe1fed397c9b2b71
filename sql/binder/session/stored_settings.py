"""ALTER ROLE and ALTER DATABASE .. SET: what later sessions start with (AlterSetting)."""

from pglast.enums import VariableSetKind

from sql.binder.resolve.role_names import resolve_role, role_spec_name, roles_of
from sql.binder.session.settings import flattened_values
from sql.binder.state import Binding
from sql.catalog.oids import DATABASE_OIDS
from sql.catalog.roles import is_reserved_role_name
from sql.catalog.stored_settings import SettingScope
from sql.errors import SqlError, not_supported
from sql.parser.syntax import Node
from sql.statements.ddl import ChangePrivileges, StoredSetting


def set_for_role(binding: Binding, node: Node) -> ChangePrivileges:
    """ALTER ROLE name or ALL [IN DATABASE ..] SET and RESET."""
    role = 0
    if node.role is not None:
        if is_reserved_role_name(role_spec_name(binding, node.role)):
            name = role_spec_name(binding, node.role)
            detail = "Cannot alter reserved roles."
            raise SqlError("42939", f'role name "{name}" is reserved', detail=detail)
        role = resolve_role(binding, roles_of(binding.context), node.role).oid
    database = 0 if node.database is None else _database(node.database)
    return _change(binding, "ALTER ROLE", SettingScope(database, role), node.setstmt)


def set_for_database(binding: Binding, node: Node) -> ChangePrivileges:
    """ALTER DATABASE .. SET and RESET."""
    scope = SettingScope(_database(node.dbname), 0)
    return _change(binding, "ALTER DATABASE", scope, node.setstmt)


def _database(name: str) -> int:
    if name not in DATABASE_OIDS:
        raise SqlError("3D000", f'database "{name}" does not exist')
    return DATABASE_OIDS[name]


def _change(binding: Binding, tag: str, scope: SettingScope, node: Node) -> ChangePrivileges:
    name: str = node.name or ""
    match node.kind:
        case VariableSetKind.VAR_RESET_ALL:
            setting = StoredSetting(scope, None)
        case VariableSetKind.VAR_RESET | VariableSetKind.VAR_SET_DEFAULT:
            setting = StoredSetting(scope, name)
        case VariableSetKind.VAR_SET_CURRENT:
            setting = StoredSetting(scope, name, is_current=True)
        case VariableSetKind.VAR_SET_VALUE:
            value = flattened_values(binding, name.lower(), node.args)
            setting = StoredSetting(scope, name, value)
        case _:
            raise not_supported(f"{tag} .. SET TRANSACTION")
    return ChangePrivileges(tag, setting=setting)
