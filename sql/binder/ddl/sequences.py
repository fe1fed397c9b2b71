"""CREATE SEQUENCE and ALTER SEQUENCE; DROP SEQUENCE is in `drop_sequences.py`."""

from collections.abc import Sequence
from dataclasses import replace

from sql.binder.ddl.schemas import creation_schema
from sql.binder.ddl.sequence_options import restart_value, sequence_with_options
from sql.binder.resolve.catalog_lookup import (
    find_relation_named,
    look_up_sequence,
    relation_exists,
    relation_kind,
    undefined_relation,
)
from sql.binder.state import Binding
from sql.binder.stored.sequence_values import cannot_open_relation
from sql.catalog.objects import SequenceDefinition
from sql.errors import duplicate_table, not_supported
from sql.parser.syntax import Node, offset_to_position
from sql.statements.bound import AlterTable
from sql.statements.ddl import ChangeObjects, CreateSequence


def create_sequence(binding: Binding, node: Node) -> CreateSequence:
    """CREATE SEQUENCE [IF NOT EXISTS]."""
    relation = node.sequence
    if relation.relpersistence == "u":
        raise not_supported("UNLOGGED", offset_to_position(relation.location))
    schema = creation_schema(binding, relation)
    exists = relation_exists(binding, schema, relation.relname)
    if exists and not node.if_not_exists:
        raise duplicate_table(relation.relname)
    bare = SequenceDefinition(0, schema, relation.relname, "")
    made = sequence_with_options(binding, bare, node.options or (), created=True)
    return CreateSequence(made, exists)


def alter_sequence(binding: Binding, node: Node) -> ChangeObjects | AlterTable:
    """ALTER SEQUENCE [IF EXISTS] with options."""
    relation = node.sequence
    other = find_relation_named(binding, relation)
    if other is not None and not isinstance(other, SequenceDefinition):
        raise cannot_open_relation(relation.relname, relation_kind(other))
    found = look_up_sequence(binding, relation.relname, schema=relation.schemaname)
    if found is None:
        if node.missing_ok:
            return AlterTable(missing=relation.relname, tag="ALTER SEQUENCE")
        raise undefined_relation(binding, relation)
    made, fresh = altered_sequence(binding, found, node.options or ())
    return ChangeObjects("ALTER SEQUENCE", objects=(made,), fresh=fresh)


def altered_sequence(
    binding: Binding, found: SequenceDefinition, options: Sequence[Node]
) -> tuple[SequenceDefinition, frozenset[int]]:
    """A sequence with other options, and its oid if it restarts."""
    made = sequence_with_options(binding, found, options, created=False)
    fresh: frozenset[int] = frozenset()
    if made.start != found.start and found.first is None:
        made = replace(made, first=found.start)
    value = restart_value(made, options)
    if value is not None:
        # Where it stands is named anew: its first value is the one given, START stays.
        made = replace(made, state=f"@{value}")
        fresh = frozenset({made.oid})
    return replace(made, version=found.version + 1), fresh
