"""Bind the statements of one session: under its variables, its search path and its transaction.

    statement + catalog + variables ─▶ plan cache ─▶ sql.binder ─▶ ParameterizedStatement

INVARIANTS
  B1  everything that the meaning of a statement depends on besides its text and the catalog is part
      of `setting`, the plan cache's key.
  B2  names of the session's own temporary schema are made absolute before they are bound, and
      plans with them are not shared.

Not here: snapshots, and running bound statements (`statement_runner.py`).
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from coordinator.execution.context import Execution
from coordinator.large_work import aside_if, is_large_statement
from coordinator.session.prepared_statements import (
    ExecuteCommand,
    argument_count_error,
    argument_query,
)
from coordinator.session.requests import Identity, Request
from coordinator.variables.session_roles import RoleName
from coordinator.version import PRODUCT_VERSION
from sql.binder.resolve.role_names import session_roles
from sql.binder.resolve.temporary_names import localize_temporary_names, mentions_temporary_schema
from sql.binder.state import BindContext
from sql.catalog.catalog import Catalog
from sql.catalog.temporary import TEMPORARY_SCHEMA_ALIAS
from sql.catalog.view_reads import ViewReads, allowed_view_reads
from sql.errors import SqlError, not_supported
from sql.parser.parse import Statement
from sql.statements.bound import BoundQuery, ParameterizedStatement
from sql.types.bpchar import with_padding
from sql.types.sql_type import SqlType, Value, parameter_type

VERSION: Final = f"PostgreSQL 18.0 (Meridian {PRODUCT_VERSION})"
"""What version() answers; clients look for the first two words."""

_ARGUMENT: Final = "this expression in EXECUTE"


class StatementBinder:
    """See the module."""

    def __init__(self, execution: Execution, identity: Identity) -> None:
        self._services = execution.services
        self._transaction = execution.transaction
        self._variables = execution.variables
        self._identity = identity
        self.path_first: tuple[str, ...] = ()
        """Schemas before the search path."""

    def bind(
        self,
        statement: Statement,
        catalog: Catalog,
        declared: tuple[SqlType | None, ...],
        *,
        fixed: bool = True,
        ts: int = 0,
    ) -> ParameterizedStatement:
        """Bind a statement. `fixed`: its parameters have the types that were declared."""
        statement, shared = self._localized(statement)
        return self._services.plans.bind(
            statement,
            lambda: self.context(catalog, fixed=fixed, ts=ts),
            declared,
            setting=self.setting(catalog, fixed=fixed),
            shared=shared,
        )

    async def bound(
        self,
        statement: Statement,
        catalog: Catalog,
        declared: tuple[SqlType | None, ...],
        *,
        fixed: bool = True,
        ts: int = 0,
    ) -> ParameterizedStatement:
        """The same, off the loop if the statement is large."""
        is_large = is_large_statement(statement)
        statement, shared = await aside_if(is_large, partial(self._localized, statement))
        return await self._services.plans.bound(
            statement,
            lambda: self.context(catalog, fixed=fixed, ts=ts),
            declared,
            setting=self.setting(catalog, fixed=fixed),
            shared=shared,
        )

    def _localized(self, statement: Statement) -> tuple[Statement, bool]:
        """The statement with names of its own (B2), and whether its plan is shared."""
        # The transaction has begun now, whether or not anybody asks when.
        self._transaction.now()
        if not mentions_temporary_schema(statement.text):
            return statement, not self._transaction.changed_catalog
        own = self._identity.temporary
        return replace(statement, node=localize_temporary_names(statement.node, own)), False

    def under(
        self, request: Request, catalog: Catalog, execution: Execution | None = None
    ) -> Request:
        """The request under a catalog: that of a template of another one is its text again, which
        has no parameters (T2 of `planning/literal_templates.py`).
        """
        template = request.template
        if template is None:
            return request
        is_good = template.catalog is catalog
        if execution is not None:
            # The attempt before may have been under the other one.
            execution.parameters = template.values if is_good else ()
        if is_good:
            return request
        (statement,) = self._services.plans.parse(template.text)
        return Request(statement)

    def setting(self, catalog: Catalog, *, fixed: bool) -> tuple[object, ...]:
        """What a plan depends on besides the statement."""
        own = self._identity.temporary
        key: tuple[object, ...] = self._variables.binding_key, catalog.version, fixed
        if catalog.exact_views and self._transaction.wrote:
            key = (*key, self._view_reads)
        return (*key, own) if own in catalog.schemas else key

    def context(self, catalog: Catalog, *, fixed: bool = True, ts: int = 0) -> BindContext:
        """What binding under that catalog, at that timestamp, depends on."""
        own = self._identity.temporary
        path = (*self.path_first, *self._variables.search_path)
        first = TEMPORARY_SCHEMA_ALIAS not in path and own in catalog.schemas
        path = (
            (own, *path)
            if first
            else tuple([own if name == TEMPORARY_SCHEMA_ALIAS else name for name in path])
        )
        return BindContext(
            catalog=catalog,
            search_path=path,
            temporary=own,
            temporary_first=first,
            now=self._transaction.now(),
            timezone=self._variables.timezone,
            styles=self._variables.styles,
            user=self._role_name(self._variables.current_user, catalog),
            user_oid=self._variables.current_user.oid,
            session_user=self._role_name(self._variables.session_user, catalog),
            login=self._variables.owner_alias,
            database=self._identity.database,
            backend_pid=self._identity.pid,
            version=VERSION,
            statement_now=self._services.clock.now(),
            settings=self._variables.shown,
            parameters_fixed=fixed,
            logical_now=ts,
            started_at=self._identity.started_at,
            ports=self._identity.ports,
            exported=self._transaction.exported,
            view_reads=self._view_reads,
        )

    @property
    def _view_reads(self) -> ViewReads:
        """What it may read of views that follow their inputs."""
        transaction = self._transaction
        has_changed = transaction.wrote or transaction.changed_catalog
        return allowed_view_reads(self._variables.get("view_reads"), has_changed=has_changed)

    def _role_name(self, role: RoleName, catalog: Catalog) -> str:
        """What a role is called in that catalog, or now if the catalog is one from before it."""
        variables = self._variables
        if role.oid == variables.connected.oid and not catalog.roles:
            return str(variables.connected)
        for known in (catalog, self._services.coordination.newest_catalog):
            roles = session_roles(known, variables.owner_alias)
            if roles.by_oid(role.oid) is not None:
                break
        return roles.name(role.oid)

    async def arguments(
        self, statement: Statement, invocation: ExecuteCommand, types: Sequence[SqlType]
    ) -> tuple[Value, ...]:
        """The values of EXECUTE's arguments, in the types of the statement's parameters."""
        problem = argument_count_error(invocation.name, invocation.arguments, len(types))
        if problem is not None:
            raise SqlError("42601", problem[0], detail=problem[1])
        return tuple(
            [
                await self._argument(
                    argument_query(statement, argument, parameter_type(type_), place)
                )
                for place, (argument, type_) in enumerate(
                    zip(invocation.arguments, types, strict=True), 1
                )
            ]
        )

    async def _argument(self, query: Statement) -> Value:
        prepared = await self.bound(query, self._services.coordination.newest_catalog, ())
        bound = prepared.bound
        assert isinstance(bound, BoundQuery), "a SELECT is bound to a query"
        if bound.tables or prepared.supplied or bound.calls is not None:
            raise not_supported(_ARGUMENT)
        plan, type_, in_process = bound.plan, bound.columns[0].type, self._services.in_process

        await aside_if(is_large_statement(query), partial(in_process.require, plan, _ARGUMENT))
        return with_padding(await in_process.value(plan), type_)
