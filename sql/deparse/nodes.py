"""Analyzed expressions and queries, shaped as PostgreSQL stores them (primnodes.h).

INVARIANTS
  N1  every expression has its type; a conversion that PostgreSQL adds is a `Cast` node.
  N2  a column reference holds its range table entry itself, so it needs no level. Two references
      are equal if they name one column of one entry.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sql.deparse.types import BOOL_TYPE, INT4_TYPE, RECORD_TYPE, Type


@dataclass(frozen=True, slots=True)
class Var:
    """A column of a range table entry, by its place from 0."""

    entry: "Entry"
    at: int
    type: Type


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant by the text that its type's output function writes; None is NULL."""

    text: str | None
    type: Type


@dataclass(frozen=True, slots=True)
class Cast:
    """RelabelType, CoerceViaIO, ArrayCoerceExpr, CoerceToDomain and calls that are casts."""

    arg: "TypedExpr"
    type: Type
    implicit: bool
    calls: bool = False
    """Whether PostgreSQL has a FuncExpr there."""


@dataclass(frozen=True, slots=True)
class FuncExpr:
    """FuncExpr; `sql_syntax`: written with keywords, as EXTRACT(.. FROM ..) is; `extension`: the
    one that has the function.
    """

    name: str
    args: tuple["TypedExpr", ...]
    type: Type
    sql_syntax: bool = False
    variadic: bool = False
    names: tuple[str | None, ...] = ()
    returns_set: bool = False
    extension: str | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """OpExpr, and DistinctExpr under the name IS DISTINCT FROM."""

    name: str
    args: tuple["TypedExpr", ...]
    type: Type


@dataclass(frozen=True, slots=True)
class ArrayOperation:
    """ScalarArrayOpExpr: `x = ANY (array)`."""

    name: str
    any: bool
    left: "TypedExpr"
    right: "TypedExpr"
    type: Type = BOOL_TYPE


@dataclass(frozen=True, slots=True)
class Boolean:
    """BoolExpr: `AND`, `OR` or `NOT`."""

    name: str
    args: tuple["TypedExpr", ...]
    type: Type = BOOL_TYPE


@dataclass(frozen=True, slots=True)
class NullOrBooleanTest:
    """NullTest and BooleanTest: `IS NOT NULL`, `IS TRUE`."""

    what: str
    arg: "TypedExpr"
    type: Type = BOOL_TYPE


@dataclass(frozen=True, slots=True)
class Listed:
    """COALESCE, GREATEST, LEAST, NULLIF, ROW and ARRAY over a list."""

    name: str
    args: tuple["TypedExpr", ...]
    type: Type


@dataclass(frozen=True, slots=True)
class CaseExpr:
    """CaseExpr. With `arg` the conditions are what it is compared with."""

    arg: "TypedExpr | None"
    whens: tuple[tuple["TypedExpr", "TypedExpr"], ...]
    otherwise: "TypedExpr"
    type: Type


@dataclass(frozen=True, slots=True)
class Keyword:
    """SQLValueFunction, and VALUE of a domain's check."""

    text: str
    type: Type


@dataclass(frozen=True, slots=True)
class Subscript:
    """SubscriptingRef: each part is an index, or the two bounds of a slice."""

    arg: "TypedExpr"
    parts: tuple[tuple["TypedExpr | None", ...], ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Collate:
    """CollateExpr."""

    arg: "TypedExpr"
    collation: str
    type: Type


@dataclass(frozen=True, slots=True)
class SortItem:
    """SortGroupClause: `descending` and `nulls_first` as they are, not as they were written."""

    expr: "TypedExpr"
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class WindowClause:
    """WindowClause."""

    name: str | None
    refers_to: str | None = None
    partition: tuple["TypedExpr", ...] = ()
    order: tuple[SortItem, ...] = ()
    frame: int = 0
    start: "TypedExpr | None" = None
    end: "TypedExpr | None" = None


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """Aggref and WindowFunc; `direct`: how many arguments come before WITHIN GROUP."""

    name: str
    args: tuple["TypedExpr", ...]
    type: Type
    star: bool = False
    distinct: bool = False
    order: tuple[SortItem, ...] = ()
    within: bool = False
    where: "TypedExpr | None" = None
    over: WindowClause | None = None
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class GroupingExpr:
    """GroupingFunc."""

    args: tuple["TypedExpr", ...]
    type: Type = INT4_TYPE


@dataclass(frozen=True, slots=True)
class SubLink:
    """SubLink: `kind` is EXISTS, ANY, ALL, EXPR, ARRAY or ROW; `left` what it is compared with."""

    kind: str
    query: "QueryTree"
    type: Type
    left: tuple["TypedExpr", ...] = ()
    operator: str = ""


@dataclass(frozen=True, slots=True)
class RowComparison:
    """RowCompareExpr."""

    name: str
    left: tuple["TypedExpr", ...]
    right: tuple["TypedExpr", ...]
    type: Type = BOOL_TYPE


@dataclass(frozen=True, slots=True)
class WholeRowVar:
    """A whole-row Var."""

    entry: "Entry"
    type: Type = RECORD_TYPE


TypedExpr: TypeAlias = (
    Var | Constant | Cast | FuncExpr | Operation | ArrayOperation | Boolean | NullOrBooleanTest
    | Listed | CaseExpr | Keyword | Subscript | Collate | AggregateCall | GroupingExpr | SubLink
    | RowComparison | WholeRowVar
)  # fmt: skip


# --- queries -----------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Entry:
    """A range table entry. `columns`: names as the query knows them, None: none such any more.

    `real`: what the columns are called below (relations: now). `merged`: of a join, what each
    column is.
    """

    kind: str
    columns: list[str]
    types: list[Type]
    real: list[str | None]
    alias: str | None = None
    alias_columns: tuple[str, ...] = ()
    name: str = ""
    schema: str = ""
    query: "QueryTree | None" = None
    functions: tuple[TypedExpr, ...] = ()
    definitions: tuple[tuple[str, Type], ...] = ()
    values: "Sequence[Sequence[TypedExpr]]" = ()
    ordinality: bool = False
    lateral: bool = False
    only: bool = False
    sample: "tuple[str, tuple[TypedExpr, ...], TypedExpr | None] | None" = None
    merged: list[TypedExpr] = field(default_factory=list[TypedExpr])
    shown: str | None = None
    """The name that the printer chooses; None: a join without alias."""
    relation_name: str = ""
    """What a relation is called now."""
    shown_columns: list[str | None] = field(default_factory=list[str | None])
    prints_columns: bool = False
    oid: int = 0
    numbers: tuple[int, ...] = ()
    """Of a relation, and the attnum of each column."""
    later: list[str] = field(default_factory=list[str])
    """Columns of the relation that the query does not know."""
    later_shown: list[str] = field(default_factory=list[str])


@dataclass(slots=True, eq=False)
class JoinTree:
    """JoinExpr; `using`: the names of its merged columns, `pairs`: what is merged."""

    kind: str
    left: "FromNode"
    right: "FromNode"
    entry: Entry
    condition: TypedExpr | None = None
    using: tuple[str, ...] = ()
    pairs: list[tuple[TypedExpr, TypedExpr]] = field(
        default_factory=list[tuple[TypedExpr, TypedExpr]]
    )
    using_alias: str | None = None


FromNode: TypeAlias = Entry | JoinTree


@dataclass(slots=True)
class ResultColumn:
    """A column of the result; `junk`: only sorted or grouped by."""

    name: str
    expr: TypedExpr
    junk: bool = False


@dataclass(slots=True)
class GroupingSet:
    """`kind`: EMPTY, SIMPLE, ROLLUP, CUBE or SETS."""

    kind: str
    items: "list[TypedExpr | GroupingSet]"


@dataclass(slots=True)
class CommonTable:
    """A WITH query. `recursion`: types of the columns while its own query is analyzed."""

    name: str
    columns: tuple[str, ...]
    materialized: str
    query: "QueryTree | None" = None
    names: list[str] = field(default_factory=list[str])
    types: list[Type] = field(default_factory=list[Type])


@dataclass(slots=True)
class SetOperation:
    """A node of a tree of set operations; leaves are queries."""

    name: str
    all: bool
    left: "SetOperation | QueryTree"
    right: "SetOperation | QueryTree"


@dataclass(slots=True, eq=False)
class QueryTree:
    """A SELECT after analysis (QueryTree)."""

    targets: list[ResultColumn] = field(default_factory=list[ResultColumn])
    table: list[Entry] = field(default_factory=list[Entry])
    sources: list[FromNode] = field(default_factory=list[FromNode])
    where: TypedExpr | None = None
    group: list[TypedExpr] = field(default_factory=list[TypedExpr])
    grouping_sets: list[GroupingSet] = field(default_factory=list[GroupingSet])
    group_distinct: bool = False
    having: TypedExpr | None = None
    windows: list[WindowClause] = field(default_factory=list[WindowClause])
    distinct: bool = False
    distinct_on: list[TypedExpr] = field(default_factory=list[TypedExpr])
    order: list[SortItem] = field(default_factory=list[SortItem])
    offset: TypedExpr | None = None
    limit: TypedExpr | None = None
    with_ties: bool = False
    locking: list[str] = field(default_factory=list[str])
    recursive: bool = False
    ctes: list[CommonTable] = field(default_factory=list[CommonTable])
    operation: SetOperation | None = None

    @property
    def columns(self) -> list[ResultColumn]:
        """What it yields."""
        return [target for target in self.targets if not target.junk]
