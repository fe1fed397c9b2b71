"""Tell how much the functions of a plan may be given on the event loop, where everybody waits.

    plan ─▶ ComputedValues ─ parameters, rows ─▶ few bytes: computed here
                                              └▶ many, or a result may grow: in a thread, before
                                                 anything has happened

What a function costs follows from how long its arguments are. Values that pass through unchanged
cost nothing, however long they are: those that no function reads are not counted.

INVARIANTS
  V1  the bytes that are counted are those of all stored columns and parameters that a function
      reads, also by way of other functions and of columns that a plan computes.
  V2  a result that may be much longer than the arguments is said to grow: by a count or a width
      among them, or since it is the square of their length and another function squares it again.
      Functions that try many ways (back-references, paths) count among those that grow.
  V3  who has no function but comparisons and functions of numbers and times is not counted at all.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa

from sql.functions.table import COMPARISON_OPERATORS, Function, FunctionKind
from sql.plan.nodes import (
    AnyAll,
    Call,
    ColumnId,
    ColumnRef,
    Const,
    Expr,
    GroupBy,
    Param,
    Plan,
    Project,
    RelationId,
    Scan,
    SetScan,
    Subquery,
    Window,
)
from sql.plan.traverse import child_expressions, walk
from sql.types.sql_type import SqlType, Value
from storage.batch import ShardView
from storage.unencoded_rows import UnencodedRows

COMPUTED_BYTES_MAX: Final = 4_096
"""Of all values that the functions of a plan read: one microsecond each for a regular expression.
Larger: longer stalls of the loop. Smaller: more statements pay for a thread, some 0.2 ms."""

LINEAR_BYTES_MAX: Final = 16_384
"""The same for functions that cost no more than a copy (`compute/access/bounded_plans.py`)."""

ROW_BYTES_MORE: Final = 64
"""For each of many rows, whose number others bound, as many bytes more."""

_NODES_MAX: Final = 2_000
"""Of a plan with functions. Larger: as one whose values grow."""

_LEAVES_MAX: Final = 1_000
"""Values that a result is put together from, with repetition."""

_WIDTH_MAX: Final = 4_096
"""Of a char(n), which functions see with its blanks."""

_GROWING: Final = frozenset(
    {"repeat", "lpad", "rpad", "array_fill", "factorial", "gamma", "lgamma", "format",
     "string_agg", "array_agg", "char_padded"}
)  # fmt: skip
_SQUARING: Final = frozenset({"replace", "regexp_replace", "array_to_string", "array_join"})
_PATTERNS: Final = frozenset(
    {"~", "!~", "~*", "!~*", "substring", "regexp_replace", "regexp_match", "regexp_matches",
     "regexp_like", "regexp_count", "regexp_instr", "regexp_substr", "regexp_split_to_array",
     "regexp_split_to_table"}
)  # fmt: skip
"""Functions whose second argument is, or may be, a regular expression."""

_FIXED: Final = frozenset(
    {"bool", "int2", "int4", "int8", "oid", "float4", "float8", "numeric", "date", "time", "timetz",
     "timestamp", "timestamptz", "interval", "uuid", "char", "name", "enum"}
)  # fmt: skip
"""Types whose values are short: numbers have 38 digits at most."""

_COPIED: Final = frozenset({"text", "varchar", "bpchar", "bytea"})
_PASSING: Final = frozenset({"assign", "narrow"})

_Read: TypeAlias = tuple[set[int], set[ColumnId]]

_Size: TypeAlias = tuple[int, int]
"""How a result grows: by which power of the arguments' length, and of how many of them."""

_ENDLESS: Final[_Size] = (3, 1)


@dataclass(frozen=True, slots=True)
class _ScanRead:
    """Columns of a scan: by ordinal, and by their place in its rows."""

    relation: RelationId
    ordinals: tuple[int, ...]
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ComputedValues:
    """What the functions of a plan read, and how many bytes of it are few. `parameters`: by place;
    `scans`: with a column that is read.
    """

    most: int
    may_grow: bool
    parameters: tuple[int, ...]
    scans: tuple[_ScanRead, ...]

    @property
    def is_bounded(self) -> bool:
        """Whether nothing has to be looked at: functions read neither parameters nor columns."""
        return not (self.may_grow or self.parameters or self.scans)

    def of_parameters(self, parameters: Sequence[Value]) -> int:
        """The bytes of parameters that functions read."""
        return sum([_size(parameters[place]) for place in self.parameters])

    def of_row(self, row: Sequence[Value]) -> int:
        """The same of a row of the plan's only scan."""
        return sum([_size(row[place]) for scan in self.scans for place in scan.places])

    def of_views(self, views: Mapping[RelationId, ShardView]) -> int:
        """The same of inputs in memory, less what rows may have since they are many."""
        return sum([_of_view(scan, views[scan.relation]) for scan in self.scans])

    def are_few_in_tables(
        self, parameters: Sequence[Value], tables: Mapping[RelationId, pa.Table]
    ) -> bool:
        """The same over tables with all columns of their relations."""
        if self.may_grow:
            return False
        given = self.of_parameters(parameters)
        for scan in self.scans:
            rows = tables[scan.relation]
            size = sum([rows.column(ordinal).nbytes for ordinal in scan.ordinals])
            given += _beyond(size, rows.num_rows)
        return given <= self.most

    def are_few(self, parameters: Sequence[Value]) -> bool:
        """Whether a plan without inputs may be evaluated on the loop."""
        return not self.may_grow and self.of_parameters(parameters) <= self.most

    def are_few_in_rows(self, parameters: Sequence[Value], rows: Sequence[Sequence[Value]]) -> bool:
        """The same of a plan with one scan, over these rows."""
        if self.may_grow:
            return False
        given = self.of_parameters(parameters)
        return given + _beyond(sum(map(self.of_row, rows)), len(rows)) <= self.most

    def are_few_in_scans(self, scans: Sequence[tuple[Scan, Sequence[Sequence[Value]]]]) -> bool:
        """The same of a plan without parameters, over rows of its scans."""
        if self.may_grow:
            return False
        size = 0
        for scan, rows in scans:
            read = {
                at for one in self.scans if one.relation == scan.relation for at in one.ordinals
            }
            places = [place for place, at in enumerate(scan.ordinals) if at in read]
            found = sum([_size(row[place]) for row in rows for place in places])
            size += _beyond(found, len(rows))
        return size <= self.most

    def are_few_in(
        self, parameters: Sequence[Value], views: Mapping[RelationId, ShardView]
    ) -> bool:
        """The same of any plan, over inputs in memory."""
        if self.may_grow:
            return False
        return self.of_parameters(parameters) + self.of_views(views) <= self.most


def computed_values(plan: Plan, most: int = COMPUTED_BYTES_MAX) -> ComputedValues | None:
    """What the functions of a plan read; None if they cost little whatever it is (V3)."""
    found = _Functions(plan)
    if not found.reading:
        return None
    if found.may_grow():
        return ComputedValues(most, True, (), ())
    parameters, columns = found.read()
    scans: list[_ScanRead] = []
    for node in found.scans:
        places = [at for at, column in enumerate(node.columns) if column.id in columns]
        if places:
            ordinals = tuple([node.ordinals[place] for place in places])
            scans.append(_ScanRead(node.relation, ordinals, tuple(places)))
    given = [index - 1 for index in sorted(parameters)]
    made = ComputedValues(most - found.constant_bytes(), False, tuple(given), tuple(scans))
    if made.most < 0:
        return ComputedValues(most, True, (), ())
    return None if made.is_bounded else made


def grows(expr: Expr) -> bool:
    """Whether a call may give much, or take long, for arguments that are short (V2)."""
    if not isinstance(expr, Call | AnyAll):
        return False
    function = expr.function
    if function.kind is not FunctionKind.CAST and function.name in _GROWING:
        return True
    if "jsonpath" in function.args or any(map(_is_wide, (expr.type, *map(_type_of, expr.args)))):
        return True
    return function.name in _PATTERNS and len(expr.args) > 1 and _tries_ways(expr.args[1])


def computes_much(root: Plan | Expr) -> bool:
    """Whether a function of something may give much, or take long, at any depth."""
    found = _Functions(root)
    return bool(found.reading) and found.may_grow()


def _type_of(expr: Expr) -> SqlType:
    return expr.type


def _is_wide(type_: SqlType) -> bool:
    return type_.name == "bpchar" and (type_.length or 0) > _WIDTH_MAX


def _tries_ways(pattern: Expr) -> bool:
    """Whether a regular expression may have back-references."""
    if isinstance(pattern, Call) and len(pattern.args) == 1:
        return _tries_ways(pattern.args[0])
    if not isinstance(pattern, Const):
        return not pattern.type.name.startswith("int")
    text = pattern.value
    return isinstance(text, str) and any(f"\\{digit}" in text for digit in "123456789")


def _is_cheap(function: Function) -> bool:
    """Whether it costs no more than a comparison (V3)."""
    types = {*function.args, function.result}
    if types <= _FIXED:
        return True
    if function.kind is FunctionKind.OPERATOR and function.name in COMPARISON_OPERATORS:
        return types <= _FIXED | _COPIED
    is_passed = function.kind is FunctionKind.CAST or function.name in _PASSING
    return is_passed and types <= _FIXED | _COPIED and function.result in _COPIED


class _Functions:
    """The functions of a plan or expression that are counted."""

    def __init__(self, root: Plan | Expr) -> None:
        self.reading: list[Expr] = []
        """Calls that are counted, each with all that is below it."""
        self.scans: list[Scan] = []
        self._growing = False
        self._nodes = 0
        self._parameters: set[int] = set()
        self._computed: dict[ColumnId, Expr] = {}
        for node in walk(root):
            self._nodes += 1
            self._look_at(node)

    def _look_at(self, node: Plan | Expr) -> None:
        match node:
            case Call() | AnyAll():
                if isinstance(node, AnyAll) or grows(node) or not _is_cheap(node.function):
                    self.reading.append(node)
            case Param():
                self._parameters.add(node.index)
            case Scan():
                self.scans.append(node)
            case Project():
                for column, expr in zip(node.columns, node.exprs, strict=True):
                    # A column that passes through may keep its number.
                    if not (isinstance(expr, ColumnRef) and expr.id == column.id):
                        self._computed[column.id] = expr
            case GroupBy():
                self._aggregated([call.function for call in node.aggregates])
                self.reading += [arg for call in node.aggregates for arg in call.args]
            case Window() | SetScan():
                self._aggregated([call.function for call in node.calls])
                self.reading += [arg for call in node.calls for arg in call.args]
            case _:
                pass

    def _aggregated(self, called: Sequence[Function]) -> None:
        if any(function.name in _GROWING for function in called):
            self._growing = True

    def may_grow(self) -> bool:
        """V2."""
        if self._growing or self._nodes > _NODES_MAX or any(map(grows, self.reading)):
            return True
        sizes = _Sizes(self._computed)
        found = [sizes.of(expr) for expr in self.reading]
        return any(power > 2 or leaves > _LEAVES_MAX for power, leaves in found)

    def read(self) -> _Read:
        """The parameters and columns that are counted (V1)."""
        leaves = list(self._leaves())
        parameters = {leaf.index for leaf in leaves if isinstance(leaf, Param) and _is_long(leaf)}
        columns = {leaf.id for leaf in leaves if isinstance(leaf, ColumnRef) and _is_long(leaf)}
        every = [column for scan in self.scans for column in scan.columns]
        is_hidden = any(isinstance(leaf, Subquery) for leaf in leaves)
        if is_hidden or not columns <= {column.id for column in every}:
            # A set, a group or a subquery lies between: all that comes in may be read.
            columns = {column.id for column in every if column.type.name not in _FIXED}
            parameters = self._parameters
        return parameters, columns

    def constant_bytes(self) -> int:
        """Of the constants among them."""
        return sum([_size(leaf.value) for leaf in self._leaves() if isinstance(leaf, Const)])

    def _leaves(self) -> Iterator[Expr]:
        left, met, defined = [*self.reading], set[int](), set[ColumnId]()
        kept: list[Expr] = []
        while left:
            expr = left.pop()
            if id(expr) in met:
                continue
            met.add(id(expr))
            kept.append(expr)  # so that its identity is not given to another
            if isinstance(expr, ColumnRef) and expr.id in self._computed:
                if expr.id not in defined:
                    defined.add(expr.id)
                    left.append(self._computed[expr.id])
                continue
            parts = child_expressions(expr)
            left += parts
            if not parts or isinstance(expr, Subquery):
                yield expr


def _is_long(leaf: Param | ColumnRef) -> bool:
    return leaf.type.name not in _FIXED


class _Sizes:
    """How results grow (V2). `computed`: what columns stand for."""

    def __init__(self, computed: Mapping[ColumnId, Expr]) -> None:
        self._computed = computed
        self._known: dict[int, tuple[Expr, _Size]] = {}
        """By identity, with the expression, so that this is not given to another one."""

    def of(self, root: Expr) -> _Size:
        """Of an expression; of one that stands for itself as if it grew."""
        left: list[tuple[Expr, Sequence[Expr]]] = [(root, self._parts(root))]
        begun = set[int]()
        while left:
            expr, parts = left[-1]
            missing = [part for part in parts if id(part) not in self._known]
            if missing and id(expr) in begun:
                self._known |= {id(part): (part, _ENDLESS) for part in missing}
            elif missing:
                begun.add(id(expr))
                left += [(part, self._parts(part)) for part in missing]
                continue
            left.pop()
            self._known[id(expr)] = expr, _joined(expr, [self._known[id(p)][1] for p in parts])
        return self._known[id(root)][1]

    def _parts(self, expr: Expr) -> Sequence[Expr]:
        if isinstance(expr, ColumnRef):
            made = self._computed.get(expr.id)
            return () if made is None else (made,)
        return child_expressions(expr)


def _joined(expr: Expr, parts: Sequence[_Size]) -> _Size:
    if expr.type.name in _FIXED:
        return 0, 1
    if not parts:
        return 1, 1
    powers = sorted([power for power, _ in parts], reverse=True)
    leaves = min(sum([count for _, count in parts]), _LEAVES_MAX + 1)
    squares = isinstance(expr, Call) and expr.function.name in _SQUARING
    return sum(powers[:2]) if squares else powers[0], leaves


def _size(value: Value) -> int:
    """About the bytes of a value that may be long."""
    if isinstance(value, str | bytes):
        return len(value)
    return 8 * len(value) + sum(map(_size, value)) if isinstance(value, tuple) else 0


def _of_view(scan: _ScanRead, view: ShardView) -> int:
    size = 0
    for part in view.inline:
        stored = part.stored
        if isinstance(stored, UnencodedRows) and stored.nbytes <= COMPUTED_BYTES_MAX:
            size += stored.nbytes
            continue
        rows = part.rows
        names = [view.schema.names[ordinal] for ordinal in scan.ordinals]
        size += sum([rows.column(name).nbytes for name in names if name in rows.schema.names])
    return _beyond(size, view.inline_rows)


def _beyond(size: int, rows: int) -> int:
    """What is more than many rows may have."""
    return max(0, size - ROW_BYTES_MORE * max(rows - 1, 0))
