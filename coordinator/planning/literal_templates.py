"""Find statements that differ in their literals only, so that they share one bound statement.

    insert into t values (7, 'a')  ─ split ─▶ insert into t values (|,|), int4 text ─▶ Template
                                   └────────▶ 7, 'a'  ─ read ─▶ values of its parameters

The statement of a template has `$n` in place of the literals. It is made when a shape is seen for
the second time, and only if it surely means the same.

INVARIANTS
  T1  with the literals of the text that it was made from, the template's plan is the plan of that
      text. What a literal's value decides when a statement is bound is no template at all.
  T2  a template is good for one catalog and one setting: its parameters' types come from them. All
      templates are of the newest catalog; they go with it, so that no older one is kept alive.
  T3  what is computed of literals alone is computed for each text, as planning does, also if no row
      asks for it: a text for which that fails is left to itself.
  T4  a literal that cannot be read, or that the clock decides about, is left to the statement's
      own text: the error says its place.
  T5  memory is bounded: texts by TEXT_MAX, shapes by SHAPES_MAX, each with SETTINGS_MAX templates.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final, TypeAlias

from compute.computed_values import computes_much
from compute.reference.executor import PreparedPlan, evaluate
from compute.simple_plans import is_row_by_row
from coordinator.pgwire.values import decode_value
from coordinator.planning.lru_cache import LruMapping
from coordinator.planning.planner import plan_prepared
from sql.binder.expressions.session_calls import CLOCK_FUNCTIONS
from sql.catalog.catalog import Catalog
from sql.errors import SqlError
from sql.parser.parse import Statement
from sql.plan.constant_rows import rows_as_conditions
from sql.plan.nodes import (
    Call,
    ColumnId,
    ColumnRef,
    Const,
    Expr,
    InRows,
    Param,
    Plan,
    PlanColumn,
    Subquery,
    Values,
)
from sql.plan.traverse import (
    child_expressions,
    expression_nodes,
    rewrite_children,
    rewrite_plan,
)
from sql.statements.bound import (
    BoundQuery,
    BoundStatement,
    Modify,
    ModifyKind,
    OutputColumn,
    ParameterizedStatement,
)
from sql.statements.runtime_parameters import RuntimeParameter
from sql.types.sql_type import SqlType, Value, plain_type
from sql.types.styles import Styles
from sql.types.text_input import CLOCK_DEPENDENT_TYPES

TEXT_MAX: Final = 16_384
"""Characters. Larger: one INSERT of more rows; more memory."""
SHAPES_MAX: Final = 1_000
SETTINGS_MAX: Final = 4
"""Templates of one shape, for sessions with other search paths or time zones."""

_INT4: Final = plain_type("int4")
_INT8: Final = plain_type("int8")
_NUMERIC: Final = plain_type("numeric")
_INT4_MAX: Final = 2**31 - 1

LITERAL: Final = re.compile(
    r"'([^'\\]*(?:''[^'\\]*)*)'|(?<![\w.$])(\d{1,18}(?:\.\d{1,18})?)(?![\w.])"
)
"""Strings, and numbers that are no part of a name or of another number."""

_SHAPE: Final = re.compile(r"\s*(?:select|insert|update|delete|values)\b", re.IGNORECASE)

_UNSAFE: Final = re.compile(
    r"--|/\*|[\"'\\$;?\0]|\b(?:order|group|limit|offset|fetch|interval|date|time|"
    r"timestamp|timestamptz|extract|escape|over|union|intersect|except|case|as\s+of|with|meridian|"
    r"pg_temp|for)\b",
    re.IGNORECASE,
)
"""Between literals: comments, quotes, other statements, and words near which a literal's value
decides (an ordinal, a unit, the type of a branch)."""

_PREFIX: Final = re.compile(r"(?:^|\W)(?:[ebxn]|u&)$", re.IGNORECASE)
"""In front of a string it makes another kind of literal of it."""

_PLAIN_TIME: Final = re.compile(r"[\d\s:.+TZ-]*")
"""A time that no clock decides about."""

_HARMLESS: Final = frozenset({"int4::int8", "int4::numeric", "int8::numeric", "varchar::text"})
"""Casts that cannot fail."""

_AS_WRITTEN: Final = frozenset({"text", "varchar"})

Literals: TypeAlias = list[str | int | Decimal]


def split_literals(text: str) -> tuple[str, Literals] | None:
    """The shape of a text and its literals; None for a text that has no templates."""
    if len(text) > TEXT_MAX or _SHAPE.match(text) is None:
        return None
    parts = LITERAL.split(text)
    kinds: list[str] = []
    literals: Literals = []
    for at in range(1, len(parts), 3):
        kind, value = literal_of(parts[at], parts[at + 1])
        kinds.append(kind)
        literals.append(value)
    return "\0".join((*parts[0::3], "".join(kinds))), literals


def literal_of(word: str | None, number: str | None) -> tuple[str, str | int | Decimal]:
    """The kind and the value of what LITERAL has found: a string without its quotes, or a
    number.
    """
    if word is not None:
        return "s", word.replace("''", "'") if "'" in word else word
    assert number is not None, "a literal is one or the other"
    if "." in number:
        return "n", Decimal(number)
    value = int(number)
    return "4" if value <= _INT4_MAX else "8", value


@dataclass(frozen=True, slots=True)
class Template:
    """A statement whose literals are parameters (T1, T2). `columns`: of its rows, if it has any.

    `read`: the places and types of literals that are read as values of their parameters' types.
    """

    statement: Statement
    types: tuple[SqlType, ...]
    columns: tuple[OutputColumn, ...] | None
    setting: tuple[object, ...]
    read: tuple[tuple[int, SqlType], ...]
    constants: PreparedPlan | None
    """One row of what is computed of literals alone, if there is anything that may fail."""

    def values(
        self, literals: Literals, timezone: str, styles: Styles, *, computes: bool = True
    ) -> tuple[Value, ...] | None:
        """The values of the parameters; None for a literal of T4. Raises SqlError (T3, T4).
        `computes` False: whoever runs it computes all constants, and a thread may ask.
        """
        values: list[Value] = [*literals]
        for place, type_ in self.read:
            word = literals[place]
            assert isinstance(word, str), "only strings are read"
            is_time = type_.name in CLOCK_DEPENDENT_TYPES
            if is_time and _PLAIN_TIME.fullmatch(word) is None:
                return None
            values[place] = decode_value(word.encode(), type_, 0, timezone=timezone, styles=styles)
        if computes and self.constants is not None:
            self.constants.rows(values)
        return tuple(values)


@dataclass(slots=True)
class Shape:
    """What is known of a shape. `refused`: its text alone rules templates out. `templates`: by the
    setting that they were made under, the newest first; None: there is none.
    """

    refused: bool
    templates: list[tuple[tuple[object, ...], Template | None]] = field(
        default_factory=list[tuple[tuple[object, ...], Template | None]]
    )

    def is_known(self, setting: tuple[object, ...]) -> bool:
        """Whether there was an attempt to make its template under a setting."""
        return any(known == setting for known, _ in self.templates)

    def template(self, setting: tuple[object, ...]) -> Template | None:
        """The template under a setting, if it was made."""
        for known, template in self.templates:
            if known == setting:
                return template
        return None

    def keep(self, setting: tuple[object, ...], template: Template | None) -> None:
        """What the attempt came to; the oldest one goes (T5)."""
        self.templates = [(setting, template), *self.templates][:SETTINGS_MAX]


class LiteralTemplates:
    """The templates of a server, by shape (T5)."""

    def __init__(self) -> None:
        self._shapes: LruMapping[str, Shape] = LruMapping(SHAPES_MAX)
        self._catalog: Catalog | None = None

    def known_shape(self, key: str, catalog: Catalog) -> Shape | None:
        """What is known of a shape under the newest catalog (T2)."""
        return self._shapes.get(key) if catalog is self._catalog else None

    def shape(self, key: str, catalog: Catalog) -> Shape | None:
        """The same; None the first time, after which it is known."""
        if catalog is not self._catalog:
            self._shapes, self._catalog = LruMapping(SHAPES_MAX), catalog
        found = self._shapes.get(key)
        if found is None:
            self._shapes.put(key, Shape(refused=not _is_safe(key)))
        return found


def _is_safe(key: str) -> bool:
    *pieces, kinds = key.split("\0")
    return (
        bool(kinds)
        and len(pieces) == len(kinds) + 1
        and all(map(str.isascii, pieces))
        and not any(map(_UNSAFE.search, [*pieces[:-1], pieces[-1].rstrip().removesuffix(";")]))
        and not any(
            kind == "s" and _PREFIX.search(piece)
            for piece, kind in zip(pieces[:-1], kinds, strict=True)
        )
    )


def text_with_parameters(key: str) -> tuple[str, tuple[SqlType | None, ...]]:
    """The text of a shape with `$n` in place of its literals, and the types that these have; None
    for strings, whose type the binder finds.
    """
    *pieces, kinds = key.split("\0")
    text = pieces[0] + "".join([f"${n}{piece}" for n, piece in enumerate(pieces[1:], 1)])
    types = {"4": _INT4, "8": _INT8, "n": _NUMERIC, "s": None}
    return text, tuple([types[kind] for kind in kinds])


def read_places(key: str, types: Sequence[SqlType]) -> tuple[tuple[int, SqlType], ...]:
    """The literals of a shape that must be read as values of these types."""
    kinds = key.rpartition("\0")[2]
    return tuple(
        [
            (place, type_)
            for place, (kind, type_) in enumerate(zip(kinds, types, strict=True))
            if kind == "s" and type_.name not in _AS_WRITTEN
        ]
    )


def computed_constants(bound: BoundStatement, literals: int) -> PreparedPlan | None:
    """What a statement computes of its literals alone, which are its first parameters (T3)."""
    found: dict[Expr, None] = {}

    def collect(expr: Expr) -> Expr:
        if _is_of_literals(expr, literals):
            found[expr] = None
            return expr
        return rewrite_children(expr, collect)

    _rewritten(bound, collect)
    failing = [expr for expr in found if not _is_harmless(expr)]
    if not failing:
        return None
    columns = [PlanColumn(ColumnId(at), f"c{at}", expr.type) for at, expr in enumerate(failing)]
    return PreparedPlan(Values(tuple(columns), (tuple(failing),)))


def _is_of_literals(expr: Expr, literals: int) -> bool:
    """Whether an expression is computed of literals and constants, at least one of the former."""
    nodes = list(expression_nodes(expr))
    return any(isinstance(node, Param) for node in nodes) and not any(
        isinstance(node, ColumnRef | Subquery)
        or (isinstance(node, Param) and node.index > literals)
        or (isinstance(node, Call) and node.function.volatility != "immutable")
        for node in nodes
    )


def _is_harmless(expr: Expr) -> bool:
    """Whether it never fails."""
    while isinstance(expr, Call) and expr.function.id in _HARMLESS:
        (expr,) = expr.args
    return isinstance(expr, Param)


def may_have_template(prepared: ParameterizedStatement) -> bool:
    """Whether it depends on nothing but its text, its parameters and the catalog, and constants
    tell an engine or a reader of files no more of it than parameters do.
    """
    if prepared.fails is not None or prepared.uses_now or prepared.rebind or prepared.read:
        return False
    if prepared.filled or prepared.tells_timestamp or not all(map(_is_of_text, prepared.supplied)):
        return False
    # What computes much is led into a thread by its own text.
    return _is_simple(prepared.bound) and not _computes_much(prepared.bound)


def _is_of_text(call: RuntimeParameter) -> bool:
    """Whether a runtime parameter does not depend on literals: the clock, a sequence."""
    if call.kind in CLOCK_FUNCTIONS:
        return True
    return call.kind == "nextval" and call.sequence is not None


def means_the_same(
    parameterized: ParameterizedStatement, values: Sequence[Value], literal: ParameterizedStatement
) -> bool:
    """Whether a statement with parameters is, for these values, the one with literals (T1)."""
    ours, theirs = parameterized.bound, literal.bound
    if not may_have_template(literal) or type(ours) is not type(theirs) or literal.parameters:
        return False
    filled = replace(parameterized, bound=_rewritten(ours, _filling(values)), parameters=())
    try:
        return _computed(plan_prepared(filled)) == _computed(literal)
    except SqlError:
        return False  # its values fail when it runs


def _computes_much(bound: BoundStatement) -> bool:
    """Whether it calls what gives much, or takes long, for short literals."""
    found: list[bool] = []

    def look(expr: Expr) -> Expr:
        found.append(computes_much(expr))
        return expr

    _rewritten(bound, look)
    return any(found)


def _computed(prepared: ParameterizedStatement) -> ParameterizedStatement:
    """The statement with all that is computed of constants alone, which planning leaves in part."""
    return replace(prepared, bound=_rewritten(prepared.bound, _constant))


def _constant(expr: Expr) -> Expr:
    made = rewrite_children(expr, _constant)
    if isinstance(made, InRows):
        return rows_as_conditions(made)
    parts = child_expressions(made)
    if not isinstance(made, Call) or made.function.volatility != "immutable":
        return made
    if not all(isinstance(part, Const) for part in parts):
        return made
    return Const(evaluate(made), made.type)


def _is_simple(bound: BoundStatement) -> bool:
    """Whether it writes rows of VALUES, or changes those of one table one by one; the session sees
    to queries.
    """
    match bound:
        case BoundQuery():
            return True
        case Modify(kind=ModifyKind.INSERT):
            return isinstance(bound.source, Values)
        case Modify(kind=ModifyKind.UPDATE | ModifyKind.DELETE):
            return len(bound.tables) == 1 and is_row_by_row(bound.source)
        case _:
            return False


def _filling(values: Sequence[Value]) -> Callable[[Expr], Expr]:
    """Puts constants in place of parameters; the runtime ones come first then."""

    def constant(expr: Expr) -> Expr:
        if isinstance(expr, Param) and expr.index > len(values):
            return Param(expr.index - len(values), expr.type)
        if isinstance(expr, Param):
            return Const(values[expr.index - 1], expr.type)
        return rewrite_children(expr, constant)

    return constant


def _rewritten(bound: BoundStatement, rewrite: Callable[[Expr], Expr]) -> BoundQuery | Modify:
    """The statement with the expressions of all its plans rewritten."""

    def plan_of(plan: Plan) -> Plan:
        return rewrite_plan(plan, rewrite)

    if isinstance(bound, BoundQuery):
        return replace(bound, plan=plan_of(bound.plan))
    assert isinstance(bound, Modify), "only queries and changes have templates"
    returning = None if bound.returning is None else plan_of(bound.returning)
    conflict = bound.conflict
    if conflict is not None and conflict.update is not None:
        conflict = replace(conflict, update=plan_of(conflict.update))
    return replace(bound, source=plan_of(bound.source), returning=returning, conflict=conflict)
