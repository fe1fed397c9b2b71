"""Random queries over the tables of `schema.py`, as trees that can be made smaller.

INVARIANTS
  Q1  rows are ordered by all columns where a LIMIT stands, so that the answer is one.
  Q2  a grouped query shows its keys and aggregates; sums stay in range (`expressions.py` X2).
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tests.postgres.fuzz.expressions import TYPES, Column, Expr, Expressions, smaller
from tests.postgres.fuzz.schema import TABLES, columns

_AGGREGATES: tuple[tuple[str, str, str], ...] = (
    ("int8", "int4", "count({0})"), ("int8", "text", "count(distinct {0})"),
    ("int8", "int4", "sum(({0}) % 1000)"), ("numeric", "numeric", "sum({0})"),
    ("int4", "int4", "min({0})"), ("text", "text", "max({0})"), ("date", "date", "min({0})"),
    ("numeric", "int4", "round(avg({0}), 6)"), ("bool", "bool", "bool_or({0})"),
    ("numeric", "numeric", "max({0})"), ("int8", "bool", "count(*) filter (where {0})"),
    ("text", "text", "string_agg({0}, ',' order by {0})"), ("bool", "bool", "bool_and({0})"),
    ("timestamp", "timestamp", "max({0})"), ("float8", "float8", "min({0})"),
)  # fmt: skip
_WINDOWS: tuple[tuple[str, str, str], ...] = (
    ("int8", "int4", "count(*) over (partition by {0})"),
    ("int8", "int4", "rank() over (order by {0})"),
    ("int8", "text", "dense_rank() over (order by {0} desc nulls last)"),
    ("numeric", "numeric", "max({0}) over ()"),
    ("int8", "int4", "sum(({0}) % 1000) over (order by {0})"),
)
_JOINS = ("join", "left join", "right join", "full join", "cross join")


@dataclass(frozen=True, slots=True)
class Join:
    """A table that is joined to those before it."""

    kind: str
    table: str
    alias: str
    on: Expr | None

    @property
    def sql(self) -> str:
        """As SQL."""
        on = "" if self.on is None else f" on {self.on.sql}"
        return f" {self.kind} {self.table} {self.alias}{on}"


@dataclass(frozen=True, slots=True)
class Query:
    """A query; `keys` are not None where it is grouped."""

    shown: tuple[Expr, ...]
    table: str
    joins: tuple[Join, ...] = ()
    where: Expr | None = None
    keys: tuple[Expr, ...] | None = None
    having: Expr | None = None
    distinct: bool = False
    other: tuple[str, "Query"] | None = None
    limit: str = ""

    @property
    def sql(self) -> str:
        """As SQL."""
        text = self._select()
        if self.other is not None:
            word, query = self.other
            text = f"{text} {word} {query.sql}"
        if self.limit:
            order = ", ".join(str(place) for place in range(1, self._width + 1))
            text = f"{text} order by {order} {self.limit}"
        return text

    @property
    def _width(self) -> int:
        return len(self.keys or ()) + len(self.shown)

    def _select(self) -> str:
        items = [*(self.keys or ()), *self.shown]
        shown = ", ".join(item.sql for item in items)
        parts = [f"select {'distinct ' if self.distinct else ''}{shown} from {self.table} a0"]
        parts += [join.sql for join in self.joins]
        if self.where is not None:
            parts.append(f" where {self.where.sql}")
        if self.keys:
            # By number: a constant among the keys would be one otherwise.
            numbers = ", ".join(str(place) for place in range(1, len(self.keys) + 1))
            parts.append(f" group by {numbers}")
        if self.having is not None:
            parts.append(f" having {self.having.sql}")
        return "".join(parts)


class Queries:
    """Draws queries."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._expressions = Expressions(source)

    def draw(self) -> Query:
        """A query, in one of four with another one beside it."""
        types = [self._source.choice(TYPES) for _ in range(self._source.randint(1, 3))]
        query = self._one(types)
        if self._source.random() < 0.25 and query.keys is None:
            words = ("union", "union all", "except", "intersect", "except all", "intersect all")
            other = replace(self._one(types, grouped=False), distinct=False)
            query = replace(query, other=(self._source.choice(words), other))
        if self._source.random() < 0.3:
            count, start = self._source.randint(0, 6), self._source.randint(0, 2)
            query = replace(query, limit=f"limit {count} offset {start}")
        return query

    def _one(self, types: Sequence[str], *, grouped: bool | None = None) -> Query:
        table = self._source.choice(TABLES)
        scope = columns("a0")
        joins: list[Join] = []
        while len(joins) < 2 and self._source.random() < 0.4:
            joins.append(self._join(scope, f"a{len(joins) + 1}"))
            scope += columns(joins[-1].alias)
        where = self._condition(scope) if self._source.random() < 0.6 else None
        if grouped is None and self._source.random() < 0.35:
            return self._grouped(table, tuple(joins), where, scope)
        shown = tuple(self._expressions.draw(type_, scope) for type_ in types)
        if grouped is None and self._source.random() < 0.2:
            shown += (self._call(_WINDOWS, scope),)
        if self._source.random() < 0.2:
            shown = (*shown[:-1], self._scalar(shown[-1].type, scope))
        distinct = self._source.random() < 0.15
        return Query(shown, table, tuple(joins), where, distinct=distinct)

    def _join(self, scope: list[Column], alias: str) -> Join:
        kind = self._source.choice(_JOINS)
        table = self._source.choice(TABLES)
        if kind == "cross join":
            return Join(kind, table, alias, None)
        left = self._source.choice(scope)
        right = self._source.choice([c for c in columns(alias) if c.type == left.type])
        on = Expr("bool", f"{left.name} = {right.name}")
        # PostgreSQL plans a FULL JOIN only on equalities.
        if kind != "full join" and self._source.random() < 0.3:
            extra = self._expressions.draw("bool", [*scope, *columns(alias)], 2)
            on = Expr("bool", "({0} and {1})", (on, extra))
        return Join(kind, table, alias, on)

    def _grouped(
        self, table: str, joins: tuple[Join, ...], where: Expr | None, scope: list[Column]
    ) -> Query:
        keys = tuple(
            self._expressions.draw(self._source.choice(TYPES), scope, 2)
            for _ in range(self._source.randint(0, 2))
        )
        shown = tuple(self._call(_AGGREGATES, scope) for _ in range(self._source.randint(1, 3)))
        having = None
        if self._source.random() < 0.3:
            having = Expr("bool", "count(*) > {0}", (Expr("int4", "1"),))
        return Query(shown, table, joins, where, keys, having)

    def _call(self, calls: Sequence[tuple[str, str, str]], scope: Sequence[Column]) -> Expr:
        result, argument, template = self._source.choice(calls)
        return Expr(result, template, (self._expressions.draw(argument, scope, 2),))

    def _condition(self, scope: Sequence[Column]) -> Expr:
        roll = self._source.random()
        if roll < 0.7:
            return self._expressions.draw("bool", scope)
        table = self._source.choice(TABLES)
        inside = columns("s")
        extra = self._expressions.draw("bool", [*inside, *scope], 2)
        if roll < 0.85:
            word = self._source.choice(("exists", "not exists"))
            return Expr("bool", f"{word} (select 1 from {table} s where {{0}})", (extra,))
        type_ = self._source.choice(TYPES)
        outer = self._expressions.draw(type_, scope, 1)
        inner = self._expressions.draw(type_, inside, 1)
        word = self._source.choice(("in", "not in", "= any", "<> all"))
        template = f"{{0}} {word} (select {{1}} from {table} s where {{2}})"
        return Expr("bool", template, (outer, inner, extra))

    def _scalar(self, type_: str, scope: Sequence[Column]) -> Expr:
        """A scalar subquery; min() makes one row of any number."""
        table = self._source.choice(TABLES)
        inner = self._expressions.draw(type_, columns("s"), 1)
        condition = self._expressions.draw("bool", [*columns("s"), *scope], 2)
        name = "bool_and" if type_ == "bool" else "min"
        template = f"(select {name}({{0}}) from {table} s where {{1}})"
        return Expr(type_, template, (inner, condition))


def smaller_queries(query: Query) -> Iterator[Query]:
    """Queries with less in them, the boldest cuts first."""
    if query.other is not None:
        yield replace(query, other=None)
        yield replace(query.other[1], limit=query.limit)
    if query.limit:
        yield replace(query, limit="")
    if query.where is not None:
        yield replace(query, where=None)
    if query.having is not None:
        yield replace(query, having=None)
    if query.distinct:
        yield replace(query, distinct=False)
    if query.joins:
        yield replace(query, joins=query.joins[:-1])
    if query.other is None:
        for index in range(len(query.shown)):
            if query._width > 1:
                yield replace(query, shown=query.shown[:index] + query.shown[index + 1 :])
        for index in range(len(query.keys or ())):
            assert query.keys is not None, "they were counted"
            yield replace(query, keys=query.keys[:index] + query.keys[index + 1 :])
    yield from _with_smaller_parts(query)


def _with_smaller_parts(query: Query) -> Iterator[Query]:
    if query.where is not None:
        yield from (replace(query, where=less) for less in smaller(query.where))
    for index, item in enumerate(query.shown):
        for less in smaller(item):
            if query.keys is None or not query.other:
                shown = (*query.shown[:index], less, *query.shown[index + 1 :])
                yield replace(query, shown=shown)
    for index, join in enumerate(query.joins):
        for less in smaller(join.on) if join.on is not None else ():
            changed = replace(join, on=less)
            yield replace(query, joins=(*query.joins[:index], changed, *query.joins[index + 1 :]))
    if query.keys:
        for index, key in enumerate(query.keys):
            for less in smaller(key):
                yield replace(query, keys=(*query.keys[:index], less, *query.keys[index + 1 :]))
    if query.other is not None:
        word, other = query.other
        for less_query in smaller_queries(other):
            if less_query._width == other._width:
                yield replace(query, other=(word, less_query))
