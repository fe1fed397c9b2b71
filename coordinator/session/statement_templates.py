"""Find the template of a text for one session, and make it when its shape comes again.

Templates are shared by all sessions (`planning/literal_templates.py`); what they are good for
depends on the session's settings and on the catalog.
"""

from collections.abc import Sequence

from coordinator.execution.context import Services, StatementRuns
from coordinator.execution.short_read import compile_short_read
from coordinator.large_work import aside_if, is_large_text
from coordinator.planning.literal_templates import (
    Literals,
    Shape,
    Template,
    computed_constants,
    may_have_template,
    means_the_same,
    read_places,
    split_literals,
    text_with_parameters,
)
from coordinator.planning.row_templates import TextRow, split_rows
from coordinator.session.portal import PreparedStatement
from coordinator.session.requests import Request, RowShapes, TemplateOrigin
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
from storage.fast_dataclass import fast_dataclass


@fast_dataclass(frozen=True, slots=True)
class FilledTemplate:
    """A template under a catalog, and the values of its parameters."""

    template: Template
    catalog: Catalog
    values: tuple[Value, ...]

    def prepared(self, text: str) -> PreparedStatement:
        """As a statement to run in place of the text."""
        template = self.template
        origin = TemplateOrigin(self.catalog, text, self.values)
        return PreparedStatement(
            template.statement, template.types, template.types, template.columns, template=origin
        )


@fast_dataclass(frozen=True, slots=True)
class FilledRows:
    """The rows of an INSERT: for each the place of its template, and the values."""

    catalog: Catalog
    templates: Sequence[Template]
    of: Sequence[int]
    sets: Sequence[tuple[Value, ...]]

    def request(self) -> Request:
        """To be run with `runs`."""
        statements = tuple([(one.statement, one.types) for one in self.templates])
        return Request(*statements[0], shapes=RowShapes(self.catalog, statements))

    def runs(self) -> StatementRuns:
        """All rows at once."""
        return StatementRuns(self.sets, of=self.of, is_one=True)


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
        """The text as a template that is known already; nothing changes. Raises SqlError."""
        split = split_literals(text)
        if split is None:
            return None
        catalog = self._services.coordination.newest_catalog
        shape = self._services.templates.known_shape(split[0], catalog)
        return None if shape is None else self._known(shape, catalog, split[1])

    async def find(self, text: str) -> FilledTemplate | None:
        """The text as a template, made now if its shape was seen before."""
        split = split_literals(text)
        if split is None or not self._services.limits.short_reads:
            return None
        if self._transaction.failed or self._transaction.changed_catalog:
            return None
        key, literals = split
        catalog = self._services.coordination.newest_catalog
        shape = self._services.templates.shape(key, catalog)
        if shape is None or shape.refused:
            return None
        setting = self._binder.setting(catalog, fixed=True)
        if not shape.is_known(setting):
            shape.keep(setting, await self._made(text, key, literals, catalog))
        try:
            return self._known(shape, catalog, literals)
        except SqlError:
            return None  # its own text says what is wrong (T3, T4 of `literal_templates.py`)

    async def rows(self, text: str) -> FilledRows | None:
        """The text as rows of an INSERT, each a template filled in; None if not all of them are."""
        if not self._services.limits.short_reads or self._transaction.failed:
            return None
        if self._transaction.changed_catalog:
            return None
        is_large = is_large_text(text)
        split = await aside_if(is_large, lambda: split_rows(text))
        if split is None:
            return None
        catalog = self._services.coordination.newest_catalog
        templates: list[Template] = []
        for row in split.shapes:
            template = await self._row_template(row, catalog)
            if template is None:
                return None
            templates.append(template)
        timezone, styles = self._variables.timezone, self._variables.styles

        def filled() -> list[tuple[Value, ...]] | None:
            sets: list[tuple[Value, ...]] = []
            try:
                for place, literals in zip(split.of, split.literals, strict=True):
                    values = templates[place].values(literals, timezone, styles, computes=False)
                    if values is None:
                        return None
                    sets.append(values)
            except SqlError:
                return None  # see `find`
            return sets

        sets = await aside_if(is_large, filled)
        return None if sets is None else FilledRows(catalog, templates, split.of, sets)

    async def _row_template(self, row: TextRow, catalog: Catalog) -> Template | None:
        """The template of a row that is the only one of its statement."""
        known = self._services.templates
        # It is made at the first sight: there are other rows like it.
        shape = known.shape(row.key, catalog) or known.shape(row.key, catalog)
        if shape is None or shape.refused:
            return None
        setting = self._binder.setting(catalog, fixed=True)
        if not shape.is_known(setting):
            made = await self._made(row.text, row.key, row.literals, catalog)
            shape.keep(setting, made)
        return shape.template(setting)

    def _known(self, shape: Shape, catalog: Catalog, literals: Literals) -> FilledTemplate | None:
        template = shape.template(self._binder.setting(catalog, fixed=True))
        return None if template is None else self._filled(template, catalog, literals)

    def _filled(
        self, template: Template, catalog: Catalog, literals: Literals
    ) -> FilledTemplate | None:
        values = template.values(literals, self._variables.timezone, self._variables.styles)
        return None if values is None else FilledTemplate(template, catalog, values)

    async def _made(
        self, text: str, key: str, literals: Literals, catalog: Catalog
    ) -> Template | None:
        """A template for the shape of this text; None if it does not surely mean the same."""
        try:
            return await self._proved(text, key, literals, catalog)
        except SqlError:
            return None

    async def _proved(
        self, text: str, key: str, literals: Literals, catalog: Catalog
    ) -> Template | None:
        """The same. Raises SqlError, for a text that has no meaning, too."""
        if mentions_temporary_schema(text) or any(truncated_name_notices(text)):
            return None
        written, declared = text_with_parameters(key)
        statement = _only(await self._services.plans.parsed(written))
        plain = _only(await self._services.plans.parsed(text))
        if statement is None or plain is None:
            return None
        found = await self._binder.bound(statement, catalog, declared, fixed=False)
        types = found.parameters
        bound = await self._binder.bound(statement, catalog, types)
        if not may_have_template(bound):
            return None
        if isinstance(bound.bound, BoundQuery) and not self._is_short(bound):
            return None  # constants may decide which engine runs it
        template = Template(
            statement,
            types,
            result_columns(bound.bound, self._variables),
            self._binder.setting(catalog, fixed=True),
            read_places(key, types),
            computed_constants(bound.bound, len(types)),
        )
        filled = self._filled(template, catalog, literals)
        literal = await self._binder.bound(plain, catalog, ())
        if filled is None or not means_the_same(bound, filled.values, literal):
            return None
        return template

    def _is_short(self, bound: ParameterizedStatement) -> bool:
        return compile_short_read(bound, self._services) is not None


def _only(statements: Sequence[Statement]) -> Statement | None:
    """The statement of a text that has one, which is of the present."""
    if len(statements) != 1 or statements[0].node is None:
        return None
    if statements[0].as_of is not None or statements[0].is_dated:
        return None
    return statements[0]
