"""Analyzed expressions and queries, shaped as PostgreSQL stores them (primnodes.h).

INVARIANTS
  N1  every expression has its type; a conversion that PostgreSQL adds is a `Cast` node.
  N2  a column reference holds its range table entry itself, so it needs no level. Two references
      are equal if they name one column of one entry.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sql.deparse.types import BOOL, INT4, RECORD, Type


@dataclass(frozen=True, slots=True)
class Var:
    """A column of a range table entry, by its place from 0."""

    entry: "Entry"
    at: int
    type: Type


@dataclass(frozen=True, slots=True)
class Const:
    """A constant by the text that its type's output function writes; None is NULL."""

    text: str | None
    type: Type


@dataclass(frozen=True, slots=True)
class Cast:
    """RelabelType, CoerceViaIO, ArrayCoerceExpr, CoerceToDomain and calls that are casts."""

    arg: "Expr"
    type: Type
    implicit: bool
    calls: bool = False
    """Whether PostgreSQL has a FuncExpr there."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """FuncExpr; `sql_syntax`: written with keywords, as EXTRACT(.. FROM ..) is."""

    name: str
    args: tuple["Expr", ...]
    type: Type
    sql_syntax: bool = False
    variadic: bool = False
    names: tuple[str | None, ...] = ()
    returns_set: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """OpExpr, and DistinctExpr under the name IS DISTINCT FROM."""

    name: str
    args: tuple["Expr", ...]
    type: Type


@dataclass(frozen=True, slots=True)
class ArrayOperation:
    """ScalarArrayOpExpr: `x = ANY (array)`."""

    name: str
    any: bool
    left: "Expr"
    right: "Expr"
    type: Type = BOOL


@dataclass(frozen=True, slots=True)
class Boolean:
    """BoolExpr: `AND`, `OR` or `NOT`."""

    name: str
    args: tuple["Expr", ...]
    type: Type = BOOL


@dataclass(frozen=True, slots=True)
class Test:
    """NullTest and BooleanTest: `IS NOT NULL`, `IS TRUE`."""

    what: str
    arg: "Expr"
    type: Type = BOOL


@dataclass(frozen=True, slots=True)
class Listed:
    """COALESCE, GREATEST, LEAST, NULLIF, ROW and ARRAY over a list."""

    name: str
    args: tuple["Expr", ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Case:
    """CaseExpr. With `arg` the conditions are what it is compared with."""

    arg: "Expr | None"
    whens: tuple[tuple["Expr", "Expr"], ...]
    otherwise: "Expr"
    type: Type


@dataclass(frozen=True, slots=True)
class Keyword:
    """SQLValueFunction, and VALUE of a domain's check."""

    text: str
    type: Type


@dataclass(frozen=True, slots=True)
class Subscript:
    """SubscriptingRef: each part is an index, or the two bounds of a slice."""

    arg: "Expr"
    parts: tuple[tuple["Expr | None", ...], ...]
    type: Type


@dataclass(frozen=True, slots=True)
class Collate:
    """CollateExpr."""

    arg: "Expr"
    collation: str
    type: Type


@dataclass(frozen=True, slots=True)
class SortItem:
    """SortGroupClause: `descending` and `nulls_first` as they are, not as they were written."""

    expr: "Expr"
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """WindowClause."""

    name: str | None
    refers_to: str | None = None
    partition: tuple["Expr", ...] = ()
    order: tuple[SortItem, ...] = ()
    frame: int = 0
    start: "Expr | None" = None
    end: "Expr | None" = None


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """Aggref and WindowFunc; `direct`: how many arguments come before WITHIN GROUP."""

    name: str
    args: tuple["Expr", ...]
    type: Type
    star: bool = False
    distinct: bool = False
    order: tuple[SortItem, ...] = ()
    within: bool = False
    where: "Expr | None" = None
    over: Window | None = None
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class Grouping:
    """GroupingFunc."""

    args: tuple["Expr", ...]
    type: Type = INT4


@dataclass(frozen=True, slots=True)
class SubLink:
    """SubLink: `kind` is EXISTS, ANY, ALL, EXPR, ARRAY or ROW; `left` what it is compared with."""

    kind: str
    query: "Query"
    type: Type
    left: tuple["Expr", ...] = ()
    operator: str = ""


@dataclass(frozen=True, slots=True)
class RowComparison:
    """RowCompareExpr."""

    name: str
    left: tuple["Expr", ...]
    right: tuple["Expr", ...]
    type: Type = BOOL


@dataclass(frozen=True, slots=True)
class WholeRow:
    """A whole-row Var."""

    entry: "Entry"
    type: Type = RECORD


Expr: TypeAlias = (
    Var | Const | Cast | FunctionCall | Operation | ArrayOperation | Boolean | Test | Listed | Case
    | Keyword | Subscript | Collate | AggregateCall | Grouping | SubLink | RowComparison | WholeRow
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
    query: "Query | None" = None
    functions: tuple[Expr, ...] = ()
    definitions: tuple[tuple[str, Type], ...] = ()
    values: "Sequence[Sequence[Expr]]" = ()
    ordinality: bool = False
    lateral: bool = False
    only: bool = False
    sample: "tuple[str, tuple[Expr, ...], Expr | None] | None" = None
    merged: list[Expr] = field(default_factory=list[Expr])
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
class Join:
    """JoinExpr; `using`: the names of its merged columns, `pairs`: what is merged."""

    kind: str
    left: "FromNode"
    right: "FromNode"
    entry: Entry
    condition: Expr | None = None
    using: tuple[str, ...] = ()
    pairs: list[tuple[Expr, Expr]] = field(default_factory=list[tuple[Expr, Expr]])
    using_alias: str | None = None


FromNode: TypeAlias = Entry | Join


@dataclass(slots=True)
class Target:
    """A column of the result; `junk`: only sorted or grouped by."""

    name: str
    expr: Expr
    junk: bool = False


@dataclass(slots=True)
class GroupingSet:
    """`kind`: EMPTY, SIMPLE, ROLLUP, CUBE or SETS."""

    kind: str
    items: "list[Expr | GroupingSet]"


@dataclass(slots=True)
class CommonTable:
    """A WITH query. `recursion`: types of the columns while its own query is analyzed."""

    name: str
    columns: tuple[str, ...]
    materialized: str
    query: "Query | None" = None
    names: list[str] = field(default_factory=list[str])
    types: list[Type] = field(default_factory=list[Type])


@dataclass(slots=True)
class SetOperation:
    """A node of a tree of set operations; leaves are queries."""

    name: str
    all: bool
    left: "SetOperation | Query"
    right: "SetOperation | Query"


@dataclass(slots=True, eq=False)
class Query:
    """A SELECT after analysis (Query)."""

    targets: list[Target] = field(default_factory=list[Target])
    table: list[Entry] = field(default_factory=list[Entry])
    sources: list[FromNode] = field(default_factory=list[FromNode])
    where: Expr | None = None
    group: list[Expr] = field(default_factory=list[Expr])
    grouping_sets: list[GroupingSet] = field(default_factory=list[GroupingSet])
    group_distinct: bool = False
    having: Expr | None = None
    windows: list[Window] = field(default_factory=list[Window])
    distinct: bool = False
    distinct_on: list[Expr] = field(default_factory=list[Expr])
    order: list[SortItem] = field(default_factory=list[SortItem])
    offset: Expr | None = None
    limit: Expr | None = None
    with_ties: bool = False
    locking: list[str] = field(default_factory=list[str])
    recursive: bool = False
    ctes: list[CommonTable] = field(default_factory=list[CommonTable])
    operation: SetOperation | None = None

    @property
    def columns(self) -> list[Target]:
        """What it yields."""
        return [target for target in self.targets if not target.junk]
