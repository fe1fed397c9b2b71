# ruff: noqa: E501 -- a statement stands on one line, as it does in the file
"""Systematic queries: aggregates, joins, subqueries and windows over small tables with NULLs.

Tables are few rows with keys that repeat, that are NULL, that have no partner.
"""

from collections.abc import Iterator
from itertools import product

TABLES = (
    "create table l (id int, k int, g text, x int, n numeric(10,2), f float8, d date, b boolean)",
    "insert into l values (1, 1, 'a', 10, 1.50, 0.5, '2024-01-01', true),"
    " (2, 1, 'a', 20, 2.25, 1.5, '2024-01-02', false), (3, 2, 'b', null, null, null, null, null),"
    " (4, 2, 'b', 40, -4.75, -2.5, '2024-02-01', true), (5, null, null, 50, 0, 0, '2024-02-29',"
    " false), (6, 4, 'c', 60, 100.00, 1e10, '2023-12-31', null), (7, 4, null, 20, 2.25, 1.5,"
    " '2024-01-02', true)",
    "create table r (id bigint, k int, t text, y numeric(8,3))",
    "insert into r values (1, 1, 'one', 1.5), (2, 2, 'two', 2.25), (3, 2, 'deux', null),"
    " (4, null, 'none', 0), (5, 9, 'nine', 40), (6, 4, null, 100)",
    "create table e (k int, t text)",
)
_AGGREGATES = {
    "count": ("id", "k", "g", "x", "n", "f", "d", "b"),
    "sum": ("x", "n", "f", "id", "g", "d", "b"),
    "avg": ("x", "n", "f", "id", "g", "d"),
    "min": ("x", "n", "f", "g", "d", "b"),
    "max": ("x", "n", "f", "g", "d", "b"),
    "stddev": ("x", "n", "f"),
    "var_pop": ("x", "n", "f"),
    "bool_and": ("b", "x"),
    "bool_or": ("b",),
    "bit_and": ("x", "n"),
    "bit_or": ("x",),
    "array_agg": ("x", "g"),
}
_JOINS = ("join", "left join", "right join", "full join", "cross join")
_CONDITIONS = (
    "l.k = r.k", "l.id = r.id", "l.k = r.k and l.x > 15", "l.k = r.k and r.y is not null",
    "l.k = r.k or l.id = r.id", "l.x > r.y", "l.k is not distinct from r.k", "true", "false",
    "l.n = r.y", "l.k = r.k and l.id <> r.id", "l.k + 1 = r.k",
    "l.k = (select min(k) from r) and r.k = l.k", "l.k = r.k and l.b",
)  # fmt: skip
_NOT_FULL = ("l.x > r.y", "l.k = r.k or l.id = r.id", "l.k is not distinct from r.k")
"""PostgreSQL itself has no plan for a FULL JOIN on these."""
_WHERES = (
    "", " where l.id is null or r.id is null", " where l.x > 15", " where r.t <> 'one'",
    " where coalesce(l.k, r.k) > 1",
)  # fmt: skip
_PREDICATES = (
    "k in (select {k} from r{w})", "k not in (select {k} from r{w})",
    "exists (select 1 from r{w})", "not exists (select 1 from r{w})",
    "k = any (select {k} from r{w})", "k <> all (select {k} from r{w})",
    "k > any (select {k} from r{w})", "k >= all (select {k} from r{w})",
    "k = (select max({k}) from r{w})", "x > (select avg(y) * 10 from r{w})",
    "(select count(*) from r{w}) > 1", "k in (select {k} from e)", "k not in (select {k} from e)",
    "(k, id) in (select {k}, r.id from r{w})", "coalesce((select sum(y) from r{w}), 0) > 1",
)  # fmt: skip
_INNER = (
    "", " where r.k = l.k", " where r.k is not null", " where r.id > l.id", " where r.y > l.n",
    " where r.k = l.k and r.y is not null", " where false",
)  # fmt: skip


def joins() -> Iterator[str]:
    """Each kind of join with each condition and each filter above it."""
    yield from TABLES
    for kind, condition, where in product(_JOINS, _CONDITIONS, _WHERES):
        on = "" if kind == "cross join" else f" on {condition}"
        if kind == "cross join" and condition != "true":
            continue
        if kind == "full join" and condition in _NOT_FULL:
            continue
        yield f"select l.id, r.id, l.k, r.t from l {kind} r{on}{where} order by 1, 2, 3, 4"
    for kind in _JOINS[:4]:
        yield f"select * from l {kind} r using (k) order by k, l.id, r.id"
        yield f"select k, count(*), sum(x), max(t) from l {kind} r using (k) group by k order by k"
        yield f"select count(*) from l {kind} e using (k)"
        yield f"select l.id, e.t from l {kind} e on l.k = e.k order by 1, 2"
        yield f"select * from (select k from l) a natural {kind} (select k from r) b order by 1"
        yield f"select a.id, b.id, c.id from l a {kind} l b on a.k = b.x / 10 left join r c on c.k = b.k order by 1, 2, 3"
        yield f"select a.id, s.t from l a {kind} (select distinct on (k) k, t from r order by k, t) s on a.k = s.k order by 1, 2"
        yield f"select a.id, s.n from l a {kind} (select k, count(*) as n from r group by k) s on a.k = s.k order by 1, 2"


def aggregates() -> Iterator[str]:
    """Each aggregate over each column in each form."""
    yield from TABLES
    for name, columns in _AGGREGATES.items():
        for column in columns:
            ordered = (
                f"{name}({column} order by id)" if name == "array_agg" else f"{name}({column})"
            )
            yield f"select {ordered} from l"
            yield f"select {ordered} from l where false"
            yield f"select k, {ordered} from l group by k order by k"
            yield f"select {name}(distinct {column}) from l where k <> 2"
            yield f"select {ordered} filter (where x > 15) from l"
            yield f"select g, b, {ordered} from l group by g, b having count(*) > 0 order by g, b"
    for sets in (
        "rollup (k, g)", "cube (k, b)", "grouping sets ((k), (g), ())", "k, rollup (g)",
        "grouping sets ((k, g), (k), (k))", "rollup ((k, g), b)", "()",
    ):  # fmt: skip
        shown = ", ".join(name for name in ("k", "g", "b") if name in sets.split("s (")[-1])
        shown = shown + ", " if shown else ""
        order = ", ".join(str(n) for n in range(1, shown.count(",") + 4))
        yield f"select {shown}count(*), sum(x), max(n) from l group by {sets} order by {order}"
        yield f"select {shown}count(*), sum(x), max(n) from l where false group by {sets} order by {order}"
    for having in (
        "count(*) > 1",
        "sum(x) > 50",
        "max(g) is null",
        "bool_or(b)",
        "min(x) = max(x)",
    ):
        yield f"select k, count(*) from l group by k having {having} order by k"
    for key in ("x % 20", "g || '!'", "k is null", "date_trunc('month', d)", "n > 1", "upper(g)",
        "coalesce(k, 0)", "case when b then 'y' else 'n' end", "d", "f", "n", "b"):  # fmt: skip
        yield f"select {key}, count(*), sum(x) from l group by {key} order by 1"
        yield f"select distinct {key} from l order by 1"
        yield f"select count(distinct {key}) from l"


def subqueries() -> Iterator[str]:
    """Each predicate over each inner query, in WHERE, in the list and in HAVING."""
    yield from TABLES
    for predicate, where in product(_PREDICATES, _INNER):
        if "{w}" not in predicate and where:
            continue
        text = predicate.format(k="e.k" if " e)" in predicate else "r.k", w=where)
        yield f"select id from l where {text} order by id"
        yield f"select id, {text} from l order by id"
    for inner in ("select max(r.y) from r where r.k = l.k", "select count(*) from r where r.k = l.k",
        "select r.t from r where r.id = l.id", "select l.x + 1", "select min(r.id) from r",
        "select sum(r.y * l.x) from r", "select string_agg(r.t, ',' order by r.t) from r where r.k = l.k",
        "select r.t from r where r.k = l.k order by r.id desc limit 1"):  # fmt: skip
        yield f"select id, ({inner}) from l order by id"
        yield f"select id from l where ({inner}) is not null order by id"
        yield f"select id from l order by ({inner}) desc nulls last, id"
        yield f"select max(({inner})) from l"
        yield f"select id, coalesce(({inner})::text, '-') from l order by id"


def windows() -> Iterator[str]:
    """Window functions over partitions, orders and frames."""
    yield from TABLES
    overs = (
        "", "order by id", "partition by k order by id", "partition by k", "order by x, id",
        "partition by g order by n desc nulls last, id", "order by k",
    )  # fmt: skip
    plain = (
        "rank()", "dense_rank()", "count(*)", "sum(x)", "avg(n)", "min(d)", "max(g)", "count(x)",
        "sum(f)", "bool_and(b)",
    )  # fmt: skip
    ordered = (
        "row_number()", "lag(x)", "lead(x)", "lag(x, 2, 0)", "lead(g, 1, 'none')", "ntile(3)",
        "first_value(x)", "last_value(x)", "nth_value(x, 2)", "percent_rank()", "cume_dist()",
    )  # fmt: skip
    for function, over in product(plain, overs):
        yield f"select id, {function} over ({over}) from l order by id"
    for function, over in product(ordered, [over for over in overs if "id" in over]):
        yield f"select id, {function} over ({over}) from l order by id"
    frames = (
        "rows between unbounded preceding and current row", "rows between 1 preceding and 1 following",
        "rows between current row and unbounded following", "rows 2 preceding",
        "rows between 2 following and 3 following", "range between unbounded preceding and current row",
        "range unbounded preceding", "groups between 1 preceding and current row",
        "rows between unbounded preceding and unbounded following exclude current row",
    )  # fmt: skip
    for frame, function in product(frames, ("sum(x)", "count(*)", "first_value(g)", "max(n)")):
        yield f"select id, {function} over (order by id {frame}) from l order by id"
        yield f"select id, {function} over (partition by k order by id {frame}) from l order by id"
