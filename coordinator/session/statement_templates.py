"""Find the template of a text for one session, and make it when its shape comes again.

Templates are shared by all sessions (`planning/literal_templates.py`); what they are good for
depends on the session's settings and on the catalog.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from coordinator.execution.context import Services
from coordinator.execution.short_read import compile_short_read
from coordinator.planning.literal_templates import (
    Literals,
    Shape,
    Template,
    computed_constants,
    keep_template,
    known_template,
    may_have_template,
    means_the_same,
    read_places,
    split_literals,
    text_with_parameters,
)
from coordinator.session.portal import PreparedStatement
from coordinator.session.requests import TemplateOrigin
from coordinator.session.result_columns import result_columns
from coordinator.session.statement_binder import StatementBinder
from coordinator.transaction.transaction import SessionTransaction
from coordinator.variables.variables import Variables
from sql.binder.resolve.temporary_names import mentions_temporary_schema
from sql.catalog.catalog import Catalog
from sql.errors import SqlError
from sql.parser.parse import Statement
from sql.parser.truncated_names import truncated_name_notices
from sql.statements.bound import BoundQuery, ParameterizedStatement
from sql.types.sql_type import Value


@dataclass(frozen=True, slots=True)
class FilledTemplate:
    """A template, and the values of its parameters."""

    template: Template
    values: tuple[Value, ...]

    def prepared(self, text: str) -> PreparedStatement:
        """As a statement to run in place of the text."""
        template = self.template
        origin = TemplateOrigin(template.catalog, text, self.values)
        return PreparedStatement(
            template.statement, template.types, template.types, template.columns, template=origin
        )


class StatementTemplates:
    """See the module."""

    def __init__(
        self,
        services: Services,
        transaction: SessionTransaction,
        variables: Variables,
        binder: StatementBinder,
    ) -> None:
        self._services = services
        self._transaction = transaction
        self._variables = variables
        self._binder = binder

    def known(self, text: str) -> FilledTemplate | None:
        """The text as a template that is known already; nothing changes."""
        split = split_literals(text)
        if split is None:
            return None
        shape = self._services.templates.shape(split[0])
        return None if shape is None else self._known(shape, split[1])

    def find(self, text: str) -> FilledTemplate | None:
        """The text as a template, made now if its shape was seen before."""
        split = split_literals(text)
        if split is None or not self._services.limits.short_reads:
            return None
        if self._transaction.failed or self._transaction.changed_catalog:
            return None
        key, literals = split
        shape = self._services.templates.shape(key)
        if shape is None or shape.refused:
            return None
        found = self._known(shape, literals)
        if found is not None:
            return found
        catalog = self._services.coordination.newest_catalog
        if known_template(shape, catalog, self._setting(catalog)) is not None:
            return None
        template = self._made(text, key, literals)
        if template is None:
            shape.refused = not shape.templates
            return None
        keep_template(shape, template)
        return self._known(shape, literals)

    def _setting(self, catalog: Catalog) -> tuple[object, ...]:
        return self._binder.setting(catalog, fixed=True)

    def _known(self, shape: Shape, literals: Literals) -> FilledTemplate | None:
        if not shape.templates:
            return None
        catalog = self._services.coordination.newest_catalog
        template = known_template(shape, catalog, self._setting(catalog))
        return None if template is None else self._filled(template, literals)

    def _filled(self, template: Template, literals: Literals) -> FilledTemplate | None:
        try:
            values = template.values(literals, self._variables.timezone, self._variables.styles)
        except SqlError:
            return None
        return None if values is None else FilledTemplate(template, values)

    def _is_short(self, bound: ParameterizedStatement) -> bool:
        return compile_short_read(bound, self._services) is not None

    def _made(self, text: str, key: str, literals: Literals) -> Template | None:
        """A template for the shape of this text; None if it does not surely mean the same."""
        catalog = self._services.coordination.newest_catalog
        if mentions_temporary_schema(text) or any(truncated_name_notices(text)):
            return None
        written, declared = text_with_parameters(key)
        try:
            statements = self._services.plans.parse(written)
            plain = _only(self._services.plans.parse(text))
            statement = _only(statements)
            if statement is None or plain is None:
                return None
            types = self._binder.bind(statement, catalog, declared, fixed=False).parameters
            bound = self._binder.bind(statement, catalog, types)
            columns = result_columns(bound.bound, self._variables)
            if not may_have_template(bound):
                return None
            if isinstance(bound.bound, BoundQuery) and not self._is_short(bound):
                return None  # constants may decide which engine runs it
            template = Template(
                statement,
                types,
                columns,
                catalog,
                self._setting(catalog),
                read_places(key, types),
                computed_constants(bound.bound),
            )
            filled = self._filled(template, literals)
            literal = self._binder.bind(plain, catalog, ())
        except SqlError:
            return None
        if filled is None or not means_the_same(bound, filled.values, literal):
            return None
        return template


def _only(statements: Sequence[Statement]) -> Statement | None:
    """The statement of a text that has one, which is of the present."""
    if len(statements) != 1 or statements[0].node is None or statements[0].as_of is not None:
        return None
    return statements[0]
