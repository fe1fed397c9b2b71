"""CREATE INDEX and DROP INDEX: a unique index over columns becomes a key, others are definitions.

Definitions are stored, checked and shown in the catalogs; queries never use them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from pglast import ast
from pglast.enums import ConstrType, DropBehavior, SortByDir, SortByNulls

from sql.binder.ddl.foreign_keys import (
    dangling_foreign_keys,
    dropped_foreign_key_notices,
    foreign_key_dependency_details,
    without_foreign_key,
)
from sql.binder.ddl.generated import bind_immutable
from sql.binder.ddl.index_methods import check_method, operator_class_shown, orders_rows
from sql.binder.ddl.keys import KeyNode, TakenNames, bind_keys
from sql.binder.ddl.row_validations import row_validations
from sql.binder.ddl.storage_parameters import (
    CHANGES_NOTHING,
    index_parameters,
    parameter_notice,
    refuse_other_tablespace,
)
from sql.binder.resolve.catalog_lookup import (
    missing_object_notice,
    refuse_system_change,
    relation_exists,
    relation_name,
    wrong_kind,
)
from sql.binder.resolve.coercion import to_boolean
from sql.binder.resolve.collations import check_collation, collation_of_expression
from sql.binder.resolve.operator_classes import (
    TYPES_WITHOUT_OPERATOR_CLASS,
    check_key_type,
    is_default_class,
    no_operator_class,
)
from sql.binder.resolve.relations import find_table
from sql.binder.state import Binding
from sql.binder.stored.column_expressions import (
    check_scope,
    parse_stored_expression,
    refuse_subqueries,
    stored_text_of,
    without_position,
)
from sql.binder.stored.relation_users import dependent_objects_still_exist
from sql.binder.stored.table_changes import without_qualifiers
from sql.binder.stored.unique_indexes import unique_index_plan
from sql.catalog.catalog import Table
from sql.catalog.constraint_names import index_column_names, make_object_name
from sql.catalog.objects import TEXT_OPERATOR_CLASSES, IndexDefinition
from sql.errors import SqlError, duplicate_table, not_supported
from sql.parser.syntax import Node, column_name, offset_to_position, string_values
from sql.plan.nodes import ColumnRef, Plan, Project
from sql.statements.bound import AlterTable
from sql.statements.ddl import ChangeObjects, CreateObject, Redefinition, drop_cascade_notices
from sql.types.limits import check_key_column_count
from sql.types.sql_type import SqlType, format_type, quoted_name


def _not_a_table(name: str, kind: str) -> SqlError:
    detail = f"This operation is not supported for {kind}s."
    return SqlError("42809", f'cannot create index on relation "{name}"', detail=detail)


def create_index(binding: Binding, node: Node) -> CreateObject | AlterTable:
    """CREATE [UNIQUE] INDEX [CONCURRENTLY] [IF NOT EXISTS]."""
    check_key_column_count(len((*node.indexParams, *(node.indexIncludingParams or ()))))
    table = without_position(partial(find_table, binding, node.relation, _not_a_table))
    refuse_system_change(table)
    place = offset_to_position(node.relation.location)
    if node.unique and table.query is not None and table.query.on_commit:
        what = "a unique index on a materialized view that follows its inputs"
        raise not_supported(what, place)
    for used, what in (
        (node.nulls_not_distinct and not node.unique, "NULLS NOT DISTINCT without UNIQUE"),
    ):
        if used:
            raise not_supported(what, place)
    check_method(node)
    refuse_other_tablespace(node.tableSpace)
    parameters = index_parameters(node.options or (), node.accessMethod)
    name = node.idxname or index_name(
        table.name,
        [
            element.name or index_element_name(element.expr)
            for element in (*node.indexParams, *(node.indexIncludingParams or ()))
        ],
        TakenNames(binding.context.catalog, table.schema),
    )
    if relation_exists(binding, table.schema, name):
        if not node.if_not_exists:
            raise duplicate_table(name)
        return CreateObject(IndexDefinition(0, table.schema, name, table.oid), "CREATE INDEX", True)
    method, computed = node.accessMethod, list[Plan]()
    texts, options = _elements(binding, table, node.indexParams, method, computed)
    predicate = ""
    if node.whereClause is not None:
        predicate, plan = _expression(binding, table, node.whereClause, "predicate")
        computed.append(plan)
    included = _included(binding, table, node.indexIncludingParams or ())
    plain = node.whereClause is None and all(element.name for element in node.indexParams)
    if node.unique and plain and not any(e.opclass for e in node.indexParams):
        return _unique(binding, table, node, name, options if any(options) else ())
    made = IndexDefinition(
        0, table.schema, name, table.oid, texts, options, node.accessMethod, predicate, included
    )
    made = replace(made, parameters=parameters)
    if node.unique:
        return _computed(binding, table, node, made)
    told = parameter_notice(node.options or ())
    notices = () if told is None else (told,)
    return CreateObject(made, "CREATE INDEX", notices=notices, computed=tuple(computed))


def index_name(table: str, elements: Sequence[str], taken: TakenNames, label: str = "idx") -> str:
    """Choose an index name as PostgreSQL's ChooseIndexName, and add it to `taken`."""
    number, names = 0, "_".join(index_column_names(elements))
    while (name := make_object_name(table, names, f"{label}{number or ''}")) in taken:
        number += 1
    taken.add(name)
    return name


def index_element_name(node: Node) -> str:
    """The name of an index column or expression."""
    shown = column_name(node)
    return "expr" if shown == "?column?" else shown


def _elements(
    binding: Binding, table: Table, elements: Sequence[Node], method: str, computed: list[Plan]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Texts and options; what is computed for each row is added to `computed`."""
    texts: list[str] = []
    options: list[str] = []
    for element in elements:
        if element.opclassopts:
            raise not_supported("an operator class with options")
        if element.name is not None:
            text, type_, own = _column(binding, table, element.name)
        else:
            text, plan = _expression(binding, table, element.expr)
            type_ = plan.columns[0].type
            found = collation_of_expression(binding, plan.exprs[0])
            own = "" if found is None else found.name
            computed.append(plan)
        texts.append(text)
        said = (
            *_collation(binding, element, type_, own),
            *_operator_class(binding, element, type_, method),
            *_order(element),
        )
        options.append(" ".join(said))
    return tuple(texts), tuple(options)


def _column(binding: Binding, table: Table, name: str) -> tuple[str, SqlType, str]:
    """Text, type and collation of a column."""
    column = table.column(name)
    if column is None:
        raise SqlError("42703", f'column "{name}" does not exist')
    text = stored_text_of(binding, ast.ColumnRef(fields=(ast.String(sval=name),)))
    return text, column.type, column.collation


def _collation(binding: Binding, element: Node, type_: SqlType, own: str) -> Iterator[str]:
    """COLLATE, if it is not the element's own. All collations here order alike."""
    if not element.collation:
        return
    clause = ast.CollateClause(collname=element.collation)
    named = without_position(partial(check_collation, binding, clause, type_)).name
    if named != (own or ("C" if type_.name == "name" else "default")):
        yield f"COLLATE {quoted_name(named)}"


def _included(binding: Binding, table: Table, elements: Sequence[Node]) -> tuple[str, ...]:
    """The texts of columns that are only kept along: nothing else may be said of them."""
    texts: list[str] = []
    for element in elements:
        if element.expr is not None:
            raise SqlError("0A000", "expressions are not supported in included columns")
        text, _, _ = _column(binding, table, element.name)
        for said, what in (
            (element.collation, "a collation"),
            (element.opclass, "an operator class"),
            (element.ordering, "ASC/DESC options"),
            (element.nulls_ordering, "NULLS FIRST/LAST options"),
        ):
            if said:
                raise SqlError("42P17", f"including column does not support {what}")
        texts.append(text)
    return tuple(texts)


def _order(element: Node) -> Iterator[str]:
    """What is not the default: NULLs are the largest values."""
    descends = element.ordering == SortByDir.SORTBY_DESC
    if descends:
        yield "DESC"
        if element.nulls_ordering == SortByNulls.SORTBY_NULLS_LAST:
            yield "NULLS LAST"
    elif element.nulls_ordering == SortByNulls.SORTBY_NULLS_FIRST:
        yield "NULLS FIRST"


def _operator_class(binding: Binding, element: Node, type_: SqlType, method: str) -> Iterator[str]:
    """The operator class, if it is not the type's own. Strings are ordered by bytes anyway."""
    names = string_values(element.opclass)
    if not orders_rows(method):
        shown = operator_class_shown(names, type_, method)
        yield from () if shown is None else (shown,)
        return
    _check_class(binding, names, type_, method)
    if type_.name in ("text", "varchar") and names and names[-1] in TEXT_OPERATOR_CLASSES:
        yield names[-1]


def _check_class(binding: Binding, names: Sequence[str], type_: SqlType, method: str) -> None:
    """42704, 42804 for an operator class that there is not, or not of this type. `names`: empty for
    the type's own.
    """
    if not names:
        if type_.name in TYPES_WITHOUT_OPERATOR_CLASS:
            raise no_operator_class(type_, method)
        return
    own = is_default_class(binding, names, type_)
    if not own and (
        type_.name not in ("text", "varchar") or names[-1] not in TEXT_OPERATOR_CLASSES
    ):
        message = f'operator class "{names[-1]}" does not accept data type {format_type(type_)}'
        raise SqlError("42804", message)


def recheck_index(binding: Binding, table: Table, index: IndexDefinition) -> None:
    """Bind an index again after columns of its table changed their types."""
    if index.unique:
        check_computed_types(binding, table, index)
    for place, text in enumerate(index.elements):
        _, plan = _expression(binding, table, parse_stored_expression(text))
        said = index.options[place].split() if index.options else []
        type_ = plan.columns[0].type
        if not orders_rows(index.method):
            operator_class_shown(said, type_, index.method)
            continue
        names = [word for word in said if word in TEXT_OPERATOR_CLASSES]
        _check_class(binding, names, type_, index.method)
    if index.predicate:
        _expression(binding, table, parse_stored_expression(index.predicate), "predicate")


def _expression(
    binding: Binding, table: Table, node: Node, what: str = "expression"
) -> tuple[str, Project]:
    refuse_subqueries(node, f"index {what}")
    scanned, scope = check_scope(binding, table)
    scope.clause = f"index {what}s"
    message = f"functions in index {what} must be marked IMMUTABLE"
    bound = bind_immutable(binding, partial(binding.expression, scope, node), message)
    if what == "predicate":
        bound = to_boolean(binding, bound, node, "WHERE")
    made = binding.new_column(what, bound.type)
    return without_qualifiers(stored_text_of(binding, node)), Project(scanned, (made,), (bound,))


def _unique(
    binding: Binding, table: Table, node: Node, name: str, orders: tuple[str, ...]
) -> AlterTable:
    """A key, validated as ADD CONSTRAINT .. UNIQUE is."""
    constraint = ast.Constraint(
        conname=name,
        contype=ConstrType.CONSTR_UNIQUE,
        keys=tuple(ast.String(sval=e.name) for e in node.indexParams),
        including=tuple(ast.String(sval=e.name) for e in node.indexIncludingParams or ()),
        nulls_not_distinct=node.nulls_not_distinct,
        options=node.options,
    )
    taken = TakenNames(binding.context.catalog, table.schema)
    columns, (key,) = bind_keys(taken, table, [KeyNode(constraint)], is_index=True)
    key = replace(key, index=True, orders=orders)
    after = replace(table, columns=columns, keys=(*table.keys, key), version=table.version + 1)
    checked = row_validations(binding, after, (), (), (key,))
    return AlterTable(
        (Redefinition(table, after),),
        tag="CREATE INDEX",
        unused="CREATE INDEX",
        validations=checked,
    )


def _computed(binding: Binding, table: Table, node: Node, made: IndexDefinition) -> AlterTable:
    """A unique index that is no key: the server computes its keys and enforces it."""
    index = replace(made, unique=True, nulls_distinct=not node.nulls_not_distinct)
    check_computed_types(binding, table, index)
    told = parameter_notice(node.options or ())
    return AlterTable(
        (Redefinition(table, replace(table, version=table.version + 1)),),
        tag="CREATE INDEX",
        unused="CREATE INDEX",
        unique_index=index,
        notices=() if told is None else ((CHANGES_NOTHING, told, None),),
    )


def check_computed_types(binding: Binding, table: Table, index: IndexDefinition) -> None:
    """Refuse types whose values may be equal and look different, as keys are looked up by value."""
    plan = unique_index_plan(binding, table, index)
    for expr in plan.exprs[: len(index.elements)]:
        check_key_type(expr.type, None)
        if not isinstance(expr, ColumnRef) and expr.type.name in _INEXACT:
            shown = format_type(expr.type)
            raise not_supported(f"a unique index over an expression of type {shown}")


_INEXACT: Final = frozenset({"numeric", "float4", "float8", "bpchar"})


def drop_indexes(binding: Binding, node: Node) -> ChangeObjects:
    """DROP INDEX [CONCURRENTLY] [IF EXISTS]."""
    _check_concurrent(node)
    catalog = binding.context.catalog
    dropped: list[IndexDefinition] = []
    changed: dict[int, Table] = {}
    notices: list[tuple[str, str, str | None]] = []
    told: list[str] = []
    cascade = node.behavior == DropBehavior.DROP_CASCADE
    for names in node.objects:
        schema, name = relation_name(binding, string_values(names))
        path = binding.context.search_path if schema is None else (schema,)
        found = next((o for s in path if (o := catalog.relation(s, name)) is not None), None)
        if isinstance(found, IndexDefinition):
            dropped.append(found)
            if found.unique:
                _forget(binding, changed, found)
            continue
        owner = _owner(binding, path, name)
        if owner is not None:
            table = changed.get(owner.oid, owner)
            key = next(key for key in table.keys if key.name == name)
            if not key.index:
                message = (
                    f"cannot drop index {quoted_name(name)} because constraint {name} on table "
                    f"{table.shown} requires it"
                )
                hint = f"You can drop constraint {name} on table {table.shown} instead."
                raise SqlError("2BP01", message, hint=hint)
            left = tuple(other for other in table.keys if other is not key)
            changed[owner.oid] = replace(table, keys=left)
            told += _let_go(binding, changed, owner.oid, name, cascade=cascade)
            continue
        other = next((t for place in path if (t := catalog.tables.get((place, name)))), found)
        if other is not None:
            raise wrong_kind(name, "index", other.kind)
        missing = missing_object_notice(binding, "index", schema, name, missing_ok=node.missing_ok)
        notices.append(("00000", missing, None))
    by_oid = {table.oid: table for table in catalog.tables.values()}
    return ChangeObjects(
        "DROP INDEX",
        dropped=tuple(dropped),
        tables=tuple(
            Redefinition(by_oid[oid], replace(table, version=table.version + 1))
            for oid, table in changed.items()
        ),
        notices=(*notices, *drop_cascade_notices(told)),
    )


def _forget(binding: Binding, changed: dict[int, Table], index: IndexDefinition) -> None:
    table = changed.get(index.table) or binding.context.catalog.by_oid(index.table)
    assert table is not None, "an index has a table"
    left = tuple(oid for oid in table.unique_indexes if oid != index.oid)
    changed[table.oid] = replace(table, unique_indexes=left)


def _check_concurrent(node: Node) -> None:
    for used, what in (
        (len(node.objects) > 1, "dropping multiple objects"),
        (node.behavior == DropBehavior.DROP_CASCADE, "CASCADE"),
    ):
        if node.concurrent and used:
            raise SqlError("0A000", f"DROP INDEX CONCURRENTLY does not support {what}")


def _let_go(
    binding: Binding, changed: dict[int, Table], oid: int, name: str, *, cascade: bool
) -> list[str]:
    """Foreign keys that rest on a unique index go along, or forbid that it goes."""
    lost = dangling_foreign_keys(binding.context.catalog, changed[oid], changed)
    if lost and not cascade:
        index = f"index {quoted_name(name)}"
        raise dependent_objects_still_exist([index], foreign_key_dependency_details(index, lost))
    for child, key in lost:
        changed[child.oid] = without_foreign_key(changed.get(child.oid, child), key)
    return dropped_foreign_key_notices(lost)


def _owner(binding: Binding, path: Sequence[str], name: str) -> Table | None:
    for schema in path:
        for table in binding.context.catalog.tables.values():
            if table.schema == schema and any(key.name == name for key in table.keys):
                return table
    return None
