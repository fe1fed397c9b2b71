"""Rows about the state of sequences: a sequence itself, pg_sequences, a helper relation.

They show the present moment, whatever snapshot a transaction reads: sequences are outside of
transactions.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from coordinator.driver.coordination import Coordination
from coordinator.driver.sequences import SequenceState
from coordinator.pgcatalog.meridian_schema import rows_as_view
from coordinator.pgcatalog.named_row import NamedRow
from coordinator.pgcatalog.privileges import PrivilegeColumns
from sql.binder.state import BindContext
from sql.catalog.catalog import Table
from sql.catalog.sequence_relation import is_sequence
from sql.catalog.system_catalogs import PG_CATALOG
from sql.types.sql_type import TYPE_OIDS
from storage.batch import ShardView

SequenceStates: TypeAlias = Mapping[int, SequenceState]
"""By oid of the sequence."""


async def sequence_states(
    tables: Sequence[Table], context: BindContext, coordination: Coordination
) -> SequenceStates:
    """The states of the sequences that these relations show."""
    shown = {table.oid for table in tables if is_sequence(table)}
    everything = any(_shows_all(table) for table in tables)
    wanted = [s for s in context.catalog.sequences() if everything or s.oid in shown]
    return {sequence.oid: await coordination.sequence_state(sequence) for sequence in wanted}


def _shows_all(table: Table) -> bool:
    return table.schema == PG_CATALOG and table.name in _ROWS


def has_sequence_rows(table: Table) -> bool:
    """Whether this module computes the rows of a relation."""
    return is_sequence(table) or _shows_all(table)


def sequence_view(table: Table, context: BindContext, states: SequenceStates) -> ShardView:
    """The relation as a view with rows in memory."""
    if is_sequence(table):
        state = states[table.oid]
        return rows_as_view(table, [(state.last, state.left, state.called)])
    named = _ROWS[table.name](context, states)
    rows = [tuple(row.get(column.name) for column in table.columns) for row in named]
    return rows_as_view(table, rows)


def _pg_sequences(context: BindContext, states: SequenceStates) -> Iterator[NamedRow]:
    shown = PrivilegeColumns(context)
    for sequence in context.catalog.sequences():
        state = states[sequence.oid]
        yield {
            "schemaname": sequence.schema,
            "sequencename": sequence.name,
            "sequenceowner": shown.owner(sequence),
            "data_type": TYPE_OIDS[sequence.type],
            "start_value": sequence.start,
            "min_value": sequence.least,
            "max_value": sequence.greatest,
            "increment_by": sequence.increment,
            "cycle": sequence.cycle,
            "cache_size": sequence.cache,
            "last_value": state.last if state.called else None,
        }


def _last_values(context: BindContext, states: SequenceStates) -> Iterator[NamedRow]:
    for sequence in context.catalog.sequences():
        state = states[sequence.oid]
        yield {
            "oid": sequence.oid,
            "last_value": state.last if state.called else None,
            "last": state.last,
            "called": state.called,
        }


_ROWS: Final = {"pg_sequences": _pg_sequences, "meridian_sequences": _last_values}
