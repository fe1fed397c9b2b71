"""How SUBSCRIBE tells the changes of one timestamp: ENVELOPE and WITHIN TIMESTAMP ORDER BY."""

from dataclasses import dataclass

from sql.plan.nodes import PlanColumn, SortKey


@dataclass(frozen=True, slots=True)
class ChangeEnvelope:
    """ENVELOPE: one row for each key. `key`: places of the query's columns. `is_upsert`: it tells
    the row that there is now; otherwise (DEBEZIUM) the row before, too.
    """

    is_upsert: bool
    key: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ChangeOrder:
    """WITHIN TIMESTAMP ORDER BY: keys over the query's columns and `diff`."""

    diff: PlanColumn
    keys: tuple[SortKey, ...]
