"""What is known of statements that were bound before: how they are answered at once.

A statement is known under one catalog and the settings of its session, once the general way has
bound it (Y3 of `short_answers.py`).
"""

from collections.abc import Sequence
from typing import Final

from compute.identity_cache import IdentityCache
from coordinator.execution.blind_insert import known_blind_insert
from coordinator.execution.context import Services
from coordinator.execution.short_read import compile_short_read
from coordinator.execution.short_writes.run import known_short_write
from coordinator.planning.literal_templates import Template
from coordinator.session.portal import PreparedStatement
from coordinator.session.short_statement import ShortStatement
from coordinator.session.statement_binder import StatementBinder
from coordinator.session.statement_counting import StatementCounting
from coordinator.variables.variables import Variables
from sql.binder.resolve.type_names import latest_types
from sql.catalog.catalog import Catalog
from sql.parser.parse import Statement
from sql.statements.bound import OutputColumn, ParameterizedStatement
from sql.types.sql_type import SqlType

_TEMPLATES_MAX: Final = 200
"""Of which a session remembers how they are answered."""


class KnownStatements:
    """See the module."""

    def __init__(
        self,
        services: Services,
        variables: Variables,
        binder: StatementBinder,
        counting: StatementCounting,
    ) -> None:
        self._services = services
        self._counting = counting
        self._variables = variables
        self._binder = binder
        self._of_templates: IdentityCache[Template, ShortStatement] = IdentityCache(_TEMPLATES_MAX)

    def of_template(self, template: Template) -> ShortStatement | None:
        """A text whose literals are parameters."""
        engine = self._variables.get("engine")
        known = self._of_templates.get(template)
        if known is None or known.engine != engine:
            bound = self._services.plans.known(
                template.statement, template.types, setting=template.setting
            )
            if bound is None:
                return None
            known = self._short(
                template.statement, bound, template.columns, template.types, template.setting
            )
            self._of_templates.put(template, known)
        return known

    def of_prepared(self, prepared: PreparedStatement, catalog: Catalog) -> ShortStatement | None:
        """A prepared statement; None before the general way has bound it under the catalog."""
        setting = self._binder.setting(catalog, fixed=True)
        known = prepared.short
        engine = self._variables.get("engine")
        if known is not None and known.setting == setting and known.engine == engine:
            return known
        if prepared.read is not None or prepared.statement.as_of is not None:
            return None
        plans = self._services.plans
        bound = plans.known(prepared.statement, prepared.declared, setting=setting)
        if bound is None:
            return None
        # A label of an enum may have come, or have another name, since it was prepared.
        types = latest_types(catalog, prepared.parameters)
        prepared.short = self._short(prepared.statement, bound, prepared.columns, types, setting)
        return prepared.short

    def _short(
        self,
        statement: Statement,
        bound: ParameterizedStatement,
        promised: tuple[OutputColumn, ...] | None,
        types: Sequence[SqlType],
        setting: tuple[object, ...],
    ) -> ShortStatement:
        engine = self._variables.get("engine")
        read = compile_short_read(bound, self._services)
        if read is not None and (read.columns != promised or not read.may_run_on(engine)):
            read = None
        write = known_short_write(bound, self._services)
        if write is not None and write.columns != promised:
            write = None
        insert = None if promised else known_blind_insert(bound, self._services.in_process)
        counted = None
        if read is not None or write is not None or insert is not None:
            catalog = self._services.coordination.newest_catalog
            counted = self._counting.of_plan(statement, bound, catalog)
        return ShortStatement(setting, engine, tuple(types), bound, read, write, insert, counted)
