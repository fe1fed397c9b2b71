"""The prepared statements of a session by name, and rows of pg_prepared_statements and pg_cursors.

Not here: what they are (`portal.py`), and when a portal closes (`portals.py`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from coordinator import session_errors as wrong
from coordinator.memory_account import MemoryAccount, MemoryOwner
from coordinator.pgcatalog.named_row import NamedRow
from coordinator.session.portal import PreparedStatement
from coordinator.session.portals import Portals
from coordinator.session.prepared_statements import ExecuteCommand, FetchCommand, NamedCommand
from sql.statements.bound import OutputColumn
from sql.types.sql_type import Value
from storage.clock import Clock

STATEMENT_BYTES: Final = 8_000
TEXT_FACTOR: Final = 20
"""Bytes of a prepared statement, and of each character of its text: trees of Python objects."""


class PreparedStatements(dict[str, PreparedStatement]):
    """See the module; each notes when it came."""

    def __init__(self, clock: Clock, memory: MemoryAccount, most: int) -> None:
        super().__init__()
        self._clock = clock
        self._most = most
        self._memory = memory.holding(MemoryOwner.STATEMENTS)
        self._nbytes: dict[str, int] = {}

    def __setitem__(self, name: str, prepared: PreparedStatement) -> None:
        """Raises 53400 and 53200."""
        if name not in self and len(self) >= self._most:
            raise wrong.too_many_statements(self._most)
        nbytes = STATEMENT_BYTES + TEXT_FACTOR * len(prepared.statement.text)
        self._memory.add(nbytes - self._nbytes.get(name, 0))
        self._nbytes[name] = nbytes
        prepared.prepared_at = self._clock.now()
        super().__setitem__(name, prepared)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._memory.add(-self._nbytes.pop(name))

    def drop(self, name: str) -> bool:
        """One goes; whether it was there."""
        is_there = name in self
        if is_there:
            del self[name]
        return is_there

    def forget_all(self) -> None:
        """The session is over."""
        self._memory.close()

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
