"""The part of a transaction in a timeline other than `system`, and how it begins there.

Part of `timelines.py`, whose invariants these serve (L1).
"""

from dataclasses import field

from coordinator.core.messages.catalog_changes import CatalogChange, PutTable
from coordinator.core.messages.identities import ConnectionId, Isolation, TransactionId
from coordinator.driver.coordination import RequestRefused
from coordinator.driver.driver import Driver
from sql.catalog.catalog import Catalog, NameDependency
from storage.fast_dataclass import fast_dataclass


@fast_dataclass(frozen=True, slots=True)
class TransactionOrigin:
    """The arguments with which a transaction was begun, its open savepoints and its name look-ups:
    for a part that begins later.
    """

    owner: ConnectionId
    isolation: Isolation
    read_only: bool
    staleness_us: int | None
    savepoints: list[int] = field(default_factory=list[int])
    names: set[NameDependency] = field(default_factory=set[NameDependency])
    """Name look-ups that its statements depend on."""


@fast_dataclass(frozen=True, slots=True)
class TimelinePart:
    """A transaction's part in another timeline than `system`."""

    timeline: str
    driver: Driver
    txn: TransactionId


def begin_part(driver: Driver, begun: TransactionOrigin) -> TransactionId:
    """Begin the transaction in that driver's timeline, with its savepoints."""
    txn = driver.begin(
        begun.owner,
        isolation=begun.isolation,
        read_only=begun.read_only,
        staleness_us=begun.staleness_us,
    )
    for number in begun.savepoints:
        driver.savepoint(txn, number)
    return txn


def tables_as_changes(catalog: Catalog, timeline: str) -> tuple[CatalogChange, ...]:
    """The tables of a timeline, as catalog changes that create them."""
    return tuple(PutTable(table) for table in catalog.tables.values() if table.timeline == timeline)


def mixed_timelines(first: str, second: str) -> RequestRefused:
    """25000 for a transaction that would use two timelines (L1)."""
    return RequestRefused(
        "25000",
        "a transaction cannot use two timelines",
        None,
        f'It has used timeline "{first}", and now it would use timeline "{second}".',
        "Use tables of one timeline in a transaction; DDL belongs to the timeline system.",
    )
