"""OPTIMIZE, VACUUM and ANALYZE as bound statements."""

from dataclasses import dataclass
from enum import StrEnum

from sql.catalog.catalog import Table
from sql.errors import SqlError


class MaintenanceKind(StrEnum):
    """What maintenance does; the values are command tags."""

    OPTIMIZE = "OPTIMIZE"
    VACUUM = "VACUUM"
    ANALYZE = "ANALYZE"
    REINDEX = "REINDEX"
    CLUSTER = "CLUSTER"


@dataclass(frozen=True, slots=True)
class MaintenanceStatement:
    """OPTIMIZE, VACUUM, ANALYZE; REINDEX and CLUSTER of more than one relation, or without locks.
    `tables` None: all. They run outside of transactions, which `command` says to who runs them in
    one (empty: the tag). `problem`: an error about a table, raised at execution.
    """

    kind: MaintenanceKind
    tables: tuple[Table, ...] | None
    problem: SqlError | None = None
    notice: SqlError | None = None
    """That it changes nothing."""
    command: str = ""
