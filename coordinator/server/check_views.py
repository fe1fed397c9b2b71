"""`meridian check --views`: compare each exact view of a server that runs with its query.

    one transaction: which are exact? ─▶ REFRESH of each ─▶ how many rows differ ─▶ ROLLBACK

REFRESH compares the rows, and what it might write is rolled back. So nothing changes, and all views
are compared at one timestamp. A view that is behind is read by its query: it has nothing to prove.
"""

import re
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from coordinator.exit_line import report_failure
from sql.types.sql_type import quoted_name

if TYPE_CHECKING:
    from psycopg import Connection

_VIEWS: Final = (
    "SELECT table_schema, table_name FROM meridian.materialized_views"
    " WHERE refresh = 'on commit' ORDER BY 1, 2"
)
_COUNT: Final = re.compile(r": (\d+) rows? differs? from those of its query$")


@dataclass(slots=True)
class ViewComparisons:
    """What was found: by view how many rows differ, and which views are behind."""

    differing: dict[str, int] = field(default_factory=dict[str, int])
    behind: list[str] = field(default_factory=list[str])

    def lines(self) -> Iterator[str]:
        """For people."""
        for name in self.behind:
            yield f"{name}: behind its inputs, not compared"
        for name, count in self.differing.items():
            if count:
                yield f"error: {name}: {count} of its rows differ from those of its query"
        wrong = sum(count > 0 for count in self.differing.values())
        verdict = "ok" if not wrong else f"{wrong} differ"
        yield f"compared {len(self.differing)} views: {verdict}"


def check_views(dsn: str) -> int:
    """Compare all exact views of a server; 0 if they have the rows of their queries."""
    import psycopg

    try:
        with psycopg.connect(dsn, autocommit=True) as connection:
            found = compare_views(connection)
    except psycopg.Error as error:
        return report_failure(str(error))
    for line in found.lines():
        sys.stdout.write(f"{line}\n")
    return 1 if any(found.differing.values()) else 0


def compare_views(connection: "Connection[Any]") -> ViewComparisons:
    """See the module. Raises psycopg's errors, such as those of the queries."""
    found, told = ViewComparisons(), list[str]()
    connection.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
    connection.execute("SET statement_timeout = 0")
    connection.execute("SET client_min_messages = notice")
    rows = connection.execute(_VIEWS).fetchall()
    names = [f"{quoted_name(schema)}.{quoted_name(name)}" for schema, name in rows]
    with _rolled_back(connection):
        connection.execute("SET LOCAL view_reads = stored")
        exact = [name for name in names if _is_exact(connection, name)]
        connection.execute("SET LOCAL view_reads = auto")
        found.behind = [name for name in names if name not in exact]
        for name in exact:
            told.clear()
            connection.execute(f"REFRESH MATERIALIZED VIEW {name}".encode())
            counts = [int(match[1]) for match in map(_COUNT.search, told) if match]
            assert len(counts) == 1, f"REFRESH says how many rows differ: {told}"
            found.differing[name] = counts[0]
    return found


@contextmanager
def _rolled_back(connection: "Connection[Any]") -> Generator[None]:
    connection.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute("ROLLBACK")


def _is_exact(connection: "Connection[Any]", name: str) -> bool:
    """Whether stored rows answer at the transaction's timestamp."""
    from psycopg.errors import ObjectNotInPrerequisiteState

    connection.execute("SAVEPOINT one")
    try:
        connection.execute(f"SELECT 1 FROM {name} LIMIT 1".encode())
    except ObjectNotInPrerequisiteState:
        connection.execute("ROLLBACK TO one")
        return False
    return True
