"""Random queries of nodes within nodes, over few values, so that keys meet and rows are equal."""

import random
from dataclasses import dataclass

from tests.postgres.fuzz.queries import Queries

_WORDS = ("union", "union all", "intersect", "intersect all", "except", "except all")
_JOINS = ("join", "join", "left join", "right join", "full join")
_AGGREGATES = (
    "count(*)", "count({0})", "sum({0})", "min({0})", "max({0})", "count(distinct {0})",
    "sum({0}) filter (where {0} > 1)", "bool_or({0} > 1)::int", "avg({0})::int",
)  # fmt: skip


@dataclass(frozen=True)
class _Relation:
    """A query of so many columns, called c0, c1 .."""

    sql: str
    width: int


class RandomViews:
    """Draws the queries of views over a, b and c; some over t1, t2 and t3."""

    def __init__(self, source: random.Random) -> None:
        self._source = source
        self._fuzzed = Queries(source)
        self._aliases = 0

    def draw(self) -> tuple[str, tuple[str, ...]]:
        """The text, and the tables that it reads."""
        if self._source.random() < 0.25:
            return self._fuzzed.draw().sql, ("t1", "t2", "t3")
        return self._relation(self._source.choice((1, 2, 2, 3))).sql, ("a", "b", "c")

    def _alias(self) -> str:
        self._aliases += 1
        return f"r{self._aliases}"

    def _relation(self, depth: int) -> _Relation:
        if depth == 0:
            return self._base()
        kinds = (
            self._filtered, self._joined, self._joined, self._grouped, self._grouped,
            self._distinct, self._combined, self._windowed, self._with_subquery, self._lateral,
            self._shared, self._with_value,
        )  # fmt: skip
        return self._source.choice(kinds)(depth)

    def _base(self) -> _Relation:
        columns = self._source.sample(("k", "g", "v"), self._source.choice((2, 3)))
        shown = ", ".join(f"{name} as c{at}" for at, name in enumerate(columns))
        where = "" if self._source.random() < 0.6 else f" where v > {self._source.randint(0, 2)}"
        return _Relation(f"select {shown} from {self._source.choice('abc')}{where}", len(columns))

    def _below(self, depth: int) -> tuple[_Relation, str]:
        return self._relation(self._source.randint(0, depth - 1)), self._alias()

    def _column(self, relation: _Relation, alias: str) -> str:
        return f"{alias}.c{self._source.randrange(relation.width)}"

    def _shown(self, columns: list[str]) -> str:
        return ", ".join(f"{column} as c{at}" for at, column in enumerate(columns))

    def _all(self, relation: _Relation, alias: str) -> list[str]:
        return [f"{alias}.c{at}" for at in range(relation.width)]

    def _filtered(self, depth: int) -> _Relation:
        below, alias = self._below(depth)
        column = self._column(below, alias)
        columns = [column, f"coalesce({self._column(below, alias)}, 7) + 1"]
        sql = f"select {self._shown(columns)} from ({below.sql}) {alias} where {column} < 3"
        return _Relation(sql, 2)

    def _joined(self, depth: int) -> _Relation:
        left, one = self._below(depth)
        right, two = self._below(depth)
        kind = self._source.choice(_JOINS)
        on = f"{self._column(left, one)} = {self._column(right, two)}"
        if kind != "full join" and self._source.random() < 0.3:
            on += f" and {self._column(left, one)} < {self._column(right, two)}"
        columns = [*self._all(left, one), *self._all(right, two)]
        columns = self._source.sample(columns, min(3, len(columns)))
        sql = f"select {self._shown(columns)} from ({left.sql}) {one} {kind} ({right.sql}) {two}"
        return _Relation(f"{sql} on {on}", len(columns))

    def _grouped(self, depth: int) -> _Relation:
        below, alias = self._below(depth)
        columns = self._all(below, alias)
        keys = self._source.sample(columns, min(len(columns), self._source.choice((0, 1, 1, 1, 2))))
        calls = [
            self._source.choice(_AGGREGATES).format(self._source.choice(columns))
            for _ in range(self._source.randint(1, 2))
        ]
        shown = keys if self._source.random() < 0.8 else keys[:-1]
        sql = f"select {self._shown([*shown, *calls])} from ({below.sql}) {alias}"
        if keys:
            wrap = self._source.choice(("{}", "{}", "{}", "rollup ({})"))
            sql += f" group by {wrap.format(', '.join(keys))}"
        if self._source.random() < 0.3:
            sql += " having count(*) > 1"
        return _Relation(sql, len(shown) + len(calls))

    def _distinct(self, depth: int) -> _Relation:
        below, alias = self._below(depth)
        columns = [self._column(below, alias) for _ in range(2)]
        return _Relation(f"select distinct {self._shown(columns)} from ({below.sql}) {alias}", 2)

    def _combined(self, depth: int) -> _Relation:
        sides: list[str] = []
        for _ in range(2):
            below, alias = self._below(depth)
            columns = [self._column(below, alias) for _ in range(2)]
            sides.append(f"(select {self._shown(columns)} from ({below.sql}) {alias})")
        return _Relation(f"{sides[0]} {self._source.choice(_WORDS)} {sides[1]}", 2)

    def _windowed(self, depth: int) -> _Relation:
        below, alias = self._below(depth)
        key, order = self._column(below, alias), self._column(below, alias)
        call = self._source.choice(("rank()", f"sum({order})", "count(*)", f"max({order})"))
        over = f"over (partition by {key} order by {order})"
        if self._source.random() < 0.2:
            over = f"over (order by {order})"
        columns = [*self._all(below, alias)[:2], f"{call} {over}"]
        return _Relation(f"select {self._shown(columns)} from ({below.sql}) {alias}", len(columns))

    def _with_subquery(self, depth: int) -> _Relation:
        below, alias = self._below(depth)
        inner, other = self._below(depth)
        mine, yours = self._column(below, alias), self._column(inner, other)
        condition = self._source.choice((
            f"exists (select from ({inner.sql}) {other} where {yours} = {mine})",
            f"not exists (select from ({inner.sql}) {other} where {mine} = {yours})",
            f"{mine} in (select {yours} from ({inner.sql}) {other})",
            f"{mine} not in (select {yours} from ({inner.sql}) {other})",
            f"{mine} < (select max({yours}) from ({inner.sql}) {other})",
            f"{mine} > 1 or exists (select from ({inner.sql}) {other} where {yours} = {mine})",
        ))  # fmt: skip
        shown = self._shown(self._all(below, alias))
        sql = f"select {shown} from ({below.sql}) {alias} where {condition}"
        return _Relation(sql, below.width)

    def _with_value(self, depth: int) -> _Relation:
        below, alias = self._below(depth)
        inner, other = self._below(depth)
        mine, yours = self._column(below, alias), self._column(inner, other)
        value = f"(select sum({yours}) from ({inner.sql}) {other} where {yours} = {mine})"
        columns = [mine, value]
        return _Relation(f"select {self._shown(columns)} from ({below.sql}) {alias}", 2)

    def _lateral(self, depth: int) -> _Relation:
        below, alias = self._below(depth)
        inner, other = self._below(depth)
        mine, yours = self._column(below, alias), self._column(inner, other)
        kind = self._source.choice(("join", "left join"))
        columns = [mine, f"{other}l.x"]
        return _Relation(
            f"select {self._shown(columns)} from ({below.sql}) {alias} {kind} lateral"
            f" (select {yours} as x from ({inner.sql}) {other} where {yours} = {mine}) {other}l"
            " on true",
            2,
        )

    def _shared(self, depth: int) -> _Relation:
        below, name = self._below(depth)
        one, two = self._alias(), self._alias()
        columns = [self._column(below, one), self._column(below, two)]
        sql = f"with {name} as ({below.sql}) select {self._shown(columns)} from {name} {one}"
        on = f"{self._column(below, one)} = {self._column(below, two)}"
        return _Relation(f"{sql} join {name} {two} on {on}", 2)
