"""CREATE and DROP INDEX.

A unique index over columns is a key like any other. Every other index is a definition: it is kept,
checked and shown, and no row is found by it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from pglast import ast
from pglast.enums import ConstrType, DropBehavior, SortByDir, SortByNulls

from sql.bind_foreign_keys import losing, lost_key, lost_notices, without_key
from sql.bind_from import find_table
from sql.bind_generated import immutable
from sql.bind_keys import KeyNode, bind_keys, joined_name, relation_names
from sql.binding import Binding
from sql.catalog import Table
from sql.catalog_objects import TEXT_CLASSES, IndexDefinition
from sql.coerce import to_boolean
from sql.column_expressions import check_scope, refuse_subqueries, text_of
from sql.definition_statements import ChangeObjects, CreateObject, Redefinition, cascades
from sql.errors import SqlError, duplicate_table, not_supported
from sql.look_up import refuse_system_change, relation_exists
from sql.statements import AlterTable
from sql.syntax import Node, at, column_name, strings
from sql.table_changes import unqualified
from sql.types import OIDS, SqlType, display
from sql.validations import validations

_METHODS: Final = frozenset({"btree", "hash"})


def _not_a_table(name: str, kind: str) -> SqlError:
    detail = f"This operation is not supported for {kind}s."
    return SqlError("42809", f'cannot create index on relation "{name}"', detail=detail)


def create_index(binding: Binding, node: Node) -> CreateObject | AlterTable:
    """CREATE [UNIQUE] INDEX [CONCURRENTLY] [IF NOT EXISTS]."""
    table = find_table(binding, node.relation, _not_a_table)
    refuse_system_change(table)
    place = at(node.relation.location)
    for used, what in (
        (node.tableSpace, "TABLESPACE"),
        (node.options, "WITH in CREATE INDEX"),
        (node.accessMethod not in _METHODS, f"an index of method {node.accessMethod}"),
    ):
        if used:
            raise not_supported(what, place)
    name = node.idxname or index_name(
        table.name,
        [element.name or element_name(element.expr) for element in node.indexParams],
        relation_names(binding.context.catalog, table.schema),
    )
    if relation_exists(binding, table.schema, name):
        if not node.if_not_exists:
            raise duplicate_table(name)
        return CreateObject(IndexDefinition(0, table.schema, name, table.oid), "CREATE INDEX", True)
    texts, options = _elements(binding, table, node.indexParams)
    predicate = ""
    if node.whereClause is not None:
        predicate, _ = _expression(binding, table, node.whereClause, "predicate")
    included, _ = _elements(binding, table, node.indexIncludingParams or ())
    if node.unique:
        return _unique(binding, table, node, name)
    made = IndexDefinition(
        0, table.schema, name, table.oid, texts, options, node.accessMethod, predicate, included
    )
    return CreateObject(made, "CREATE INDEX")


def index_name(table: str, elements: Sequence[str], taken: set[str], label: str = "idx") -> str:
    """As PostgreSQL's ChooseIndexName; the name is taken then."""
    number = 0
    while (name := joined_name(table, "_".join(elements), f"{label}{number or ''}")) in taken:
        number += 1
    taken.add(name)
    return name


def element_name(node: Node) -> str:
    """What an index calls a column or expression."""
    shown = column_name(node)
    return "expr" if shown == "?column?" else shown


def _elements(
    binding: Binding, table: Table, elements: Sequence[Node]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    texts: list[str] = []
    options: list[str] = []
    for element in elements:
        if element.opclassopts:
            raise not_supported("an operator class with options")
        if element.collation:
            raise not_supported("COLLATE in an index")
        if element.name is not None:
            column = table.column(element.name)
            if column is None:
                message = f'column "{element.name}" does not exist'
                raise SqlError("42703", message)
            type_ = column.type
            texts.append(text_of(binding, ast.ColumnRef(fields=(ast.String(sval=element.name),))))
        else:
            text, type_ = _expression(binding, table, element.expr)
            texts.append(text)
        words = [*_operator_class(element, type_)]
        if element.ordering == SortByDir.SORTBY_DESC:
            words.append("DESC")
        if element.nulls_ordering == SortByNulls.SORTBY_NULLS_FIRST:
            words.append("NULLS FIRST")
        if element.nulls_ordering == SortByNulls.SORTBY_NULLS_LAST:
            words.append("NULLS LAST")
        options.append(" ".join(words))
    return tuple(texts), tuple(options)


def _operator_class(element: Node, type_: SqlType) -> Iterator[str]:
    """The operator class, if it is not the type's own. Strings are ordered by bytes anyway."""
    if not element.opclass:
        return
    name = strings(element.opclass)[-1]
    is_text = type_.name in ("text", "varchar")
    if is_text and name in TEXT_CLASSES:
        yield name
    elif name != ("text_ops" if is_text else f"{type_.name}_ops"):
        if name in TEXT_CLASSES or any(name == f"{other}_ops" for other in OIDS):
            shown = display(type_)
            message = f'operator class "{name}" does not accept data type {shown}'
            raise SqlError("42804", message)
        message = f'operator class "{name}" does not exist for access method "btree"'
        raise SqlError("42704", message)


def _expression(
    binding: Binding, table: Table, node: Node, what: str = "expression"
) -> tuple[str, SqlType]:
    refuse_subqueries(node, f"index {what}")
    _, scope = check_scope(binding, table)
    scope.clause = f"index {what}s"
    message = f"functions in index {what} must be marked IMMUTABLE"
    bound = immutable(binding, partial(binding.expression, scope, node), message)
    if what == "predicate":
        to_boolean(binding, bound, node, "WHERE")
    return unqualified(text_of(binding, node)), bound.type


def _unique(binding: Binding, table: Table, node: Node, name: str) -> AlterTable:
    """A key, validated as ADD CONSTRAINT .. UNIQUE is."""
    if node.whereClause is not None or any(e.name is None for e in node.indexParams):
        raise not_supported("a unique index that is partial or over expressions")
    if any(element.opclass for element in node.indexParams):
        raise not_supported("a unique index with an operator class")
    constraint = ast.Constraint(
        conname=name,
        contype=ConstrType.CONSTR_UNIQUE,
        keys=tuple(ast.String(sval=e.name) for e in node.indexParams),
        nulls_not_distinct=node.nulls_not_distinct,
    )
    columns, (key,) = bind_keys(
        binding.context.catalog, table.schema, table.name, table.columns, [KeyNode(constraint)]
    )
    key = replace(key, index=True)
    after = replace(table, columns=columns, keys=(*table.keys, key), version=table.version + 1)
    checked = validations(binding, after, (), (), (key,))
    return AlterTable(
        (Redefinition(table, after),),
        tag="CREATE INDEX",
        unused="CREATE INDEX",
        validations=checked,
    )


def drop_indexes(binding: Binding, node: Node) -> ChangeObjects:
    """DROP INDEX [CONCURRENTLY] [IF EXISTS]."""
    catalog = binding.context.catalog
    dropped: list[IndexDefinition] = []
    changed: dict[int, Table] = {}
    notices: list[tuple[str, str, str | None]] = []
    told: list[str] = []
    cascade = node.behavior == DropBehavior.DROP_CASCADE
    for names in node.objects:
        *qualifier, name = strings(names)
        path = [qualifier[-1]] if qualifier else binding.context.search_path
        found = next((o for s in path if (o := catalog.relation(s, name)) is not None), None)
        if isinstance(found, IndexDefinition):
            dropped.append(found)
            continue
        owner = _owner(binding, path, name)
        if owner is not None:
            table = changed.get(owner.oid, owner)
            key = next(key for key in table.keys if key.name == name)
            if not key.index:
                message = (
                    f"cannot drop index {name} because constraint {name} on table "
                    f"{table.name} requires it"
                )
                hint = f"You can drop constraint {name} on table {table.name} instead."
                raise SqlError("2BP01", message, hint=hint)
            left = tuple(other for other in table.keys if other is not key)
            changed[owner.oid] = replace(table, keys=left)
            told += _let_go(binding, changed, owner.oid, name, cascade=cascade)
            continue
        if any((schema, name) in catalog.tables for schema in path) or found is not None:
            kind = "table" if found is None else found.kind
            hint = f"Use DROP {kind.upper()} to remove a {kind}."
            raise SqlError("42809", f'"{name}" is not an index', hint=hint)
        if not node.missing_ok:
            raise SqlError("42704", f'index "{name}" does not exist')
        notices.append(("00000", f'index "{name}" does not exist, skipping', None))
    by_oid = {table.oid: table for table in catalog.tables.values()}
    return ChangeObjects(
        "DROP INDEX",
        dropped=tuple(dropped),
        tables=tuple(
            Redefinition(by_oid[oid], replace(table, version=table.version + 1))
            for oid, table in changed.items()
        ),
        notices=(*notices, *cascades(told)),
    )


def _let_go(
    binding: Binding, changed: dict[int, Table], oid: int, name: str, *, cascade: bool
) -> list[str]:
    """Foreign keys that rest on a unique index go along, or forbid that it goes."""
    lost = losing(binding.context.catalog, changed[oid], changed)
    if lost and not cascade:
        raise lost_key(f"index {name}", f"index {name}", lost)
    for child, key in lost:
        changed[child.oid] = without_key(changed.get(child.oid, child), key)
    return lost_notices(lost)


def _owner(binding: Binding, path: Sequence[str], name: str) -> Table | None:
    for schema in path:
        for table in binding.context.catalog.tables.values():
            if table.schema == schema and any(key.name == name for key in table.keys):
                return table
    return None
