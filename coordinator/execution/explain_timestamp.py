"""EXPLAIN TIMESTAMP FOR: show how a query's timestamp would be chosen, without choosing one."""

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, assert_never

from coordinator.core.observation import TimestampExplained
from coordinator.core.sources.observed import ObservedSource, shown_position
from coordinator.core.timestamps import (
    Close,
    Ready,
    TimestampChoice,
    TooFar,
    TooOld,
    TooStale,
    WaitForClock,
)
from coordinator.execution.context import Execution, Rows, stream_table
from coordinator.execution.explain_columns import EXPLAIN_COLUMNS
from coordinator.execution.settings import text_table
from sql.catalog.catalog import Table
from sql.catalog.meridian_schema import is_server_state
from sql.catalog.sources import sources_of_tables
from sql.statements.bound import ExplainTimestamp
from storage.types import Timestamp

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_YEARS_US: Final = 253_402_300_800_000_000


def execute_explain_timestamp(
    execution: Execution,
    statement: ExplainTimestamp,
    *,
    as_of: Timestamp | None,
) -> Rows:
    """The lines, or one JSON document."""
    query = statement.query
    tables = [table for table in query.tables if not is_server_state(table)]
    explained = execution.services.coordination.explain_timestamp(
        execution.transaction.id,
        tables,
        as_of=execution.transaction.pinned(tables) if as_of is None else as_of,
        at_least=query.as_of_at_least,
    )
    sources = _sources_of(execution, tables)
    if statement.json:
        lines = [json.dumps(_document(explained, sources), indent=2)]
    else:
        lines = [*_lines(explained), *_source_lines(sources)]
    table = text_table(EXPLAIN_COLUMNS, [(line,) for line in lines])
    return Rows(EXPLAIN_COLUMNS, stream_table(table), lambda _count: "EXPLAIN")


def _sources_of(execution: Execution, tables: Sequence[Table]) -> list[ObservedSource]:
    """The sources that feed these tables, by name."""
    wanted = sources_of_tables(tables, execution.services.coordination.newest_catalog)
    if not wanted:
        return []
    lines = execution.services.coordination.observe()
    found = [source for line in lines for source in line.sources]
    found = [source for source in found if source.definition.oid in wanted]
    return sorted(found, key=lambda source: source.definition.name)


def _source_lines(sources: Sequence[ObservedSource]) -> Iterator[str]:
    if sources:
        yield "Sources:"
    for source in sources:
        place = "nowhere" if not source.position else f"at {shown_position(source.position)}"
        waits = f", waiting for {source.waiting}" if source.waiting else ""
        yield f"  {source.definition.qualified}: {source.state}{waits}, {place}"
        if source.acknowledged:
            yield f"    acknowledged: {shown_position(source.acknowledged)}"


def _lines(explained: TimestampExplained) -> Iterator[str]:
    found = explained.determination
    chosen, answer = _told(found.choice)
    manual = explained.timeline.manual
    yield f"Timestamp: {'none' if chosen is None else _shown(chosen, manual=manual)}"
    yield f"Answers: {answer}"
    yield f"Timeline: {explained.timeline.name}"
    yield f"Isolation: {explained.isolation}"
    yield f"Oracle read timestamp: {_shown(explained.read_ts, manual=manual)}"
    upper = "∞" if found.upper is None else str(found.upper)
    empty = "  (empty)" if found.upper is not None and found.lower > found.upper else ""
    yield f"Interval: [{found.lower}, {upper}]{empty}"
    if chosen is not None:
        yield f"Preference: {found.preference.value}"
    yield "Constraints:"
    for item in found.constraints:
        yield f"  {item.side.value} {_shown(item.ts, manual=manual)}: {item.reason}"
    if explained.inputs:
        yield "Inputs:"
    for read in explained.inputs:
        yield f"  {read.table.qualified}: since {read.since}, upper {explained.read_ts + 1}"


def _document(
    explained: TimestampExplained, sources: Sequence[ObservedSource]
) -> dict[str, object]:
    found = explained.determination
    chosen, answer = _told(found.choice)
    return {
        "timestamp": chosen,
        "answers": answer,
        "timeline": explained.timeline.name,
        "isolation": explained.isolation,
        "oracle_read_ts": explained.read_ts,
        "interval": [found.lower, found.upper],
        "preference": found.preference.value,
        "constraints": [
            {"side": item.side.value, "ts": item.ts, "reason": item.reason}
            for item in found.constraints
        ],
        "inputs": [
            {
                "schema": item.table.schema,
                "table": item.table.name,
                "since": item.since,
                "upper": explained.read_ts + 1,
            }
            for item in explained.inputs
        ],
        "sources": [
            {
                "schema": source.definition.schema,
                "source": source.definition.name,
                "state": source.state,
                "position": dict(source.position or {}),
                "acknowledged": dict(source.acknowledged),
            }
            for source in sources
        ],
    }


def _told(choice: TimestampChoice) -> tuple[Timestamp | None, str]:
    """The timestamp, and when the query would be answered."""
    match choice:
        case Ready(ts=ts, reason=reason):
            return ts, f"at once ({reason})"
        case Close(ts=ts, reason=reason):
            return ts, f"as soon as no write on its way is at or below it ({reason})"
        case WaitForClock(ts=ts):
            return ts, "when the clock has come there"
        case TooOld(since=since):
            return None, f"never: 72000, the oldest readable timestamp is {since}"
        case TooFar():
            return None, "never: 22023, too far in the future"
        case TooStale():
            return None, "not now: 40001, the staleness bound cannot be met without waiting"
        case _:
            assert_never(choice)


def _shown(ts: Timestamp, *, manual: bool) -> str:
    """A timestamp, and what time of day that is."""
    if manual or not 0 <= ts < _YEARS_US:
        return str(ts)
    time = _EPOCH + timedelta(microseconds=ts)
    return f"{ts} ({time.strftime('%Y-%m-%d %H:%M:%S.%f')} UTC)"
