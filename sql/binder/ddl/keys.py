"""PRIMARY KEY and UNIQUE of CREATE and ALTER TABLE: their columns and PostgreSQL's names.

INVARIANTS
  E1  a table has at most one primary key, and it comes first; its columns are NOT NULL.
  E2  the name of a key is unique among the relations and keys of its schema.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pglast.enums import ConstrType

from sql.binder.ddl.deferral import Deferrability
from sql.binder.ddl.storage_parameters import index_parameters, refuse_other_tablespace
from sql.binder.resolve.operator_classes import check_key_type
from sql.catalog.catalog import Catalog, Column, Key, Table
from sql.catalog.constraint_names import (
    IDENTIFIER_BYTES_MAX,
    ConstraintsBeside,
    constraint_names,
    index_column_names,
    make_object_name,
    not_null_columns,
    truncate_identifier,
    with_free_not_null_names,
)
from sql.catalog.objects import NAME_SPACES
from sql.errors import SqlError, duplicate_constraint, not_supported
from sql.parser.syntax import Node, offset_to_position, string_values
from sql.types.limits import check_key_column_count

KEY_KINDS: Final = frozenset({ConstrType.CONSTR_PRIMARY, ConstrType.CONSTR_UNIQUE})
"""The kinds of constraints that this module binds."""


@dataclass(frozen=True, slots=True)
class KeyNode:
    """A key in the statement; `column`: the column whose definition contains it."""

    node: Node
    column: str | None = None
    when: Deferrability | None = None
    """The deferral clauses that follow it in a column definition."""

    @property
    def primary(self) -> bool:
        """Whether it is PRIMARY KEY."""
        return bool(self.node.contype == ConstrType.CONSTR_PRIMARY)


class TakenNames:
    """The names in a schema that no new relation may have: without those that a statement has set
    free, with those that it takes. It looks for one name at a time: there may be many.
    """

    def __init__(
        self, catalog: Catalog, schema: str, taken: Iterable[str] = (), freed: Iterable[str] = ()
    ) -> None:
        self._catalog, self._schema = catalog, schema
        self._keys = catalog.named_tables.keys_named
        self._taken, self._freed = {*taken}, {*freed}

    def __contains__(self, name: str) -> bool:
        return name in self._taken or (name not in self._freed and self._is_there(name))

    def _is_there(self, name: str) -> bool:
        named = self._schema, name
        return (
            named in self._catalog.tables
            or named in self._keys
            or any((space, *named) in self._catalog.objects for space in NAME_SPACES)
        )

    def constraints_beside(self, table: Table) -> ConstraintsBeside:
        """The names of constraints of other tables in the table's schema."""
        return ConstraintsBeside(self._catalog, table)

    def add(self, *names: str) -> None:
        """The statement takes these."""
        self._taken.update(names)


def bind_keys(
    taken: TakenNames, table: Table, nodes: Sequence[KeyNode], *, is_index: bool = False
) -> tuple[tuple[Column, ...], tuple[Key, ...]]:
    """The columns, NOT NULL in a primary key, and new keys of a table that has its checks (E1).

    `taken`: in the table's schema; those of the keys are added. `is_index`: CREATE INDEX, whose
    name may be that of a constraint.
    """
    columns = table.columns
    ordered = sorted(nodes, key=lambda node: not node.primary)
    if sum(node.primary for node in nodes) > 1:
        place = offset_to_position([node for node in nodes if node.primary][1].node.location)
        message = f'multiple primary keys for table "{table.name}" are not allowed'
        raise SqlError("42P16", message, place)
    taken.add(table.name)
    keys: list[Key] = []
    for node in ordered:
        key = _key(columns, node)
        # One that says what another one says is that one; it may give it its name.
        same = [at_ for at_, known in enumerate(keys) if _says_the_same(known, key)]
        if not same:
            keys.append(key)
        elif not keys[same[0]].name:
            keys[same[0]] = replace(keys[same[0]], name=key.name)
    required = {ordinal for key in keys if key.primary for ordinal in key.columns}
    bound = [
        replace(column, not_null=True) if ordinal in required else column
        for ordinal, column in enumerate(columns)
    ]
    beside = taken.constraints_beside(table)
    whole = replace(table, columns=tuple(bound))
    whole = with_free_not_null_names(whole, not_null_columns(table), beside)
    own = set[str]() if is_index else {*constraint_names(whole)}
    # One after the other, as PostgreSQL makes the indexes: a made-up name is none given before.
    for place, key in enumerate(keys):
        if key.name in taken:
            raise SqlError("42P07", f'relation "{key.name}" already exists')
        if key.name in own:
            raise duplicate_constraint(key.name, table.name)
        if not key.name:
            made = made_key_name(table.name, columns, key, taken, (own, beside))
            keys[place] = replace(key, name=made)
        taken.add(keys[place].name)
    return whole.columns, tuple(keys)


def _key(columns: Sequence[Column], key: KeyNode) -> Key:
    node, place = key.node, offset_to_position(key.node.location)
    for used, what in (
        (node.indexname, "USING INDEX"),
        (node.without_overlaps, "WITHOUT OVERLAPS"),
    ):
        if used:
            raise not_supported(what, place)
    refuse_other_tablespace(node.indexspace)
    names = [key.column] if key.column is not None else string_values(node.keys)
    ordinals: list[int] = []
    for name, ordinal in zip(names, _ordinals(columns, names, place), strict=True):
        if ordinal in ordinals:
            kind = "primary key" if key.primary else "unique"
            message = f'column "{name}" appears twice in {kind} constraint'
            raise SqlError("42701", message, place)
        check_key_type(columns[ordinal].type, place)
        ordinals.append(ordinal)
    include = _ordinals(columns, string_values(node.including), place)
    check_key_column_count(len((*ordinals, *include)))
    when = key.when or Deferrability(bool(node.deferrable), bool(node.initdeferred))
    return Key(
        node.conname or "",
        tuple(ordinals),
        key.primary,
        not node.nulls_not_distinct,
        deferrable=when.deferrable,
        deferred=when.deferred,
        parameters=index_parameters(node.options or (), "btree"),
        include=include,
    )


def _ordinals(
    columns: Sequence[Column], names: Sequence[str], place: int | None
) -> tuple[int, ...]:
    by_name = {column.name: ordinal for ordinal, column in enumerate(columns)}
    for name in names:
        if name not in by_name:
            raise SqlError("42703", f'column "{name}" named in key does not exist', place)
    return tuple(by_name[name] for name in names)


def _says_the_same(first: Key, second: Key) -> bool:
    return replace(first, name="", primary=False) == replace(second, name="", primary=False)


def made_key_name(
    table: str,
    columns: Sequence[Column],
    key: Key,
    taken: TakenNames,
    constraints: Sequence[Container[str]] = (),
) -> str:
    """How a key without a name is called: as PostgreSQL's ChooseIndexName (E2).

    `constraints`: of the schema's tables.
    """
    if key.primary:
        middle, label = "", "pkey"
    else:
        names = [columns[ordinal].name for ordinal in (*key.columns, *key.include)]
        middle, label = "_".join(index_column_names(names)), "key"
        middle = truncate_identifier(middle, IDENTIFIER_BYTES_MAX)
    number = 0
    while True:
        name = make_object_name(table, middle, f"{label}{number or ''}")
        if name not in taken and all(name not in names for names in constraints):
            return name
        number += 1
