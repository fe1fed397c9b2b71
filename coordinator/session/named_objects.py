"""The prepared statements of a session by name, and rows of pg_prepared_statements and pg_cursors.

Not here: what they are (`portal.py`), and when a portal closes (`portals.py`).
"""

from collections.abc import Iterator, Mapping, Sequence

from coordinator.pgcatalog.named_row import NamedRow
from coordinator.session.portal import PreparedStatement
from coordinator.session.portals import Portals
from coordinator.session.prepared_statements import ExecuteCommand, FetchCommand, NamedCommand
from sql.statements.bound import OutputColumn
from sql.types.sql_type import Value
from storage.clock import Clock


class PreparedStatements(dict[str, PreparedStatement]):
    """See the module; each notes when it came."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def __setitem__(self, name: str, prepared: PreparedStatement) -> None:
        prepared.prepared_at = self._clock.now()
        super().__setitem__(name, prepared)

    def clear_named(self) -> None:
        """Those that have names go; only Parse and Query replace the one without."""
        for name in [*filter(None, self)]:
            del self[name]

    def rows(self) -> Iterator[NamedRow]:
        """Of pg_prepared_statements; one without a name is not listed."""
        for name, prepared in self.items():
            if name:
                shown = [column.type.oid for column in prepared.columns or ()]
                yield {
                    "name": name,
                    "statement": prepared.statement.text,
                    "prepare_time": prepared.prepared_at,
                    "parameter_types": tuple([type_.oid for type_ in prepared.parameters]),
                    "result_types": None if prepared.columns is None else tuple(shown),
                    # The text of an SQL statement begins before the one that it prepares.
                    "from_sql": prepared.statement.offset < 0,
                    "generic_plans": 0,
                    "custom_plans": 0,
                }


def named_rows(
    statements: PreparedStatements, portals: Portals
) -> Mapping[str, Sequence[Mapping[str, Value]]]:
    """The rows by relation, as they are now."""
    return {
        "pg_prepared_statements": list(statements.rows()),
        "pg_cursors": list(portals.rows()),
    }


def named_columns(
    named: NamedCommand, statements: Mapping[str, PreparedStatement], portals: Portals
) -> tuple[OutputColumn, ...] | None:
    """The columns of what EXECUTE or FETCH names at this moment; None if it is not there."""
    match named:
        case ExecuteCommand(name=name) if name in statements:
            return statements[name].columns
        case FetchCommand(name=name, move=False):
            portal = portals.cursor(name)
            return None if portal is None else portal.prepared.columns
        case _:
            return None
