"""Storage parameters of a table, including PARTITION BY, which becomes a clustering key.

    WITH (history = '7 days')          how far back the table stays readable
    WITH (cluster_by = 'day, region')  the columns by which large writes sort their rows
    WITH (change_data_feed = on)       readers of its Delta files see what each version changes
    PARTITION BY RANGE (day, region)   the same as cluster_by
    PARTITION BY LIST (region)         the same as cluster_by

A table holds all of its rows itself, so partitions cannot be created, attached or dropped. Their
purpose, reading few files, is served by file statistics over sorted rows.

INVARIANTS
  O1  clustering columns are stored by number, so that renaming them changes nothing.
  O2  a clustering column has a type that every engine orders as PostgreSQL does.
  O3  no column of a table with a change data feed has the name of a column of the feed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pglast import ast

from sql.binder.ddl.storage_parameters import (
    is_stored_parameter,
    parameter_notice,
    stored_parameters,
    without_parameters,
)
from sql.binder.dml.clustering import CLUSTERING_TYPES
from sql.catalog.catalog import Column, Table
from sql.catalog.view_reads import REFRESHES
from sql.errors import SqlError, not_supported
from sql.parser.option_values import option_boolean
from sql.parser.qualified_names import fold_identifier
from sql.parser.syntax import Node, is_a, offset_to_position
from sql.types.datetime.interval_input import parse_interval
from sql.types.sql_type import INTERVAL, Interval, quoted_name
from sql.types.text_output import format_text

_DAY_US: Final = 86_400_000_000
_DAYS_PER_MONTH: Final = 30
_HISTORY_US_MAX: Final = 100 * 366 * _DAY_US
"""A hundred years: longer than anybody keeps a table, and far from the ends of int8."""

_FEED: Final = "change_data_feed"
_FEED_COLUMNS: Final = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})

CLUSTERED_MAX: Final = 32
"""The maximum number of columns of a partition key, as in PostgreSQL."""


_NAME: Final = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^\s,"]+))\s*(,|\Z)')
_HINT: Final = (
    "A table keeps all of its rows itself, clustered by its partition key: leave its partitions "
    "out."
)


_REFRESH_HINT: Final = (
    "Say refresh = 'on commit', or 'manual' to keep the rows of the last REFRESH."
)


NamedColumn = tuple[str, int | None]
"""The name of a column, and its position in the statement."""


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """A parsed list of storage parameters; None for those not given."""

    history_us: int | None = None
    cluster_by: tuple[NamedColumn, ...] | None = None
    change_feed: bool | None = None
    kept: tuple[Node, ...] = ()
    """PostgreSQL's own, which are only shown."""

    @property
    def notices(self) -> tuple[str, ...]:
        """That some change nothing."""
        told = parameter_notice(self.kept)
        return () if told is None else (told,)


def storage_options(options: Sequence[Node]) -> StorageOptions:
    """The parameters of WITH and SET."""
    found = StorageOptions()
    seen: set[tuple[str | None, str]] = set()
    for option in options:
        kept = _is_kept(option)
        if (option.defnamespace, option.defname) in seen:
            raise SqlError("22023", f'parameter "{option.defname}" specified more than once')
        seen.add((option.defnamespace, option.defname))
        if kept:
            found = replace(found, kept=(*found.kept, option))
        elif option.defname == "history":
            found = replace(found, history_us=_history(option))
        elif option.defname == _FEED:
            found = replace(found, change_feed=_switch(option))
        else:
            names = _names(_text(option))
            found = replace(found, cluster_by=tuple([(name, None) for name in names]))
    return found


def without_oids(options: Sequence[Node]) -> list[Node]:
    """The parameters of CREATE TABLE without OIDS, which old dumps contain; true is refused."""
    for option in options:
        if _is_oids(option) and option_boolean(option):
            raise SqlError("0A000", "tables declared WITH OIDS are not supported")
    return [option for option in options if not _is_oids(option)]


MANUAL, ON_COMMIT = REFRESHES


@dataclass(frozen=True, slots=True)
class RefreshOption:
    """The parameters of a materialized view without `refresh`, None for none; and what that says.

    `refresh`: None if it is not among them, or only to be reset.
    """

    others: tuple[Node, ...] | None
    refresh: str | None
    place: int | None = None
    resets: bool = False
    """RESET names it."""


def refresh_option(options: Sequence[Node] | None, *, resets: bool = False) -> RefreshOption:
    """Take `refresh` out of the parameters. `resets`: they are those of RESET."""
    left: list[Node] = []
    found = RefreshOption(None, None)
    for option in options or ():
        if option.defnamespace is not None or option.defname != "refresh":
            left.append(option)
            continue
        if found.refresh is not None or found.resets:
            raise SqlError("22023", 'parameter "refresh" specified more than once')
        place = offset_to_position(option.location)
        said = None if resets else _text(option)
        if said is not None and said not in REFRESHES:
            what = f"a materialized view with refresh = '{said}'"
            raise not_supported(what, place, hint=_REFRESH_HINT)
        found = RefreshOption(None, said, place, resets)
    return replace(found, others=tuple(left) if left else None)


def _is_oids(option: Node) -> bool:
    return option.defnamespace is None and option.defname == "oids"


def reset_storage_options(table: Table, options: Sequence[Node]) -> Table:
    """ALTER TABLE .. RESET (..)."""
    for option in options:
        if option.arg is not None:
            raise SqlError("42601", "RESET must not include values for parameters")
        if _is_kept(option):
            table = replace(table, parameters=without_parameters([option], table.parameters))
        elif option.defname == "history":
            table = replace(table, history_us=None)
        elif option.defname == _FEED:
            table = replace(table, change_feed=False)
        else:
            table = replace(table, clustered=())
    return table


def with_storage_options(table: Table, options: StorageOptions) -> Table:
    """The table with these parameters set."""
    if options.history_us is not None:
        table = replace(table, history_us=options.history_us)
    if options.cluster_by is not None:
        table = replace(table, clustered=_clustered(table, options.cluster_by))
    if options.change_feed is not None:
        table = replace(table, change_feed=options.change_feed)
    refuse_feed_columns(table)
    return replace(table, parameters=stored_parameters(options.kept, table.parameters))


def own_storage_options(table: Table) -> list[tuple[str, str]]:
    """Meridian's own parameters of a table, as WITH accepts them."""
    shown: list[tuple[str, str]] = []
    if table.history_us is not None:
        days, micros = divmod(table.history_us, _DAY_US)
        shown.append(("history", format_text(Interval(0, days, micros), INTERVAL)))
    if table.clustered:
        columns = [table.columns[table.ordinal_of(number)] for number in table.clustered]
        names = ", ".join(quoted_name(column.name) for column in columns)
        shown.append(("cluster_by", names))
    if table.change_feed:
        shown.append((_FEED, "on"))
    return shown


def refuse_feed_columns(table: Table) -> None:
    """Refuse names of columns that a change data feed has itself (O3)."""
    for column in table.columns if table.change_feed else ():
        if column.name.lower() in _FEED_COLUMNS:
            raise not_supported(f'a column "{column.name}" in a table with {_FEED}')


def _is_kept(option: Node) -> bool:
    """Whether it is one of PostgreSQL's. Raises 22023 for an unknown name."""
    if is_stored_parameter(option):
        return True
    if option.defname == "deletion_vectors":
        raise not_supported('storage parameter "deletion_vectors"')
    if option.defname not in ("history", "cluster_by", _FEED):
        raise SqlError("22023", f'unrecognized parameter "{option.defname}"')
    return False


def _switch(option: Node) -> bool:
    try:
        return option_boolean(option)
    except SqlError:
        message = f'invalid value for boolean option "{option.defname}"'
        raise SqlError("22023", message, offset_to_position(option.location)) from None


# --- history -----------------------------------------------------------------------------------


def _text(option: Node) -> str:
    value = option.arg
    if is_a(value, ast.Integer):
        return str(value.ival or 0)
    if is_a(value, ast.String, ast.Float):
        return str(value.sval if is_a(value, ast.String) else value.fval)
    if is_a(value, ast.TypeName) and len(value.names) == 1:
        return quoted_name(value.names[0].sval)
    message = f'invalid value for parameter "{option.defname}"'
    raise SqlError("22023", message, offset_to_position(option.location))


def _history(option: Node) -> int:
    text = _text(option)
    interval = parse_interval(text)
    days = interval.months * _DAYS_PER_MONTH + interval.days
    micros = days * _DAY_US + interval.micros
    if not 0 <= micros <= _HISTORY_US_MAX:
        message = f'value "{text}" out of bounds for parameter "history"'
        raise SqlError("22023", message, offset_to_position(option.location))
    return micros


# --- clustering --------------------------------------------------------------------------------


def partition_key(node: Node) -> tuple[NamedColumn, ...] | None:
    """The columns of PARTITION BY RANGE or LIST, or None. Raises for unsupported forms."""
    if node.partbound is not None:
        raise not_supported("PARTITION OF", offset_to_position(node.relation.location), hint=_HINT)
    spec = node.partspec
    if spec is None:
        return None
    if spec.strategy.value == "h":
        raise not_supported("PARTITION BY HASH", offset_to_position(spec.location), hint=_HINT)
    if spec.strategy.value == "l" and len(spec.partParams) > 1:
        message = 'cannot use "list" partition strategy with more than one column'
        raise SqlError("42P17", message)
    for element in spec.partParams:
        if element.expr is not None:
            raise not_supported(
                "an expression in a partition key", offset_to_position(element.location)
            )
        if element.collation or element.opclass:
            raise not_supported(
                "COLLATE or an operator class here", offset_to_position(element.location)
            )
    return tuple(
        [(element.name, offset_to_position(element.location)) for element in spec.partParams]
    )


def _names(text: str) -> tuple[str, ...]:
    """A list of identifiers; unquoted ones are folded."""
    names: list[str] = []
    place, more = 0, True
    while more:
        match = _NAME.match(text, place)
        if match is None:
            raise SqlError("22023", 'invalid value for parameter "cluster_by"')
        names.append(fold_identifier(match[2]) if match[1] is None else match[1].replace('""', '"'))
        place, more = match.end(), match[3] == ","
    return tuple(names)


def _clustered(table: Table, names: Sequence[NamedColumn]) -> tuple[int, ...]:
    """The numbers of the columns (O1)."""
    if len(names) > CLUSTERED_MAX:
        raise SqlError("54011", f"cannot partition using more than {CLUSTERED_MAX} columns")
    numbers: list[int] = []
    for name, place in names:
        column = table.column(name)
        if column is None:
            message = f'column "{name}" named in partition key does not exist'
            raise SqlError("42703", message, place)
        _check_column(column, place)
        numbers.append(table.number_of(table.columns.index(column)))
    return tuple(dict.fromkeys(numbers))


def _check_column(column: Column, place: int | None) -> None:
    if column.generated is not None:
        detail = f'Column "{column.name}" is a generated column.'
        raise SqlError("42P17", "cannot use generated column in partition key", place, detail)
    if column.type.name not in CLUSTERING_TYPES:
        raise not_supported(f"clustering by a column of type {column.type.name}", place)


def refuse_clustering_column(
    table: Table, ordinal: int, what: str, place: int | None = None
) -> None:
    """Refuse to drop or retype a clustering column."""
    if table.number_of(ordinal) in table.clustered:
        name = table.columns[ordinal].name
        message = (
            f'cannot {what} column "{name}" because it is part of the partition key of relation '
            f'"{table.name}"'
        )
        raise SqlError("42P16", message, place, hint="ALTER TABLE ... RESET (cluster_by) ends it.")
