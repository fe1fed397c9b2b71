"""COPY: bind both directions, and check the options of both grammars (ProcessCopyOptions)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from pglast import ast

from sql.binder.expressions.expression import condition
from sql.binder.queries.select import bind_query
from sql.binder.resolve.catalog_lookup import refuse_system_write
from sql.binder.resolve.query_result import resolve_unknown_columns
from sql.binder.resolve.relations import find_table, table_item, table_scan
from sql.binder.resolve.unpopulated_views import is_unpopulated, unpopulated_copy_error
from sql.binder.state import Binding, Scope
from sql.binder.stored.column_expressions import NEW_ROWS, per_row_default
from sql.binder.stored.view_reads import reads_definition, stored_definition_plan
from sql.catalog.catalog import Table
from sql.errors import SqlError, not_supported
from sql.parser.option_values import option_boolean, option_text
from sql.parser.syntax import Node, is_a, offset_to_position, string_values, tree_nodes
from sql.plan.nodes import ColumnRef, Filter, Plan, Project, Values
from sql.plan.pruning import prune_columns
from sql.plan.traverse import (
    column_ids,
)
from sql.statements.bound import BoundQuery, CopyIn, CopyOut, OutputColumn
from sql.statements.copy_options import CopyOptions
from sql.types.encodings import Encoding, find_encoding
from sql.types.text_input import parse_text

_REFUSED: Final = frozenset({"default"})

_Forced = tuple[str, ...] | Literal["all"]
"""Columns of FORCE_QUOTE, FORCE_NULL or FORCE_NOT_NULL."""


@dataclass(slots=True)
class _Given:
    """Options as written; None: not said."""

    format: str | None = None
    delimiter: str | None = None
    null: str | None = None
    header: bool | None = None
    match: bool = False
    quote: str | None = None
    escape: str | None = None
    forced: dict[str, _Forced] = field(default_factory=dict[str, _Forced])
    on_error: Node | None = None
    skips: bool = False
    skipped_max: int | None = None
    verbosity: str = "default"
    encoding: Encoding | None = None
    freeze: bool = False


def copy(binding: Binding, node: Node) -> CopyIn | CopyOut:
    """COPY FROM STDIN, COPY TO STDOUT; files and programs are refused."""
    given = _checked_form(node)
    if node.is_from:
        table = _table(binding, node, _no_target)
        if table.query is not None:
            raise _no_target(table.name, table.kind)
        refuse_system_write(table)
        options = _checked(given, from_client=True)
        ordinals = _ordinals(table, node)
        options = _with_forced(options, given, [table.columns[at].name for at in ordinals], table)
        defaults = _defaults(binding, table, ordinals)
        where = _where(binding, table, node)
        return CopyIn(table, ordinals, options, defaults, where, given.freeze)
    options = _checked(given, from_client=False)
    query = _copied(binding, node)
    source = None if node.query is not None else _table(binding, node, _no_source)
    columns = [column.name for column in query.columns]
    return CopyOut(query, _with_forced(options, given, columns, source), source)


def copy_to_options(node: Node, columns: Sequence[str]) -> CopyOptions:
    """The options of a COPY TO whose query is no query of PostgreSQL's, and has these columns."""
    given = _checked_form(node)
    return _with_forced(_checked(given, from_client=False), given, columns, None)


def _checked_form(node: Node) -> _Given:
    if node.is_program or node.filename is not None:
        _refuse_files(node)
    given = _given(node.options or (), from_client=bool(node.is_from))
    if node.whereClause is not None and not node.is_from:
        raise SqlError("42601", "WHERE clause not allowed with COPY TO")
    return given


def _no_target(name: str, kind: str) -> SqlError:
    hint = None
    if kind == "view":
        hint = "To enable copying to a view, provide an INSTEAD OF INSERT trigger."
    return SqlError("42809", f'cannot copy to {kind} "{name}"', hint=hint)


def _no_source(name: str, kind: str) -> SqlError:
    hint = "Try the COPY (SELECT ...) TO variant." if kind == "view" else None
    return SqlError("42809", f'cannot copy from {kind} "{name}"', hint=hint)


def _where(binding: Binding, table: Table, node: Node) -> Plan | None:
    """The rows of `new` that COPY FROM .. WHERE keeps."""
    if node.whereClause is None:
        return None
    for part in tree_nodes(node.whereClause):
        if is_a(part, ast.SubLink):
            message = "cannot use subquery in COPY FROM WHERE condition"
            raise SqlError("0A000", message, offset_to_position(part.location))
    rows = table_scan(binding, table, relation=NEW_ROWS)
    scope = Scope(None, [table_item(rows, table, None)], clause="COPY FROM WHERE conditions")
    scope.ids.update([column.id for column in rows.columns])
    where = condition(binding, scope, node.whereClause, "WHERE")
    asked = set(column_ids(where))
    for made, column in zip(rows.columns, table.columns, strict=True):
        if column.generated is not None and made.id in asked:
            message = "generated columns are not supported in COPY FROM WHERE conditions"
            detail = f'Column "{column.name}" is a generated column.'
            raise SqlError("42P10", message, detail=detail)
    return Filter(rows, where)


def _refuse_files(node: Node) -> None:
    what = "an external program" if node.is_program else "a file"
    message = f"permission denied to COPY {'from' if node.is_from else 'to'} {what}"
    hint = "Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone."
    raise SqlError("42501", message, hint=hint)


def _table(binding: Binding, node: Node, not_a_table: Callable[[str, str], SqlError]) -> Table:
    try:
        return find_table(binding, node.relation, not_a_table)
    except SqlError as error:
        # PostgreSQL looks for it outside of its analysis, which knows places.
        error.position = None
        raise


def _ordinals(table: Table, node: Node) -> tuple[int, ...]:
    if not node.attlist:
        return tuple(at for at, column in enumerate(table.columns) if column.generated is None)
    by_name = {column.name: index for index, column in enumerate(table.columns)}
    ordinals: list[int] = []
    for name in string_values(node.attlist):
        if name not in by_name:
            message = f'column "{name}" of relation "{table.name}" does not exist'
            raise SqlError("42703", message)
        if table.columns[by_name[name]].generated is not None:
            detail = "Generated columns cannot be used in COPY."
            raise SqlError("42P10", f'column "{name}" is a generated column', detail=detail)
        if by_name[name] in ordinals:
            raise SqlError("42701", f'column "{name}" specified more than once')
        ordinals.append(by_name[name])
    return tuple(ordinals)


def _defaults(binding: Binding, table: Table, given: Sequence[int]) -> Values | None:
    """A row of what the columns get that the data does not have."""
    missing = [at for at in range(len(table.columns)) if at not in given]
    if not missing:
        return None
    columns = [table.columns[at] for at in missing]
    made = tuple([binding.new_column(column.name, column.type) for column in columns])
    return Values(made, (tuple([per_row_default(binding, table, at) for at in missing]),))


def _copied(binding: Binding, node: Node) -> BoundQuery:
    """What COPY TO sends: a table's columns, or a query."""
    if node.query is not None:
        if not is_a(node.query, ast.SelectStmt):
            raise not_supported("COPY of a data-modifying statement", None)
        if node.query.intoClause is not None:
            raise not_supported("COPY (SELECT INTO)")
        binding.acts_in = node.query
        result = bind_query(binding, node.query, None)
        resolve_unknown_columns(binding, result)
        described = tuple([OutputColumn(col.name, col.type) for col in result.columns])
        return BoundQuery(prune_columns(result.plan), described, tuple(binding.tables.values()))
    table = _table(binding, node, _no_source)
    if is_unpopulated(table):
        raise unpopulated_copy_error(table)
    rows: Plan
    if not reads_definition(binding, table):
        binding.tables[table.schema, table.name] = table
        rows = scanned = table_scan(binding, table)
        columns = scanned.columns
    else:
        rows, columns = stored_definition_plan(binding, table)
    chosen = [columns[index] for index in _ordinals(table, node)]
    made = tuple([binding.new_column(column.name, column.type) for column in chosen])
    refs = tuple([ColumnRef(column.id, column.type) for column in chosen])
    described = tuple([OutputColumn(column.name, column.type) for column in made])
    tables = tuple(binding.tables.values())
    return BoundQuery(prune_columns(Project(rows, made, refs)), described, tables)


# --- options -----------------------------------------------------------------------------------


def _given(options: Sequence[Node], *, from_client: bool) -> _Given:
    given = _Given()
    seen: set[str] = set()
    for option in options:
        name = option.defname
        if name in seen:
            raise SqlError(
                "42601", "conflicting or redundant options", offset_to_position(option.location)
            )
        seen.add(name)
        reader = _READERS.get(name)
        if name in _REFUSED:
            raise not_supported(
                f"the COPY option {name.upper()}", offset_to_position(option.location)
            )
        if reader is None:
            message = f'option "{name}" not recognized'
            raise SqlError("42601", message, offset_to_position(option.location))
        reader(given, option)
    if given.match and not from_client:
        raise SqlError("0A000", 'cannot use "match" with HEADER in COPY TO')
    if given.on_error is not None and not from_client:
        place = offset_to_position(given.on_error.location)
        raise SqlError("22023", "COPY ON_ERROR cannot be used with COPY TO", place)
    return given


def _format(given: _Given, option: Node) -> None:
    word = option_text(option)
    if word not in ("text", "csv", "binary"):
        message = f'COPY format "{word}" not recognized'
        raise SqlError("22023", message, offset_to_position(option.location))
    given.format = word


def _header(given: _Given, option: Node) -> None:
    if option.arg is not None and option_text(option).lower() == "match":
        given.header = given.match = True
        return
    try:
        given.header = option_boolean(option)
    except SqlError:
        message = 'header requires a Boolean value or "match"'
        raise SqlError("42601", message) from None


def _force(given: _Given, option: Node) -> None:
    if is_a(option.arg, ast.A_Star):
        given.forced[option.defname] = "all"
    elif isinstance(option.arg, tuple):
        given.forced[option.defname] = string_values(option.arg)
    else:
        message = f'argument to option "{option.defname}" must be a list of column names'
        raise SqlError("22023", message, offset_to_position(option.location))


def _encoding(given: _Given, option: Node) -> None:
    name = option_text(option)
    given.encoding = find_encoding(name)
    if given.encoding is None:
        raise not_supported(f"the encoding {name}", offset_to_position(option.location))


def _freeze(given: _Given, option: Node) -> None:
    given.freeze = option_boolean(option)


def _word(option: Node, *words: str) -> str:
    """One of these. Raises 22023, 42601."""
    if option.arg is None:
        raise SqlError("42601", f"{option.defname} requires a parameter")
    word = option_text(option)
    if word.lower() not in words:
        message = f'COPY {option.defname.upper()} "{word}" not recognized'
        raise SqlError("22023", message, offset_to_position(option.location))
    return word.lower()


def _on_error(given: _Given, option: Node) -> None:
    given.on_error, given.skips = option, _word(option, "stop", "ignore") == "ignore"


def _reject_limit(given: _Given, option: Node) -> None:
    if option.arg is None:
        raise SqlError("42601", "reject_limit requires a numeric value")
    limit = int(str(parse_text("int8", option_text(option))))
    if limit <= 0:
        raise SqlError("22023", f"REJECT_LIMIT ({limit}) must be greater than zero")
    given.skipped_max = limit


def _log_verbosity(given: _Given, option: Node) -> None:
    given.verbosity = _word(option, "default", "verbose", "silent")


def _delimiter(given: _Given, option: Node) -> None:
    given.delimiter = option_text(option)


def _null(given: _Given, option: Node) -> None:
    given.null = option_text(option)


def _quote(given: _Given, option: Node) -> None:
    given.quote = option_text(option)


def _escape(given: _Given, option: Node) -> None:
    given.escape = option_text(option)


_READERS: Final[dict[str, Callable[[_Given, Node], None]]] = {
    "format": _format,
    "delimiter": _delimiter,
    "null": _null,
    "header": _header,
    "quote": _quote,
    "escape": _escape,
    "force_quote": _force,
    "force_null": _force,
    "force_not_null": _force,
    "encoding": _encoding,
    "freeze": _freeze,
    "on_error": _on_error,
    "reject_limit": _reject_limit,
    "log_verbosity": _log_verbosity,
}


def _checked(given: _Given, *, from_client: bool) -> CopyOptions:
    csv, binary = given.format == "csv", given.format == "binary"
    if binary:
        _check_text_only(given)
    delimiter = given.delimiter if given.delimiter is not None else ("," if csv else "\t")
    null = given.null if given.null is not None else ("" if csv else "\\N")
    quote = given.quote if given.quote is not None else '"'
    escape = given.escape if given.escape is not None else quote
    _check_delimiter(delimiter, csv=csv)
    if any(character in null for character in "\r\n"):
        raise SqlError("22023", "COPY null representation cannot use newline or carriage return")
    if binary and given.header:
        raise SqlError("0A000", "cannot specify HEADER in BINARY mode")
    _check_csv_only(given, csv=csv)
    if csv:
        _check_quoting(delimiter, quote, escape)
    _check_forced(given, csv=csv, from_client=from_client)
    if given.freeze and not from_client:
        raise SqlError("22023", "COPY FREEZE cannot be used with COPY TO")
    if delimiter in null:
        raise SqlError(
            "22023", "COPY delimiter character must not appear in the NULL specification"
        )
    if csv and quote in null:
        raise SqlError("22023", "CSV quote character must not appear in the NULL specification")
    if binary and given.skips:
        raise SqlError("42601", "only ON_ERROR STOP is allowed in BINARY mode")
    if given.skipped_max is not None and not given.skips:
        message = "COPY REJECT_LIMIT requires ON_ERROR to be set to IGNORE"
        raise SqlError("22023", message)
    return CopyOptions(
        given.format or "text",
        delimiter,
        null,
        bool(given.header),
        given.match,
        quote,
        escape,
        skips=given.skips,
        skipped_max=given.skipped_max,
        verbosity=given.verbosity,
        encoding=given.encoding,
    )


def _with_forced(
    options: CopyOptions, given: _Given, columns: Sequence[str], table: Table | None
) -> CopyOptions:
    """The columns of FORCE_QUOTE, FORCE_NULL and FORCE_NOT_NULL, which COPY must have."""
    forced: dict[str, tuple[str, ...]] = {}
    for name in ("force_quote", "force_not_null", "force_null"):
        wanted = given.forced.get(name, ())
        forced[name] = tuple(columns) if wanted == "all" else wanted
        for column in forced[name]:
            if column in columns:
                continue
            if table is not None and any(known.name == column for known in table.columns):
                message = f'{name.upper()} column "{column}" not referenced by COPY'
                raise SqlError("42P10", message)
            where = f' of relation "{table.name}"' if table is not None else ""
            raise SqlError("42703", f'column "{column}"{where} does not exist')
    return replace(
        options,
        force_quote=forced["force_quote"],
        force_null=forced["force_null"],
        force_not_null=forced["force_not_null"],
    )


def _check_delimiter(delimiter: str, *, csv: bool) -> None:
    if len(delimiter.encode()) != 1:
        raise SqlError("0A000", "COPY delimiter must be a single one-byte character")
    if delimiter in "\r\n":
        raise SqlError("22023", "COPY delimiter cannot be newline or carriage return")
    if not csv and delimiter in "\\.abcdefghijklmnopqrstuvwxyz0123456789":
        raise SqlError("22023", f'COPY delimiter cannot be "{delimiter}"')


def _check_text_only(given: _Given) -> None:
    for used, word in ((given.delimiter, "DELIMITER"), (given.null, "NULL")):
        if used is not None:
            raise SqlError("42601", f"cannot specify {word} in BINARY mode")


def _check_csv_only(given: _Given, *, csv: bool) -> None:
    if csv:
        return
    for used, word in ((given.quote, "QUOTE"), (given.escape, "ESCAPE")):
        if used:
            raise SqlError("0A000", f"COPY {word} requires CSV mode")


def _check_forced(given: _Given, *, csv: bool, from_client: bool) -> None:
    for name in ("force_quote", "force_not_null", "force_null"):
        if name not in given.forced:
            continue
        if not csv:
            raise SqlError("0A000", f"COPY {name.upper()} requires CSV mode")
        if from_client == (name == "force_quote"):
            sqlstate, direction = ("0A000", "FROM") if from_client else ("22023", "TO")
            raise SqlError(sqlstate, f"COPY {name.upper()} cannot be used with COPY {direction}")


def _check_quoting(delimiter: str, quote: str, escape: str) -> None:
    if len(quote.encode()) != 1:
        raise SqlError("0A000", "COPY quote must be a single one-byte character")
    if delimiter == quote:
        raise SqlError("22023", "COPY delimiter and quote must be different")
    if len(escape.encode()) != 1:
        raise SqlError("0A000", "COPY escape must be a single one-byte character")
