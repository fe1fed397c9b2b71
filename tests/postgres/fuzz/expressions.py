"""Random typed expressions, as trees that can be made smaller.

INVARIANTS
  X1  an expression has the type that was asked for, in PostgreSQL's reading.
  X2  nothing divides by zero, overflows or fails in a cast on the rows of `schema.py`: which of two
      errors comes first, or whether one comes at all, is up to the planner.
  X3  the same random source gives the same expressions.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

DEPTH_MAX = 4


@dataclass(frozen=True, slots=True)
class Expr:
    """A type, a text with a place `{0}` for each part, the parts."""

    type: str
    template: str
    parts: tuple["Expr", ...] = ()

    @property
    def sql(self) -> str:
        """As SQL."""
        return self.template.format(*(part.sql for part in self.parts))


@dataclass(frozen=True, slots=True)
class Column:
    """A column that is in scope, with its qualifier."""

    name: str
    type: str


LITERALS: dict[str, tuple[str, ...]] = {
    "int4": ("0", "1", "-1", "2", "7", "100", "null::int4", "-13"),
    "int8": ("0::int8", "1::int8", "-5::int8", "3000000000", "null::int8"),
    "numeric": ("0.5", "1.25", "-2.50", "0.0", "100.01", "null::numeric"),
    "float8": ("0::float8", "1.5::float8", "-0.25::float8", "1e10::float8", "null::float8"),
    "text": ("''", "'a'", "'B'", "'abc'", "'x y'", "'ä€'", "null::text", "'%'", "'10'"),
    "bool": ("true", "false", "null::bool"),
    "date": ("date '2024-02-29'", "date '2023-12-31'", "date '1999-01-01'", "null::date"),
    "timestamp": (
        "timestamp '2024-02-29 12:34:56'", "timestamp '2024-01-01 00:00:00'",
        "timestamp '1969-12-31 23:59:59.5'", "null::timestamp",
    ),
}  # fmt: skip
TYPES = tuple(LITERALS)
_NUMBERS = ("int4", "int8", "numeric", "float8")

# Types of the arguments, and the text. `?`: any one type, the same at each place.
_FORMS: dict[str, tuple[tuple[tuple[str, ...], str], ...]] = {
    "int4": (
        (("int4", "int4"), "(({0}) % 1000 + ({1}) % 1000)"),
        (("int4", "int4"), "(({0}) % 1000 - ({1}) % 1000)"),
        (("int4", "int4"), "(({0}) % 100 * (({1}) % 100))"),
        (("int4", "int4"), "(({0}) / nullif({1}, 0))"),
        (("int4", "int4"), "(({0}) % nullif({1}, 0))"),
        (("int4",), "(- (({0}) % 1000))"),
        (("int4",), "abs(({0}) % 1000)"),
        (("text",), "length({0})"),
        (("text", "text"), "strpos({0}, {1})"),
        (("date", "date"), "(({0}) - ({1}))"),
        (("text",), "ascii({0})"),
        (("date",), "extract(year from {0})::int4"),
        (("timestamp",), "extract(dow from {0})::int4"),
        (("float8",), "sign({0})::int4"),
        (("bool",), "({0})::int4"),
        (("int4", "int4"), "(({0}) & ({1}))"),
        (("int4", "int4"), "(({0}) | ({1}))"),
    ),
    "int8": (
        (("int4",), "({0})::int8"),
        (("int8", "int8"), "(({0}) % 1000 + ({1}) % 1000)"),
        (("int8", "int4"), "(({0}) % 1000 * (({1}) % 100))"),
        (("int8", "int8"), "(({0}) / nullif({1}, 0))"),
        (("int8", "int8"), "(({0}) % nullif({1}, 0))"),
    ),
    "numeric": (
        (("numeric", "numeric"), "(({0}) % 1000 + ({1}) % 1000)"),
        (("numeric", "numeric"), "(({0}) % 1000 - ({1}) % 1000)"),
        (("numeric", "int4"), "round(({0}) % 1000 * (({1}) % 100), 2)"),
        (("numeric",), "round({0}, 1)"),
        (("numeric",), "trunc({0})"),
        (("numeric",), "abs({0})"),
        (("numeric",), "ceil({0})"),
        (("numeric",), "floor({0})"),
        (("int4",), "({0})::numeric"),
        (("numeric",), "(- ({0}))"),
        (("date",), "extract(day from {0})"),
        (("numeric",), "({0})::numeric(12,1)"),
    ),
    "float8": (
        (("float8", "float8"), "(({0}) + ({1}))"),
        (("float8", "float8"), "(({0}) - ({1}))"),
        (("float8", "int4"), "(({0}) * ({1}))"),
        (("float8", "float8"), "(({0}) / nullif({1}, 0))"),
        (("int4",), "({0})::float8"),
        (("numeric",), "({0})::float8"),
        (("float8",), "abs({0})"),
        (("float8",), "floor({0})"),
        (("float8",), "round({0})"),
        (("float8",), "sqrt(abs({0}))"),
        (("float8",), "(- ({0}))"),
    ),
    "text": (
        (("text", "text"), "(({0}) || ({1}))"),
        (("text", "int4"), "(({0}) || ({1}))"),
        (("text",), "upper({0})"),
        (("text",), "lower({0})"),
        (("text",), "trim({0})"),
        (("text",), "reverse({0})"),
        (("text", "int4"), "left({0}, ({1}) % 5)"),
        (("text", "int4"), "substr({0}, ({1}) % 5)"),
        (("text", "text", "text"), "replace({0}, {1}, {2})"),
        (("int4",), "({0})::text"),
        (("bool",), "({0})::text"),
        (("date",), "({0})::text"),
        (("text", "int4"), "lpad({0}, abs(({1}) % 7), '*')"),
        (("text", "int4"), "repeat({0}, ({1}) % 3)"),
        (("text", "text"), "concat({0}, {1})"),
        (("text", "int4"), "concat_ws('-', {0}, {1})"),
        (("text",), "md5({0})"),
        (("text",), "({0})::varchar(2)"),
        (("text",), "split_part({0}, ' ', 1)"),
    ),
    "bool": (
        (("bool", "bool"), "(({0}) and ({1}))"),
        (("bool", "bool"), "(({0}) or ({1}))"),
        (("bool",), "(not ({0}))"),
        (("?", "?"), "(({0}) = ({1}))"),
        (("?", "?"), "(({0}) <> ({1}))"),
        (("?", "?"), "(({0}) < ({1}))"),
        (("?", "?"), "(({0}) >= ({1}))"),
        (("?", "?"), "(({0}) is distinct from ({1}))"),
        (("?",), "(({0}) is null)"),
        (("?",), "(({0}) is not null)"),
        (("?", "?", "?"), "(({0}) in (({1}), ({2})))"),
        (("?", "?", "?"), "(({0}) not in (({1}), ({2})))"),
        (("?", "?", "?"), "(({0}) between ({1}) and ({2}))"),
        (("int4", "numeric"), "(({0}) < ({1}))"),
        (("int8", "float8"), "(({0}) >= ({1}))"),
        (("numeric", "float8"), "(({0}) = ({1}))"),
        (("date", "timestamp"), "(({0}) <= ({1}))"),
        (("text",), "(({0}) like 'a%')"),
        (("text",), "(({0}) like '%_b%')"),
        (("text",), "(({0}) ilike '%A%')"),
        (("text",), "(({0}) ~ '^[a-c]+')"),
        (("bool",), "(({0}) is true)"),
        (("bool",), "(({0}) is not false)"),
        (("bool",), "(({0}) is unknown)"),
    ),
    "date": (
        (("date", "int4"), "(({0}) + ({1}) % 1000)"),
        (("date", "int4"), "(({0}) - ({1}) % 1000)"),
        (("timestamp",), "({0})::date"),
        (("date",), "date_trunc('month', {0})::date"),
    ),
    "timestamp": (
        (("date",), "({0})::timestamp"),
        (("timestamp",), "date_trunc('hour', {0})"),
        (("timestamp",), "(({0}) + interval '1 month')"),
        (("timestamp",), "(({0}) - interval '36 hours')"),
        (("date",), "(({0}) + interval '1 day')"),
    ),
}  # fmt: skip
_ANY: tuple[tuple[tuple[str, ...], str], ...] = (
    (("?", "?"), "coalesce({0}, {1})"),
    (("?", "?"), "nullif({0}, {1})"),
    (("bool", "?", "?"), "case when {0} then {1} else {2} end"),
    (("bool", "?"), "case when {0} then {1} end"),
    (("?", "?"), "greatest({0}, {1})"),
    (("?", "?"), "least({0}, {1})"),
)
"""Forms of every type."""


class Expressions:
    """Draws expressions over the columns in scope."""

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def draw(self, type_: str, scope: Sequence[Column], depth: int = DEPTH_MAX) -> Expr:
        """An expression of the type (X1)."""
        roll = self._source.random()
        columns = [column for column in scope if column.type == type_]
        if depth <= 0 or roll < 0.35:
            if columns and roll < 0.9 * (0.35 if depth > 0 else 1):
                return Expr(type_, self._source.choice(columns).name)
            return Expr(type_, self._source.choice(LITERALS[type_]).replace("{", "{{"))
        forms = _ANY if roll < 0.45 else _FORMS[type_]
        wanted, template = self._source.choice(forms)
        is_free = type_ == "bool" and forms is not _ANY
        any_type = self._source.choice(TYPES) if is_free else type_
        parts = tuple(
            self.draw(any_type if want == "?" else want, scope, depth - 1) for want in wanted
        )
        return Expr(type_, template, parts)


def smaller(expr: Expr) -> Iterator[Expr]:
    """Expressions of the same type with less in them."""
    if expr.parts:
        yield Expr(expr.type, LITERALS[expr.type][1])
        for part in expr.parts:
            if part.type == expr.type:
                yield part
    for index, part in enumerate(expr.parts):
        for less in smaller(part):
            parts = (*expr.parts[:index], less, *expr.parts[index + 1 :])
            yield replace(expr, parts=parts)
