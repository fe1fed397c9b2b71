"""LIKE in CREATE TABLE: copy the columns of a table or view, and the parts that INCLUDING names.

    LIKE s INCLUDING ..  ─▶ columns, where the clause stands
                         └▶ Copied: checks, keys, indexes and comments, after the table's own

A column's type and NOT NULL are always copied, other parts on request. STORAGE, COMPRESSION and
STATISTICS are accepted, but tables have none. Names of checks and NOT NULLs are copied; keys,
indexes and the sequences of identity columns get the names that CREATE TABLE would choose.

INVARIANTS
  L1  each copy is a new object. Only a default that calls nextval() shares its sequence.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pglast import ast
from pglast.enums import ConstrType, TableLikeOption

from sql.binder.ddl.checks import bind_checks
from sql.binder.ddl.columns import TableParts, sequence_name
from sql.binder.ddl.indexes import index_element_name, index_name
from sql.binder.ddl.keys import TakenNames
from sql.binder.resolve.catalog_lookup import (
    check_database,
    named_relation,
    relation_kind,
    schema_exists,
)
from sql.binder.resolve.collations import collation_to_store
from sql.binder.resolve.relations import find_table, find_view
from sql.binder.state import Binding
from sql.binder.stored.column_expressions import parse_stored_expression
from sql.binder.stored.domain_checks import with_domain_default
from sql.binder.stored.views import view_plan
from sql.catalog.catalog import CheckConstraint, Column, Key, Table, definition_of
from sql.catalog.constraint_names import not_null_name
from sql.catalog.meridian_schema import is_server_state
from sql.catalog.objects import Comment, IndexDefinition, Subject, ViewDefinition
from sql.catalog.system_catalogs import SYSTEM_SCHEMAS
from sql.errors import SqlError, not_supported, undefined_schema
from sql.parser.syntax import Node, offset_to_position

_PLURALS: Final = {"index": "indexes", "sequence": "sequences"}


@dataclass(slots=True)
class CopiedParts:
    """The parts that LIKE copies besides columns. `indexes`: each with its comment."""

    checks: list[CheckConstraint] = field(default_factory=list[CheckConstraint])
    keys: list[tuple[Key, tuple[str, ...], str | None]] = field(
        default_factory=list[tuple[Key, tuple[str, ...], str | None]]
    )
    """Each with the names of its columns, and the comment on its index."""
    indexes: list[tuple[IndexDefinition, str | None]] = field(
        default_factory=list[tuple[IndexDefinition, str | None]]
    )
    columns: dict[str, str] = field(default_factory=dict[str, str])
    """Comments of columns, by name."""
    of_constraints: dict[str, str] = field(default_factory=dict[str, str])
    """Comments of checks and NOT NULLs, by name."""

    def comments(self, table: Table, names: Sequence[str]) -> tuple[Comment, ...]:
        """The comments of a table whose oid is not known yet: 0.

        `names`: those of `keys`. The oids of indexes created with the table are -1, -2 ..
        """
        places = {column.name: place for place, column in enumerate(table.columns, 1)}
        said = [
            *((Subject("column", 0, places[name]), text) for name, text in self.columns.items()),
            *((Subject("constraint", 0, name), text) for name, text in self.of_constraints.items()),
        ]
        for name, (*_, text) in zip(names, self.keys, strict=True):
            if text is not None:
                said.append((Subject("index", 0, name), text))
        for place, (_, text) in enumerate(self.indexes, 1):
            if text is not None:
                said.append((Subject("relation", -place), text))
        return tuple(Comment(subject, text) for subject, text in said)


def like_columns(
    binding: Binding, node: Node, parts: TableParts, copied: CopiedParts
) -> list[Column]:
    """The columns of a LIKE clause; its other copies are added to `parts` and `copied`."""
    source = _source(binding, node.relation)
    if isinstance(source, ViewDefinition):
        columns = _view_columns(binding, source)
        oid = source.oid
        numbers = dict(zip([c.name for c in columns], range(1, len(columns) + 1), strict=True))
    else:
        columns = [_column(binding, source, own, node.options, parts) for own in source.columns]
        oid = source.oid
        numbers = {c.name: source.number_of(place) for place, c in enumerate(source.columns)}
        _copy_rules(binding, source, node.options, copied)
    if _has(node.options, TableLikeOption.CREATE_TABLE_LIKE_COMMENTS):
        for name, number in numbers.items():
            text = binding.context.catalog.comments.get(Subject("column", oid, number))
            if text is not None:
                copied.columns[name] = text
    return columns


def _has(options: int, option: TableLikeOption) -> bool:
    return bool(options & option)


def _source(binding: Binding, relation: Node) -> Table | ViewDefinition:
    place = offset_to_position(relation.location)
    check_database(binding, relation)
    schema: str | None = relation.schemaname
    if schema is not None and schema not in SYSTEM_SCHEMAS and not schema_exists(binding, schema):
        raise undefined_schema(schema, place)
    for candidate in binding.context.search_path if schema is None else (schema,):
        found = named_relation(binding.context.catalog, candidate, relation.relname)
        if isinstance(found, Table | ViewDefinition):
            break
        if found is not None:
            detail = f"This operation is not supported for {_PLURALS[relation_kind(found)]}."
            message = f'relation "{relation.relname}" is invalid in LIKE clause'
            raise SqlError("42809", message, place, detail=detail)
    source = find_view(binding, relation) or find_table(binding, relation)
    if isinstance(source, Table) and is_server_state(source):
        raise not_supported("LIKE of a system relation", place)
    binding.uses.add(definition_of(source))
    return source


def _view_columns(binding: Binding, view: ViewDefinition) -> list[Column]:
    _, columns = view_plan(binding, view)
    named = zip(view.columns, columns, strict=True)
    return [
        Column(
            name,
            column.type,
            domain=binding.domain(column.id),
            collation=collation_to_store(binding, column),
        )
        for name, column in named
    ]


def _column(
    binding: Binding, source: Table, column: Column, options: int, parts: TableParts
) -> Column:
    made = Column(column.name, column.type, domain=column.domain, collation=column.collation)
    if column.not_null:
        made = replace(made, not_null=True, not_null_name=not_null_name(source, column))
    if column.default_of_domain:
        return with_domain_default(binding, made)
    if column.generated is not None:
        if _has(options, TableLikeOption.CREATE_TABLE_LIKE_GENERATED):
            parts.generated[column.name] = parse_stored_expression(column.generated)
        return made
    if column.identity:
        if not _has(options, TableLikeOption.CREATE_TABLE_LIKE_IDENTITY):
            return made
        sequence = binding.context.catalog.sequence_by_oid(column.sequence)
        assert sequence is not None, "an identity column has a sequence"
        name = sequence_name(binding, parts, column.name)
        fresh = replace(sequence, oid=0, schema=parts.schema, name=name, state="", version=0)
        # PostgreSQL copies how a sequence counts, and not what: it says AS of no copy.
        fresh = replace(fresh, first=None, type="int8")
        parts.sequences[column.name] = replace(fresh, owner=0, owner_field=column.name)
        return replace(made, identity=column.identity)
    if not _has(options, TableLikeOption.CREATE_TABLE_LIKE_DEFAULTS):
        return made
    return replace(
        made,
        has_default=column.has_default,
        default=column.default,
        default_text=column.default_text,
        expression=column.expression,
        sequence=column.sequence,
    )


def _copy_rules(binding: Binding, source: Table, options: int, copied: CopiedParts) -> None:
    said = binding.context.catalog.comments
    commented = _has(options, TableLikeOption.CREATE_TABLE_LIKE_COMMENTS)

    def comment(kind: str, of: int, part: int | str = 0) -> str | None:
        return said.get(Subject(kind, of, part)) if commented else None

    names = [not_null_name(source, column) for column in source.columns if column.not_null]
    if _has(options, TableLikeOption.CREATE_TABLE_LIKE_CONSTRAINTS):
        copied.checks += source.checks
        names += [check.name for check in source.checks]
    for name in names:
        text = comment("constraint", source.oid, name)
        if text is not None:
            copied.of_constraints[name] = text
    if _has(options, TableLikeOption.CREATE_TABLE_LIKE_INDEXES):
        for key in source.keys:
            ordinals = (*key.columns, *key.include)
            of_key = tuple(source.columns[ordinal].name for ordinal in ordinals)
            copied.keys.append((key, of_key, comment("index", source.oid, key.name)))
        indexes = sorted(binding.context.catalog.indexes(source.oid), key=lambda index: index.oid)
        copied.indexes += ((index, comment("relation", index.oid)) for index in indexes)


# --- once the table has what it says itself ----------------------------------------------------


def with_copied_parts(
    binding: Binding, table: Table, copied: CopiedParts
) -> tuple[Table, tuple[IndexDefinition, ...], tuple[Comment, ...]]:
    """The table with copied checks and keys, its other indexes, and the comments on all of it."""
    checks = [*table.checks, *_checks(binding, table, copied.checks)]
    taken = TakenNames(binding.context.catalog, table.schema)
    taken.add(table.name, *(key.name for key in table.keys))
    keys = [_key(table, names, key, taken) for key, names, _ in copied.keys]
    if sum(key.primary for key in (*table.keys, *keys)) > 1:
        message = f'multiple primary keys for table "{table.name}" are not allowed'
        raise SqlError("42P16", message)
    indexes: list[IndexDefinition] = []
    for index, _ in copied.indexes:
        elements = [
            index_element_name(parse_stored_expression(text))
            for text in (*index.elements, *index.include)
        ]
        name = index_name(table.name, elements, taken)
        indexes.append(replace(index, oid=0, schema=table.schema, name=name, table=0, version=0))
    ordered = sorted([*table.keys, *keys], key=lambda key: not key.primary)
    whole = replace(table, keys=tuple(ordered), checks=tuple(checks))
    return whole, tuple(indexes), copied.comments(whole, [key.name for key in keys])


def _key(table: Table, names: Sequence[str], source: Key, taken: TakenNames) -> Key:
    places = {column.name: place for place, column in enumerate(table.columns)}
    label = "pkey" if source.primary else "idx" if source.index else "key"
    made = index_name(table.name, () if source.primary else names, taken, label)
    ordinals, count = tuple(places[name] for name in names), len(source.columns)
    return replace(source, name=made, columns=ordinals[:count], include=ordinals[count:])


def _checks(
    binding: Binding, table: Table, checks: Sequence[CheckConstraint]
) -> tuple[CheckConstraint, ...]:
    """The checks by their own names, of a table that has its own."""
    nodes = [
        ast.Constraint(
            contype=ConstrType.CONSTR_CHECK,
            conname=check.name,
            raw_expr=parse_stored_expression(check.expression),
            is_no_inherit=check.no_inherit,
        )
        for check in checks
    ]
    return bind_checks(binding, table, nodes)
