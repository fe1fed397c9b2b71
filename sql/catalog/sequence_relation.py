"""A sequence as a relation: one row with its current state, whatever a transaction sees."""

from sql.catalog.catalog import Column, Table
from sql.catalog.objects import SequenceDefinition
from sql.types.sql_type import BOOL, INT8

_COLUMNS = (
    Column("last_value", INT8, not_null=True),
    Column("log_cnt", INT8, not_null=True),
    Column("is_called", BOOL, not_null=True),
)


def sequence_relation(sequence: SequenceDefinition) -> Table:
    """The relation that a query on a sequence reads."""
    # The dot says that no shard is called so (`catalog/meridian_schema.py`).
    shard = f"sequence.{sequence.oid}"
    return Table(sequence.oid, sequence.schema, sequence.name, shard, _COLUMNS, timeline="")


def is_sequence(table: Table) -> bool:
    """Whether a table is a sequence as a relation."""
    return table.columns is _COLUMNS
