"""CREATE, ALTER and DROP STATISTICS: checked, kept and shown, read by no engine (statscmds.c)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from pglast import ast

from sql.binder.resolve.catalog_lookup import (
    check_may_create,
    find_relation_named,
    look_up_table,
    refuse_system_change,
    relation_kind,
    relation_name,
    schema_exists,
    undefined_relation,
)
from sql.binder.resolve.operator_classes import TYPES_WITHOUT_OPERATOR_CLASS
from sql.binder.resolve.system_columns import SYSTEM_COLUMNS
from sql.binder.state import Binding
from sql.binder.stored.column_expressions import (
    check_scope,
    refuse_subqueries,
    stored_text_of,
    without_position,
)
from sql.binder.stored.table_changes import without_qualifiers
from sql.catalog.catalog import Table
from sql.catalog.constraint_names import make_object_name
from sql.catalog.objects import STATISTICS_SPACE, StatisticsDefinition
from sql.catalog.system_catalogs import SYSTEM_SCHEMAS
from sql.errors import SqlError, undefined_schema
from sql.parser.syntax import Node, is_a, string_values
from sql.statements.ddl import ChangeObjects, CreateObject
from sql.types.sql_type import SqlType, format_type

_COLUMNS_MAX: Final = 8
_KINDS: Final = {"ndistinct": "d", "dependencies": "f", "mcv": "m"}
_CHANGES_NOTHING: Final = "statistics objects are kept and shown; plans do not depend on them"


def create_statistics(binding: Binding, node: Node) -> CreateObject | ChangeObjects:
    """CREATE STATISTICS [IF NOT EXISTS]."""
    if len(node.relations) != 1 or not is_a(node.relations[0], ast.RangeVar):
        raise SqlError("0A000", "only a single relation is allowed in CREATE STATISTICS")
    table = _table(binding, node.relations[0])
    names = string_values(node.defnames)
    schema = table.schema
    if len(names) > 1:
        schema = relation_name(binding, names)[0] or schema
        if not schema_exists(binding, schema):
            raise undefined_schema(schema)
    if names:
        check_may_create(schema, names[-1])
    name = names[-1] if names else _made_name(binding, table, node.exprs)
    if (STATISTICS_SPACE, schema, name) in binding.context.catalog.objects:
        said = f'statistics object "{name}" already exists'
        if not node.if_not_exists:
            raise SqlError("42710", said)
        notice = ("42710", f"{said}, skipping", None)
        return ChangeObjects("CREATE STATISTICS", notices=(notice,))
    if len(node.exprs) > _COLUMNS_MAX:
        raise SqlError("54011", f"cannot have more than {_COLUMNS_MAX} columns in statistics")
    numbers = [_number(table, element.name) for element in node.exprs if element.name is not None]
    texts = [
        _expression(binding, table, element.expr) for element in node.exprs if element.name is None
    ]
    kinds = _kinds(node, len(numbers), len(texts))
    for found, what in ((numbers, "column name"), (texts, "expression")):
        if len({*found}) < len(found):
            raise SqlError("42701", f"duplicate {what} in statistics definition")
    made = StatisticsDefinition(
        0, schema, name, table=table.oid, columns=tuple(sorted(numbers)),
        expressions=tuple(texts), kinds=kinds,
    )  # fmt: skip
    return CreateObject(made, "CREATE STATISTICS", notices=(_CHANGES_NOTHING,))


def _table(binding: Binding, relation: Node) -> Table:
    found = find_relation_named(binding, relation)
    table = look_up_table(binding, relation.relname, schema=relation.schemaname)
    if table is not None:
        refuse_system_change(table)
        return table
    if found is None or isinstance(found, Table):
        raise undefined_relation(binding, relation)
    kind = relation_kind(found)
    plural = {"index": "indexes"}.get(kind, f"{kind}s")
    detail = f"This operation is not supported for {plural}."
    message = f'cannot define statistics for relation "{relation.relname}"'
    raise SqlError("42809", message, detail=detail)


def _number(table: Table, name: str) -> int:
    if name in SYSTEM_COLUMNS:
        message = "statistics creation on system columns is not supported"
        raise SqlError("0A000", message)
    for ordinal, column in enumerate(table.columns):
        if column.name == name:
            _check_ordered(f'column "{name}"', column.type)
            return table.number_of(ordinal)
    raise SqlError("42703", f'column "{name}" does not exist')


def _check_ordered(what: str, type_: SqlType) -> None:
    if type_.name in TYPES_WITHOUT_OPERATOR_CLASS:
        shown = format_type(type_)
        message = f"{what} cannot be used in statistics because its type {shown}"
        raise SqlError("0A000", f"{message} has no default btree operator class")


def _expression(binding: Binding, table: Table, node: Node) -> str:
    refuse_subqueries(node, "statistics expressions")
    _, scope = check_scope(binding, table)
    scope.clause = "statistics expressions"
    bound = without_position(partial(binding.expression, scope, node))
    _check_ordered("expression", bound.type)
    return without_qualifiers(stored_text_of(binding, node))


def _kinds(node: Node, columns: int, expressions: int) -> tuple[str, ...]:
    """The kinds as pg_statistic_ext has them; all of them if none is named."""
    named = string_values(node.stat_types)
    for name in named:
        if name not in _KINDS:
            raise SqlError("42601", f'unrecognized statistics kind "{name}"')
    single = columns == 0 and expressions == 1
    if single and named:
        message = (
            "when building statistics on a single expression, statistics kinds may not be specified"
        )
        raise SqlError("0A000", message)
    if columns < 2 and columns + expressions < 2 and not single:
        raise SqlError("42P17", "extended statistics require at least 2 columns")
    kinds = () if single else [kind for name, kind in _KINDS.items() if name in (named or _KINDS)]
    return (*kinds, *(("e",) if expressions else ()))


def _made_name(binding: Binding, table: Table, elements: Sequence[Node]) -> str:
    """As PostgreSQL's ChooseExtendedStatisticName."""
    middle = "_".join(element.name or "expr" for element in elements)
    number = 0
    while True:
        name = make_object_name(table.name, middle, f"stat{number or ''}")
        if (STATISTICS_SPACE, table.schema, name) not in binding.context.catalog.objects:
            return name
        number += 1


def find_statistics(binding: Binding, names: Sequence[str]) -> StatisticsDefinition:
    """The statistics object of that name. Raises 42704, 3F000."""
    found = _looked_up(binding, names)
    if found is None:
        raise SqlError("42704", f'statistics object "{".".join(names)}" does not exist')
    return found


def _looked_up(binding: Binding, names: Sequence[str]) -> StatisticsDefinition | None:
    schema, name = relation_name(binding, names)
    if schema is not None and schema not in SYSTEM_SCHEMAS and not schema_exists(binding, schema):
        raise undefined_schema(schema)
    for place in binding.context.search_path if schema is None else (schema,):
        found = binding.context.catalog.objects.get((STATISTICS_SPACE, place, name))
        if isinstance(found, StatisticsDefinition):
            return found
    return None


def drop_statistics(binding: Binding, node: Node) -> ChangeObjects:
    """DROP STATISTICS [IF EXISTS]."""
    dropped: list[StatisticsDefinition] = []
    notices: list[tuple[str, str, str | None]] = []
    for item in node.objects:
        names = string_values(item)
        if not node.missing_ok:
            dropped.append(find_statistics(binding, names))
            continue
        try:
            found = _looked_up(binding, names)
        except SqlError as error:
            notices.append(("00000", f"{error.message}, skipping", None))
            continue
        if found is None:
            said = f'statistics object "{".".join(names)}" does not exist, skipping'
            notices.append(("00000", said, None))
        else:
            dropped.append(found)
    return ChangeObjects("DROP STATISTICS", dropped=tuple(dropped), notices=tuple(notices))


def alter_statistics(binding: Binding, node: Node) -> ChangeObjects:
    """ALTER STATISTICS .. SET STATISTICS."""
    names = string_values(node.defnames)
    found = _looked_up(binding, names) if node.missing_ok else find_statistics(binding, names)
    if found is None:
        said = f'statistics object "{names[-1]}" does not exist, skipping'
        return ChangeObjects("ALTER STATISTICS", notices=(("00000", said, None),))
    target = -1 if node.stxstattarget is None else int(node.stxstattarget.ival or 0)
    if target < -1:
        raise SqlError("22023", f"statistics target {target} is too low")
    notices: tuple[tuple[str, str, str | None], ...] = ()
    if target > _TARGET_MAX:
        target = _TARGET_MAX
        notices = (("22023", f"lowering statistics target to {target}", None),)
    made = replace(found, target=None if target == -1 else target)
    return _put("ALTER STATISTICS", made, notices)


def rename_statistics(binding: Binding, names: Sequence[str], new: str) -> ChangeObjects:
    """ALTER STATISTICS .. RENAME TO."""
    found = find_statistics(binding, names)
    return _put("ALTER STATISTICS", replace(found, name=_free(binding, found.schema, new)))


def move_statistics(binding: Binding, names: Sequence[str], schema: str) -> ChangeObjects:
    """ALTER STATISTICS .. SET SCHEMA."""
    found = find_statistics(binding, names)
    if not schema_exists(binding, schema):
        raise undefined_schema(schema)
    if schema == found.schema:
        return ChangeObjects("ALTER STATISTICS")
    _free(binding, schema, found.name)
    return _put("ALTER STATISTICS", replace(found, schema=schema))


def _free(binding: Binding, schema: str, name: str) -> str:
    if (STATISTICS_SPACE, schema, name) in binding.context.catalog.objects:
        message = f'statistics object "{name}" already exists in schema "{schema}"'
        raise SqlError("42710", message)
    return name


def _put(
    tag: str,
    made: StatisticsDefinition,
    notices: tuple[tuple[str, str, str | None], ...] = (),
) -> ChangeObjects:
    return ChangeObjects(tag, objects=(replace(made, version=made.version + 1),), notices=notices)


_TARGET_MAX: Final = 10_000
