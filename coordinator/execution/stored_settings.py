"""ALTER ROLE and ALTER DATABASE .. SET: check the value as SET would; later sessions start with it.

Privileges are not enforced, but only superusers store a setting that only they may set.
"""

from coordinator.core.messages.catalog_changes import CatalogChange, PutSettings
from coordinator.execution.context import Execution
from coordinator.pgwire.messages import Severity
from coordinator.variables.session_roles import NO_ROLE, ROLE, SESSION_AUTHORIZATION
from coordinator.variables.variables import TRANSACTION_MODES
from sql.binder.resolve.role_names import session_roles
from sql.catalog.stored_settings import with_setting
from sql.errors import SqlError, not_supported
from sql.statements.ddl import StoredSetting


def settings_changes(execution: Execution, setting: StoredSetting) -> list[CatalogChange]:
    """The changes. Raises 22023, 42501, 42704, 55P02."""
    before = execution.catalog().settings.get(setting.scope, ())
    after = () if setting.name is None else _with_value(execution, setting, before)
    if after == before:
        return []
    return [PutSettings(setting.scope, before, after)]


def _with_value(
    execution: Execution, setting: StoredSetting, before: tuple[str, ...]
) -> tuple[str, ...]:
    assert setting.name is not None, "it is not RESET ALL"
    variables = execution.variables
    variables.check_changeable(setting.name)
    name, value = variables.canonical(setting.name), setting.value
    if TRANSACTION_MODES.get(name, name) != name:
        raise not_supported(f"storing {name}")
    if setting.is_current:
        value = variables.show(name)
    if value is not None and name in (ROLE, SESSION_AUTHORIZATION):
        _check_role(execution, value)
    elif value is not None:
        variables.checked(name, value)
    return with_setting(before, name, value)


def _check_role(execution: Execution, value: str) -> None:
    """A NOTICE for a role that is not there yet (check_role)."""
    roles = session_roles(execution.catalog(), execution.variables.owner_alias)
    if value != NO_ROLE and roles.named(value) is None:
        execution.notice(SqlError("42704", f'role "{value}" does not exist'), Severity.NOTICE)
