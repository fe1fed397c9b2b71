"""Random queries of many shapes over few functions: what planners rewrite, they find here.

    query ─┬─ select, grouped, distinct, numbered rows ─── from ─┬─ a table
           ├─ union, except, intersect of two, or of twins       ├─ a query, lateral or not
           └─ with .., read twice                                └─ unnest, values

INVARIANTS
  S1  the answer is one: where a LIMIT or a window counts rows they are ordered by all columns, but
      for a LIMIT whose rows are only counted.
  S2  nothing fails, and sums of floats are exact (`pgwire/rows.py`).
  S3  the same random source gives the same queries.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.postgres.fuzz.expressions import Column
from tests.postgres.fuzz.rows import COLUMNS, CONSTANTS, SHARES

_DEPTHS = (1, 1, 1, 2, 2, 3)
_KINDS = ("select",) * 6 + ("grouped",) * 4 + ("set", "set", "twins", "distinct", "distinct on",
    "numbered", "layered", "windows", "with", "limit", *("counted limit",) * 4)  # fmt: skip
_JOINS = ("join",) * 4 + ("left join",) * 4 + ("right join", "full join", "cross join")
_SETS = ("union", "union all", "union all", "except", "intersect", "except all", "intersect all")
_CONDITIONS = (
    "{0} = {1}", "{0} = {1}", "{0} = {1}", "{0} <> {1}", "{0} < {1}", "{0} < {1}", "{0} > {1}",
    "{0} > {1}", "{0} <= {1}", "{0} >= {1}", "{0} between {1} and {2}", "{0} in ({1}, {2})",
    "{0} in ({1}, {2}, {3}, {4}, {5}, {6})", "{0} not in ({1}, {2})", "{0} is null",
    "{0} is not null", "{0} = {other}", "{0} >= {other}", "{0} is distinct from {other}",
    "{0} is not distinct from {other}", "true", "false",
)  # fmt: skip
_CONDITIONS_OF: dict[str, tuple[str, ...]] = {
    "int4": (
        "{0} + 1 > 7", "5 - {0} < 3", "{0} * 2 >= 14", "{0} % 10 = 3", "- {0} > -7",
        "{0} <> all (array[1, 7, null])", "{0} = any (array[1, 2, 7])", "{0} > 6.5",
    ),
    "int8": ("{0} - 5000000000 < 40", "{0} + 1 > 5000000500", "{0} % 3 = 0", "{0} < 5e9::float8"),
    "numeric": ("{0} * 2 = 19.5", "{0} - 1.5 > 3", "{0} > 9", "round({0}) = 10", "- {0} < 3.25"),
    "float8": ("{0} * 2 > 5", "{0} > 1", "abs({0}) < 3", "{0} + 1 >= -7.5"),
    "text": (
        "{0} like 'a%'", "{0} like '%c'", "{0} not like '_'", "{0} ~ '^a'", "upper({0}) = 'A'",
        "length({0}) > 1", "{0} || 'b' = 'ab'", "{0} like 'abc'", "starts_with({0}, 'ab')",
    ),
    "bool": (
        "{0}", "not {0}", "{0} is true", "{0} is not true", "{0} is not false", "{0} is unknown",
        "coalesce({0}, false)", "case when {0} then {1} else {2} end",
    ),
    "date": (
        "{0} - date '2024-01-01' > 20", "{0} + 1 >= date '2024-02-01'",
        "extract(month from {0}) = 1", "date_trunc('month', {0}) = date '2024-02-01'",
        "{0} < timestamp '2024-01-10 12:00:00'",
    ),
    "timestamp": (
        "{0}::date = date '2024-01-05'", "extract(day from {0}) < 5",
        "date_trunc('day', {0}) > timestamp '2024-01-20 00:00:00'",
        "{0} + interval '1 day' > timestamp '2024-01-20 00:00:00'", "{0} >= date '2024-01-15'",
    ),
}  # fmt: skip
"""What is made of a column, and of constants of its type, where it is compared."""
_AGGREGATES: tuple[tuple[str, str, str], ...] = (
    ("int8", "?", "count({0})"), ("int8", "?", "count(distinct {0})"), ("int8", "?", "count(*)"),
    ("int8", "int4", "sum({0})"), ("numeric", "numeric", "sum({0})"),
    ("int8", "int4", "sum(distinct {0})"), ("float8", "float8", "sum({0})"),
    ("int4", "int4", "min({0})"), ("int4", "int4", "max({0})"), ("int8", "int8", "max({0})"),
    ("text", "text", "max({0})"), ("date", "date", "min({0})"), ("float8", "float8", "max({0})"),
    ("timestamp", "timestamp", "max({0})"), ("bool", "bool", "bool_or({0})"),
    ("bool", "bool", "bool_and({0})"), ("text", "text", "string_agg({0}, ',' order by {0})"),
    ("text", "text", "string_agg(distinct {0}, ',' order by {0})"),
)  # fmt: skip
_WINDOWS: tuple[tuple[str, str, str], ...] = (
    ("int8", "?", "count(*) over (partition by {0})"),
    ("int8", "int4", "sum({0}) over ()"),
    ("int8", "?", "rank() over (order by {0})"),
    ("int8", "?", "dense_rank() over (partition by {1} order by {0} desc)"),
    ("int8", "int4", "sum({0}) over (order by {0})"),
    ("int8", "?", "row_number() over (partition by {0} order by {all})"),
    ("int4", "int4", "lag({0}) over (order by {all})"),
    ("int4", "int4", "first_value({0}) over (partition by {1} order by {all})"),
    ("int8", "?", "count({0}) over (order by {all} rows between 2 preceding and 1 following)"),
    ("int4", "int4", "max({0}) over (partition by {1})"),
)  # fmt: skip
_FORMS: dict[str, tuple[tuple[tuple[str, ...], str], ...]] = {
    "int4": (
        (("int4",), "({0} % 10 + 1)"), (("int4",), "(- ({0} % 100))"), (("text",), "length({0})"),
        (("int4", "int4"), "(({0} % 100) + ({1} % 100))"), (("date", "date"), "({0} - {1})"),
    ),
    "int8": ((("int4",), "({0})::int8"), (("int8",), "({0} % 7)")),
    "numeric": ((("numeric",), "(({0} % 100) * 2)"), (("int4",), "({0})::numeric"),),
    "float8": ((("float8",), "({0} / 2)"), (("int4",), "({0})::float8")),
    "text": ((("text",), "upper({0})"), (("text",), "({0} || 'x')"), (("int4",), "({0})::text")),
    "bool": (
        (("int4", "int4"), "({0} < {1})"), (("?",), "({0} is null)"), (("bool",), "(not {0})"),
    ),
    "date": ((("date",), "({0} + 1)"), (("timestamp",), "({0})::date")),
    "timestamp": ((("date",), "({0})::timestamp"),),
}  # fmt: skip
_ANY = ("coalesce({0}, {1})", "nullif({0}, {1})", "case when {c} then {0} else {1} end",
    "greatest({0}, {1})")  # fmt: skip
_COUNTS = {"int8": "count(*)", "int4": "count(*)::int4", "bool": "count(*) > 2"}
TYPES = tuple(_FORMS)


@dataclass(frozen=True, slots=True)
class Source:
    """Something in FROM: its text, and the columns it brings."""

    text: str
    columns: tuple[Column, ...]


class Shapes:
    """Draws queries."""

    def __init__(self, source: random.Random, shares: Mapping[str, int] = SHARES) -> None:
        self._source = source
        self._shares = shares
        self._aliases = 0

    def draw(self) -> str:
        """A query; one in three is ordered by some of its columns."""
        types = self._types()
        text = self._query(types, (), self._source.choice(_DEPTHS))
        if not self._chance(0.3):
            return text
        places = self._source.sample(range(1, len(types) + 1), self._source.randint(1, len(types)))
        words = ("", " desc", " nulls first")
        keys = ", ".join(f"{place}{self._source.choice(words)}" for place in places)
        return f"select * from ({text}) {self._alias()} order by {keys}"

    # --- queries -------------------------------------------------------------------------------

    def _query(self, types: Sequence[str], outer: Sequence[Column], depth: int) -> str:
        """A query with columns c0, c1 .. of these types."""
        match self._source.choice(_KINDS) if depth > 0 else "select":
            case "set":
                word = self._source.choice(_SETS)
                left, right = (self._query(types, outer, depth - 1) for _ in range(2))
                return f"({left}) {word} ({right})"
            case "twins":
                return self._twins(types, outer, depth)
            case "layered":
                return self._layered(types, outer, depth)
            case "with":
                return self._with(types, outer, depth)
            case "grouped":
                return self._grouped(types, outer, depth)
            case "numbered":
                return self._numbered(types, outer, depth)
            case "limit":
                order = ", ".join(str(place) for place in range(1, len(types) + 1))
                query = self._query(types, outer, depth - 1)
                return f"select * from ({query}) {self._alias()} order by {order} {self._limit()}"
            case "counted limit":
                return self._counted(types, outer, depth)
            case kind:
                return self._select(kind, types, outer, depth)

    def _select(self, kind: str, types: Sequence[str], outer: Sequence[Column], depth: int) -> str:
        text, scope = self._from(outer, depth)
        visible = [*scope, *outer]
        shown = [self._value(type_, visible, depth) for type_ in types]
        if kind == "windows":
            shown = [
                self._call(_WINDOWS, type_, scope) or item
                for type_, item in zip(types, shown, strict=True)
            ]
        items = _named(shown)
        if kind == "distinct on":
            key = self._source.choice(scope).name
            order = ", ".join(str(place) for place in range(1, len(types) + 1))
            return f"select distinct on ({key}) {items}{text} order by {key}, {order}"
        return f"select {'distinct ' if kind == 'distinct' else ''}{items}{text}"

    def _layered(self, types: Sequence[str], outer: Sequence[Column], depth: int) -> str:
        """Subqueries over columns that are subqueries, perhaps of the first rows only."""
        text, scope = self._from(outer, depth - 1)
        made, visible = self._types(), [*scope, *outer]
        items = _named(
            [
                self._scalar(type_, visible, depth - 1)
                if self._chance(0.5)
                else self._value(type_, visible, 0)
                for type_ in made
            ]
        )
        if self._chance(0.4):
            order = ", ".join(str(place) for place in range(1, len(made) + 1))
            text += f" order by {order} {self._limit()}"
        alias = self._alias()
        columns = [*_columns(alias, made), *outer]
        shown = _named([self._value(type_, columns, depth) for type_ in types])
        where = f" where {self._asking(columns, depth - 1)}" if self._chance(0.7) else ""
        return f"select {shown} from (select {items}{text}) {alias}{where}"

    def _twins(self, types: Sequence[str], outer: Sequence[Column], depth: int) -> str:
        """A set operation of two queries that differ in their WHERE only, or not even there."""
        source = self._relation(outer if self._chance(0.1) else (), depth - 1)
        visible = [*source.columns, *outer]
        shown = _named([self._value(type_, visible, 0) for type_ in types])
        ends = [
            f" where {self._condition(visible, depth - 1)}" if self._chance(0.8) else ""
            for _ in range(2)
        ]
        left, right = (f"select {shown} from {source.text}{end}" for end in ends)
        return f"({left}) {self._source.choice(_SETS)} ({right})"

    def _grouped(self, types: Sequence[str], outer: Sequence[Column], depth: int) -> str:
        text, scope = self._from(outer, depth)
        keys = self._source.sample(scope, min(len(scope), self._source.randint(0, 2)))
        shown: list[str] = []
        for type_ in types:
            call = self._call(_AGGREGATES, type_, scope)
            fitting = [key.name for key in keys if key.type == type_]
            if fitting and (call is None or self._chance(0.6)):
                shown.append(self._source.choice(fitting))
                continue
            if call is not None and self._chance(0.15):
                call += f" filter (where {self._condition(scope, 0)})"
            shown.append(call or self._literal(type_))
        names = ", ".join(key.name for key in keys)
        if keys and self._chance(0.3):
            sets = (
                "rollup ({0})",
                "cube ({0})",
                "grouping sets ({0})",
                "grouping sets (({0}), ())",
            )
            names = self._source.choice(sets).format(names)
        having = f" having count(*) > {self._source.randint(0, 3)}" if self._chance(0.2) else ""
        return f"select {_named(shown)}{text} group by {names or '()'}{having}"

    def _with(self, types: Sequence[str], outer: Sequence[Column], depth: int) -> str:
        name = self._alias()
        made = self._types()
        query = self._query(made, (), depth - 1)
        scopes = [_columns(alias, made) for alias in (self._alias(), self._alias())]
        kept = self._source.choice(("materialized ", "not materialized ", ""))
        left, right = (scope[0].name.split(".")[0] for scope in scopes)
        join = self._source.choice(("join", "left join"))
        on = self._join_condition(scopes[0], scopes[1], 0)
        visible = [*scopes[0], *scopes[1], *outer]
        shown = _named([self._value(type_, visible, 0) for type_ in types])
        where = f" where {self._condition(visible, 0)}" if self._chance(0.4) else ""
        return (
            f"with {name} as {kept}({query})"
            f" select {shown} from {name} {left} {join} {name} {right} on {on}{where}"
        )

    def _numbered(self, types: Sequence[str], outer: Sequence[Column], depth: int) -> str:
        """The first rows of each group, by their number."""
        text, scope = self._from(outer, depth)
        items = _named([column.name for column in scope])
        names = [Column(f"c{place}", column.type) for place, column in enumerate(scope)]
        order = ", ".join(column.name for column in scope)
        key = self._source.choice(scope).name
        call = self._source.choice(("row_number()", "rank()"))
        number = f"{call} over (partition by {key} order by {order}) as number"
        shown = _named([self._value(type_, [*names, *outer], 0) for type_ in types])
        return (
            f"select {shown} from (select {items}, {number}{text}) {self._alias()}"
            f" where number {self._source.choice(('= 1', '<= 3', '< 2', '> 1'))}"
        )

    def _counted(self, types: Sequence[str], outer: Sequence[Column], depth: int) -> str:
        """How many rows a query with a limit has, whichever they are."""
        limited = f"{self._select('select', self._types(), outer, depth)} {self._limit()}"
        shown = [_COUNTS.get(type_) or self._literal(type_) for type_ in types]
        return f"select {_named(shown)} from ({limited}) {self._alias()}"

    # --- FROM and WHERE ------------------------------------------------------------------------

    def _from(self, outer: Sequence[Column], depth: int) -> tuple[str, list[Column]]:
        """FROM, joins and WHERE, and the columns that are there."""
        first = self._relation(outer, depth)
        text, scope = f" from {first.text}", list(first.columns)
        while len(scope) < 20 and self._chance(0.45):
            kind = self._source.choice(_JOINS)
            is_lateral = kind in ("join", "left join", "cross join") and self._chance(0.25)
            visible = [*scope, *outer] if is_lateral else outer
            joined = self._relation(visible, depth, lateral=is_lateral)
            text += f" {kind} {joined.text}"
            if kind != "cross join":
                # PostgreSQL plans a FULL JOIN only on equalities.
                is_plain = kind == "full join"
                text += f" on {self._join_condition(scope, joined.columns, depth, plain=is_plain)}"
            scope += joined.columns
        if self._chance(0.65):
            text += f" where {self._condition([*scope, *outer], depth)}"
        return text, scope

    def _relation(self, outer: Sequence[Column], depth: int, *, lateral: bool = False) -> Source:
        alias = self._alias()
        roll = self._source.random()
        if lateral and roll < 0.3:
            calls = (
                "generate_series(1, abs({0} % 4))",
                "unnest(array[{0}, {1}])",
                "(values ({0}), ({1}))",
            )
            values = (self._value("int4", outer, 0), self._value("int4", outer, 0))
            call = self._source.choice(calls).format(*values)
            return Source(f"lateral {call} {alias}(c0)", (Column(f"{alias}.c0", "int4"),))
        if depth > 0 and (lateral or roll < 0.3):
            types = self._types()
            query = self._query(types, outer if lateral else (), depth - 1)
            word = "lateral " if lateral else ""
            return Source(f"{word}({query}) {alias}", _columns(alias, types))
        if roll > 0.95:
            pairs = [(self._literal("int4"), self._literal("text")) for _ in range(3)]
            rows = ", ".join(f"({number}, {text})" for number, text in pairs)
            return Source(f"(values {rows}) {alias}(c0, c1)", _columns(alias, ("int4", "text")))
        (table,) = self._source.choices(tuple(self._shares), tuple(self._shares.values()))
        columns = tuple(Column(f"{alias}.{name}", type_) for name, type_ in COLUMNS.items())
        return Source(f"{table} {alias}", columns)

    def _join_condition(
        self, left: Sequence[Column], right: Sequence[Column], depth: int, *, plain: bool = False
    ) -> str:
        pairs = [(a, b) for a in left for b in right if a.type == b.type and a.type != "bool"]
        if not pairs:
            return "true" if plain else self._condition([*left, *right], 0)
        a, b = self._source.choice(pairs)
        text = f"{a.name} = {b.name}"
        if not plain and self._chance(0.12):
            text = f"{self._value(b.type, left, 0)} = {b.name}"
        while not plain and self._chance(0.45):
            side = self._source.choice((right, right, right, left, [*left, *right]))
            text += f" and {self._condition(side, depth - 1)}"
        return text

    def _condition(self, scope: Sequence[Column], depth: int) -> str:
        roll = self._source.random()
        if depth > 0 and roll < 0.3:
            return self._asking(scope, depth - 1)
        if depth >= 0 and roll < 0.42:
            word = self._source.choice(("and", "or", "or"))
            left, right = (self._condition(scope, depth - 1) for _ in range(2))
            return f"{self._source.choice(('', '', 'not '))}({left} {word} {right})"
        column = self._source.choice(scope)
        other = self._source.choice([other for other in scope if other.type == column.type])
        literals = [self._literal(column.type) for _ in range(6)]
        forms = _CONDITIONS if self._chance(0.7) else _CONDITIONS_OF[column.type]
        return self._source.choice(forms).format(column.name, *literals, other=other.name)

    def _asking(self, scope: Sequence[Column], depth: int) -> str:
        """A condition with a subquery."""
        roll = self._source.random()
        if roll < 0.15:
            query = self._query(self._types(), scope, depth)
            return f"{self._source.choice(('', 'not '))}exists ({query})"
        if roll < 0.6:
            text = self._correlated(scope, depth) if self._chance(0.6) else self._from((), depth)[0]
            limit = f" {self._limit()}" if self._chance(0.2) else ""
            return f"{self._source.choice(('', 'not '))}exists (select 1{text}{limit})"
        column = self._source.choice(scope)
        if roll < 0.82:
            negated = self._source.choice(("", "not "))
            outer = scope if self._chance(0.3) else ()
            return f"{column.name} {negated}in ({self._query([column.type], outer, depth)})"
        if roll < 0.88:
            some = self._source.choice(("any", "all"))
            query = f"select {self._value(column.type, scope, -1)}{self._correlated(scope, depth)}"
            return f"{column.name} {self._source.choice(('=', '<', '>'))} {some} ({query})"
        if roll < 0.93:
            counted = f"select count(*){self._correlated(scope, depth)}"
            return f"{self._source.choice((0, 1, 3))} {self._source.choice(('=', '<'))} ({counted})"
        value = self._scalar(column.type, scope, depth)
        return f"{column.name} {self._source.choice(('=', '<', '>'))} {value}"

    def _correlated(self, scope: Sequence[Column], depth: int) -> str:
        """FROM and WHERE of a subquery with an equality that refers to the query outside."""
        source = self._relation((), depth)
        columns, joined = source.columns, ""
        if self._chance(0.4):
            other = self._relation((), depth)
            kind = self._source.choice(("join", "left join"))
            joined = f" {kind} {other.text} on {self._join_condition(columns, other.columns, 0)}"
            columns += other.columns
        return f" from {source.text}{joined} where {self._join_condition(scope, columns, 0)}"

    # --- values --------------------------------------------------------------------------------

    def _value(self, type_: str, scope: Sequence[Column], depth: int) -> str:
        roll = self._source.random()
        fitting = [column.name for column in scope if column.type == type_]
        if fitting and roll < 0.6:
            return self._source.choice(fitting)
        if depth > 0 and roll < 0.68:
            return self._scalar(type_, scope, depth - 1)
        if scope and depth >= 0 and roll < 0.85:
            arguments, template = self._source.choice(_FORMS[type_])
            any_type = self._source.choice(TYPES)
            parts = [self._value(any_type if t == "?" else t, scope, -1) for t in arguments]
            return template.format(*parts)
        if fitting and roll < 0.94:
            condition = self._condition(scope, -1)
            parts = [self._source.choice(fitting), self._literal(type_)]
            return self._source.choice(_ANY).format(*parts, c=condition)
        return self._literal(type_)

    def _scalar(self, type_: str, scope: Sequence[Column], depth: int) -> str:
        """A subquery with one value."""
        name = "bool_and" if type_ == "bool" else self._source.choice(("min", "max"))
        if self._chance(0.15):
            query = self._query([type_], scope if self._chance(0.7) else (), depth)
            return f"(select {name}(c0) from ({query}) {self._alias()})"
        source = self._relation((), depth)
        value = self._value(type_, source.columns, 0)
        on = self._join_condition(scope, source.columns, 0) if self._chance(0.7) else "true"
        if type_ in ("int4", "text") and self._chance(0.25):
            order = ", ".join(column.name for column in source.columns)
            return f"(select {value} from {source.text} where {on} order by {order} limit 1)"
        return f"(select {name}({value}) from {source.text} where {on})"

    def _call(
        self, calls: Sequence[tuple[str, str, str]], type_: str, scope: Sequence[Column]
    ) -> str | None:
        """A call with this type, over a column; None if there is none."""
        fitting = [
            (column, template)
            for result, argument, template in calls
            for column in scope
            if result == type_ and argument in ("?", column.type)
        ]
        if not fitting:
            return None
        column, template = self._source.choice(fitting)
        every = ", ".join(each.name for each in scope)
        return template.format(column.name, self._source.choice(scope).name, all=every)

    def _literal(self, type_: str) -> str:
        return self._source.choice(CONSTANTS[type_])

    def _limit(self) -> str:
        offset = f" offset {self._source.choice((0, 1, 50))}" if self._chance(0.3) else ""
        return f"limit {self._source.choice((0, 1, 3, 10, 500))}{offset}"

    def _types(self) -> list[str]:
        return [self._source.choice(TYPES) for _ in range(self._source.randint(1, 4))]

    def _alias(self) -> str:
        self._aliases += 1
        return f"x{self._aliases}"

    def _chance(self, share: float) -> bool:
        return self._source.random() < share


def _named(items: Sequence[str]) -> str:
    return ", ".join(f"{item} as c{place}" for place, item in enumerate(items))


def _columns(alias: str, types: Sequence[str]) -> tuple[Column, ...]:
    return tuple(Column(f"{alias}.c{place}", type_) for place, type_ in enumerate(types))
