"""FOREIGN KEY of CREATE and ALTER TABLE: bind, validate, and drop with the key that they need.

INVARIANTS
  F1  a foreign key refers to all columns of a key of the other table. Values of both
      types must compare as they are stored; either type may be wider.
  F2  adding a foreign key changes the other table's version, too. Statements that were bound
      without the foreign key then fail to commit.
"""

from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sql.binder.ddl.deferral import Deferrability
from sql.binder.expressions.calls import operator
from sql.binder.resolve.catalog_lookup import (
    check_database,
    look_up_table,
    refuse_system_change,
    undefined_relation,
)
from sql.binder.resolve.relations import table_scan
from sql.binder.state import Binding
from sql.catalog.catalog import Catalog, ForeignKey, Table
from sql.catalog.constraint_names import ConstraintsBeside, constraint_names, make_object_name
from sql.catalog.foreign_keys import is_reference_to_key, referencing_keys
from sql.catalog.temporary import is_temporary_schema
from sql.errors import SqlError, duplicate_constraint, not_supported
from sql.parser.syntax import Node, offset_to_position, string_values
from sql.plan.conditions import conjunction
from sql.plan.nodes import (
    BoolOp,
    ColumnRef,
    Const,
    Expr,
    Filter,
    IsTest,
    Join,
    JoinKind,
    Limit,
    Logical,
    Plan,
    Project,
    Scan,
    Test,
)
from sql.plan.pruning import prune_columns
from sql.statements.ddl import Redefinition, Validation
from sql.types.sql_type import BOOL, INT8, SqlType, format_type

_ACTIONS: Final = {
    "a": "no action",
    "r": "restrict",
    "c": "cascade",
    "n": "set null",
    "d": "set default",
}
_INTEGERS: Final = frozenset({"int2", "int4", "int8"})
_TEXTS: Final = frozenset({"text", "varchar"})


@dataclass(frozen=True, slots=True)
class ForeignKeyNode:
    """A foreign key in the statement; `column`: the column whose definition contains it."""

    node: Node
    column: str | None = None
    when: Deferrability | None = None
    """The deferral clauses that follow it in a column definition."""


def bind_foreign_keys(
    binding: Binding, table: Table, nodes: Sequence[ForeignKeyNode]
) -> tuple[tuple[ForeignKey, ...], tuple[Table, ...]]:
    """Additional foreign keys of a table that is otherwise complete, and the tables they refer
    to.
    """
    made: list[ForeignKey] = []
    parents: dict[int, Table] = {}
    taken = {*constraint_names(table)}
    beside = ConstraintsBeside(binding.context.catalog, table)
    for foreign in nodes:
        parent = _parent(binding, table, foreign.node)
        key = _foreign_key(table, parent, foreign, taken, beside)
        taken.add(key.name)
        made.append(key)
        if parent.oid != table.oid:
            parents[parent.oid] = parent
    return tuple(made), tuple(parents.values())


def _parent(binding: Binding, table: Table, node: Node) -> Table:
    relation = node.pktable
    check_database(binding, relation, placed=False)
    name, schema = relation.relname, relation.schemaname
    itself = schema in (None, table.schema) and name == table.name
    found = table if itself else look_up_table(binding, name, schema=schema)
    if found is None:
        raise undefined_relation(binding, relation)
    if not itself:
        refuse_system_change(found)
    if found.query is not None:
        raise SqlError("42809", f'referenced relation "{name}" is not a table')
    if found.feed is not None:
        raise not_supported(f'a foreign key to table "{name}", which a source feeds,')
    if is_temporary_schema(found.schema) != is_temporary_schema(table.schema):
        which = "temporary" if is_temporary_schema(table.schema) else "permanent"
        message = f"constraints on {which} tables may reference only {which} tables"
        raise SqlError("42P16", message)
    if found.on_commit != table.on_commit:
        # PostgreSQL finds out when it commits.
        message = "unsupported ON COMMIT and foreign key combination"
        detail = (
            f'Table "{table.name}" references "{found.name}", '
            "but they do not have the same ON COMMIT setting."
        )
        raise SqlError("0A000", message, detail=detail)
    if found.timeline != table.timeline:
        raise not_supported("a foreign key between timelines", offset_to_position(node.location))
    return found


def _foreign_key(
    table: Table,
    parent: Table,
    foreign: ForeignKeyNode,
    taken: Collection[str],
    beside: Container[str],
) -> ForeignKey:
    node = foreign.node
    place = offset_to_position(node.location)
    for used, what in (
        (node.fk_matchtype == "f" and node.deferrable, "MATCH FULL of a deferrable foreign key"),
        (node.fk_with_period, "PERIOD"),
        (node.is_enforced is False, "NOT ENFORCED"),
    ):
        if used:
            raise not_supported(what, place)
    if node.fk_matchtype == "p":
        raise SqlError("0A000", "MATCH PARTIAL not yet implemented", place)
    names = [foreign.column] if foreign.column is not None else string_values(node.fk_attrs)
    columns = _ordinals(table, names)
    references = _references(parent, node)
    _check_actions(table, columns, node)
    if len(columns) != len(references):
        message = "number of referencing and referenced columns for foreign key disagree"
        raise SqlError("42830", message)
    name = node.conname or _made_name(table.name, "_".join(names), (taken, beside))
    if node.conname in taken:
        raise duplicate_constraint(name, table.name)
    numbers = tuple(parent.number_of(at_) for at_ in references)
    check_foreign_key_types(table, parent, name, columns, numbers)
    when = foreign.when or Deferrability(bool(node.deferrable), bool(node.initdeferred))
    return ForeignKey(
        name,
        columns,
        parent.oid,
        numbers,
        _ACTIONS[node.fk_del_action],
        _ACTIONS[node.fk_upd_action],
        when.deferrable,
        when.deferred,
        node.fk_matchtype == "f",
        _set_columns(table, columns, node),
    )


def _check_actions(table: Table, columns: Sequence[int], node: Node) -> None:
    """42601 for an action that would give a value to a column which has one of its own."""
    if all(table.columns[ordinal].generated is None for ordinal in columns):
        return
    for action, refused, event in (
        (node.fk_upd_action, "cnd", "UPDATE"),
        (node.fk_del_action, "nd", "DELETE"),
    ):
        if action in refused:
            message = (
                f"invalid ON {event} action for foreign key constraint containing generated column"
            )
            raise SqlError("42601", message)


def _set_columns(table: Table, columns: Sequence[int], node: Node) -> tuple[int, ...]:
    """The places of the columns that ON DELETE SET .. names."""
    names = string_values(node.fk_del_set_cols)
    places: list[int] = []
    for name, ordinal in zip(names, _ordinals(table, names), strict=True):
        if ordinal not in columns:
            message = (
                f'column "{name}" referenced in ON DELETE SET action must be part of foreign key'
            )
            raise SqlError("42P10", message)
        places.append(columns.index(ordinal))
    return tuple(dict.fromkeys(places))


def _made_name(table: str, columns: str, taken: Sequence[Container[str]]) -> str:
    number = 0
    while True:
        name = make_object_name(table, columns, f"fkey{number or ''}")
        if all(name not in names for names in taken):
            return name
        number += 1


def _ordinals(table: Table, names: Sequence[str]) -> tuple[int, ...]:
    by_name = {column.name: ordinal for ordinal, column in enumerate(table.columns)}
    for name in names:
        if name not in by_name:
            message = f'column "{name}" referenced in foreign key constraint does not exist'
            raise SqlError("42703", message)
    return tuple(by_name[name] for name in names)


def _references(parent: Table, node: Node) -> tuple[int, ...]:
    """The columns referred to (F1)."""
    names = string_values(node.pk_attrs)
    if not names:
        primary = [key for key in parent.keys if key.primary]
        if not primary:
            message = f'there is no primary key for referenced table "{parent.name}"'
            raise SqlError("42704", message)
        if primary[0].deferrable:
            raise _deferrable("primary key", parent)
        return primary[0].columns
    columns = _ordinals(parent, names)
    found = [key for key in parent.keys if sorted(key.columns) == sorted(columns)]
    if found and all(key.deferrable for key in found):
        raise _deferrable("unique constraint", parent)
    if not found:
        message = (
            "there is no unique constraint matching given keys for referenced table "
            f'"{parent.name}"'
        )
        raise SqlError("42830", message)
    return columns


def _deferrable(what: str, parent: Table) -> SqlError:
    message = f'cannot use a deferrable {what} for referenced table "{parent.name}"'
    return SqlError("55000", message)


def check_foreign_key_types(
    table: Table, parent: Table, name: str, columns: Sequence[int], references: Sequence[int]
) -> None:
    """42804 if the types of these columns do not compare with the referenced ones (F1)."""
    for own, number in zip(columns, references, strict=True):
        one, two = table.columns[own], parent.columns[parent.ordinal_of(number)]
        if one.type.has_blanks or two.type.has_blanks:
            raise not_supported("a foreign key of type bpchar")  # Rows are found by equal values.
        if _same_family(one.type, two.type):
            continue
        message = f'foreign key constraint "{name}" cannot be implemented'
        ours, theirs = (format_type(SqlType(column.type.name)) for column in (one, two))
        detail = (
            f'Key columns "{one.name}" of the referencing table and "{two.name}" of the '
            f"referenced table are of incompatible types: {ours} and {theirs}."
        )
        raise SqlError("42804", message, detail=detail)


def _same_family(one: SqlType, two: SqlType) -> bool:
    if one.name == two.name:
        return one.name != "numeric" or one.scale == two.scale
    return {one.name, two.name} <= _INTEGERS or {one.name, two.name} <= _TEXTS


# --- what depends on it ------------------------------------------------------------------------


def without_foreign_keys(
    found: Sequence[tuple[Table, ForeignKey, Table]],
) -> tuple[Redefinition, ...]:
    """The referencing tables without these foreign keys."""
    gone: dict[int, tuple[Table, set[str]]] = {}
    for child, key, _ in found:
        gone.setdefault(child.oid, (child, set()))[1].add(key.name)
    return tuple(
        Redefinition(
            child,
            replace(
                child,
                foreign_keys=tuple(k for k in child.foreign_keys if k.name not in names),
                version=child.version + 1,
            ),
        )
        for child, names in gone.values()
    )


def dangling_foreign_keys(
    catalog: Catalog, parent: Table, now: Mapping[int, Table]
) -> list[tuple[Table, ForeignKey]]:
    """The foreign keys to `parent` that no key of it supports any more.

    `now`: tables as the statement has changed them so far, by oid.
    """
    found: list[tuple[Table, ForeignKey]] = []
    for oid in dict.fromkeys(child.oid for child, _ in referencing_keys(catalog, parent.oid)):
        child = now[oid] if oid in now else catalog.by_oid(oid)
        assert child is not None, "it was found in the catalog"
        for key in child.foreign_keys:
            rests = any(is_reference_to_key(parent, key, other) for other in parent.keys)
            if key.table == parent.oid and not rests:
                found.append((child, key))
    return found


def without_foreign_key(table: Table, foreign: ForeignKey) -> Table:
    """The table without this foreign key."""
    left = tuple(key for key in table.foreign_keys if key != foreign)
    return replace(table, foreign_keys=left)


def foreign_key_dependency_details(
    rest: str, lost: Sequence[tuple[Table, ForeignKey]]
) -> list[str]:
    """Lines of the detail of 2BP01, for foreign keys that depend on an object."""
    return [
        f"constraint {key.name} on table {child.shown} depends on {rest}" for child, key in lost
    ]


def dropped_foreign_key_notices(lost: Sequence[tuple[Table, ForeignKey]]) -> list[str]:
    """The notices of CASCADE for these foreign keys."""
    return [f"drop cascades to constraint {key.name} on table {child.shown}" for child, key in lost]


# --- validation --------------------------------------------------------------------------------


def foreign_key_validation(
    binding: Binding, table: Table, parent: Table, key: ForeignKey
) -> Validation:
    """Find rows whose key is missing in the other table."""
    child, other = table_scan(binding, table), table_scan(binding, parent)
    own = _refs(child, key.columns)
    theirs = _refs(other, [parent.ordinal_of(number) for number in key.references])
    pairs = zip(own, theirs, strict=True)
    equal = [operator(binding, "=", pair, [None, None], None) for pair in pairs]
    join = Join(JoinKind.LEFT, child, other, conjunction(equal))
    absent = [IsTest(Test.IS_NULL, theirs[0], BOOL)]
    present = [IsTest(Test.IS_NOT_NULL, ref, BOOL) for ref in own]
    plan: Plan = Filter(join, conjunction([*absent, *present]))
    shown = tuple(
        [
            binding.new_column(table.columns[at_].name, table.columns[at_].type)
            for at_ in key.columns
        ]
    )
    plan = Limit(Project(plan, shown, tuple(own)), Const(1, INT8), None)
    message = (
        f'insert or update on table "{table.name}" violates foreign key constraint "{key.name}"'
    )
    return Validation(
        prune_columns(plan),
        "23503",
        message,
        constraint=key.name,
        foreign=(key.columns, parent),
        of=table,
    )


def match_full_validations(binding: Binding, table: Table, key: ForeignKey) -> list[Validation]:
    """Find rows whose key is partly NULL, for MATCH FULL."""
    if not key.match_full or len(key.columns) == 1:
        return []
    child = table_scan(binding, table)
    own = _refs(child, key.columns)
    some = Logical(BoolOp.OR, tuple([IsTest(Test.IS_NULL, ref, BOOL) for ref in own]), BOOL)
    other = Logical(BoolOp.OR, tuple([IsTest(Test.IS_NOT_NULL, ref, BOOL) for ref in own]), BOOL)
    shown = tuple(
        [
            binding.new_column(child.columns[at_].name, own[n].type)
            for n, at_ in enumerate(key.columns)
        ]
    )
    plan = Limit(
        Project(Filter(child, conjunction([some, other])), shown, tuple(own)), Const(1, INT8), None
    )
    message = (
        f'insert or update on table "{table.name}" violates foreign key constraint "{key.name}"'
    )
    detail = "MATCH FULL does not allow mixing of null and nonnull key values."
    error = SqlError(
        "23503", message, detail=detail, schema=table.schema, table=table.name, constraint=key.name
    )
    return [Validation(prune_columns(plan), "23503", message, error=error, of=table)]


def _refs(scanned: Scan, ordinals: Sequence[int]) -> list[Expr]:
    columns = [scanned.columns[ordinal] for ordinal in ordinals]
    return [ColumnRef(column.id, column.type) for column in columns]
