# ruff: noqa: E501 -- a statement stands on one line, as it does in the file
"""The file `generated_levels.txt`: subqueries within subqueries, and where they seldom stand.

A subquery that refers to the query next to it and to the one further out; chains of LATERAL;
subqueries in ON, HAVING, GROUP BY, windows, VALUES, functions of FROM and rows of values.
"""

from collections.abc import Iterator
from itertools import product
from typing import Final

from tests.postgres.queries.generated_queries import TABLES

_CONDITIONS: Final = (
    "exists (select from l p where p.k = i.k and p.id <> o.id)",
    "not exists (select from l p where p.k = i.k and p.x > o.x)",
    "i.k in (select p.k from l p where p.id > o.id)",
    "i.k not in (select p.k from l p where p.x = o.x)",
    "(select max(p.x) from l p where p.k = i.k and p.id <= o.id) > 10",
    "(select count(*) from l p where p.k = i.k and p.id > o.id) = 0",
    "i.y < any (select p.x from l p where p.k >= o.k)",
    "not exists (select count(*) from l p where p.k = i.k and p.k = o.k having count(*) > 1)",
    "o.k = (select min(p.k) from l p where p.id = i.id)",
    "exists (select from l p where p.k = i.k and not exists (select from r s where s.k = p.k and s.id = o.id))",
)
"""On a row `i` of the subquery and a row `o` further out."""
_MIDDLE: Final = (
    "select i.id from r i where {t}",
    "select max(i.id) from r i where {t}",
    "select count(*) from r i where i.k = o.k and {t}",
    "select count(*) from r i where i.k >= o.k or {t}",
    "select count(*) from r i group by i.k having bool_or({t})",
    "select sum(case when {t} then 1 else 0 end) from r i where i.k = o.k",
    "select count(*) filter (where {t}) from r i where i.id <> o.id",
    "select i.id from r i left join r a on a.id = i.id + 1 and {t} where i.k = o.k",
    "select i.id from r i where i.k = o.k order by ({t}) desc nulls last, i.id limit 1",
    "select q.m from (select max(i.id) m from r i where {t}) q where q.m is null or q.m > o.k",
)
"""Subqueries that ask them."""
_AROUND: Final = (
    "select o.id, (select array_agg(z order by z) from ({q}) q(z)) from l o order by 1",
    "select o.id, exists ({q}) from l o order by 1",
    "select o.id from l o where not exists ({q}) order by 1",
    "select o.id from l o where o.id in ({q}) order by 1",
    "select o.id from l o where o.id not in ({q}) order by 1",
    "select o.id, z from l o, lateral ({q}) q(z) order by 1, 2",
    "select o.id, z from l o left join lateral ({q}) q(z) on z <> o.k order by 1, 2",
    "select o.id from l o where (select max(z) from ({q}) q(z)) is null order by 1",
)
"""Where those stand."""
_FORMS: Final = (
    "select i.k from r i where i.k = o.k",
    "select max(i.k) from r i where i.k = o.k",
    "select count(*) from r i where i.k = o.k",
    "select count(*) from r i where i.k < o.k having count(*) > 1",
    "select i.k from r i where i.k = o.k order by i.id limit 1",
    "select max(i.y) from r i where i.k > o.k group by i.k order by 1 limit 1",
    "select q.m from (select max(i.k) as m from r i where i.k = o.k) q where q.m is null",
    "select coalesce(q.m, -1) from (select max(i.k) as m from r i where i.k = o.k) q",
    "select i.k from r i where i.k = o.k union select o.k",
    "values (o.k)",
)
"""Subqueries that refer to the outer row."""
_PLACES: Final = (
    "select o.id, c.id from l o join r c on exists ({q}) and c.k = o.k order by 1, 2",
    "select o.id, c.id from l o left join r c on c.k = o.k and not exists ({q}) order by 1, 2",
    "select o.id, c.id from l o left join r c on c.id in ({q}) order by 1, 2",
    "select c.id, o.id from r c right join l o on o.k = c.k and (select max(z) from ({q}) s(z)) > 1 order by 1, 2",
    "select o.id, c.id from l o full join r c on c.id = o.id and exists ({q}) order by 1, 2",
    "select o.k, count(*) from l o group by o.k having exists ({q}) order by 1",
    "select o.k, count(*) from l o group by o.k having not exists ({q}) order by 1",
    "select o.k, sum(o.x), (select max(z) from ({q}) s(z)) from l o group by o.k order by 1",
    "select o.k, sum(o.x) from l o group by o.k having coalesce((select max(z) from ({q}) s(z)), 0) < count(*) order by 1",
    "select (select max(z) from ({q}) s(z)) as c, count(*) from l o group by (select max(z) from ({q}) s(z)) order by 1",
    "select exists ({q}), count(*) from l o group by 1 order by 1",
    "select o.id, sum((select max(z) from ({q}) s(z))) over (order by o.id) from l o order by 1",
    "select o.id, row_number() over (partition by exists ({q}) order by o.id), rank() over (order by (select max(z) from ({q}) s(z)) nulls first) from l o order by 1",
    "select o.id, count(*) filter (where not exists ({q})) over () from l o order by 1",
    "select o.id, v.a from l o, lateral (values (o.x), ((select max(z) from ({q}) s(z)))) v(a) order by 1, 2",
    "select o.id, g.a from l o, generate_series(1, (select count(*) from ({q}) s(z))) g(a) order by 1, 2",
    "select o.id, g.a from l o left join lateral unnest(array(select z from ({q}) s(z))) g(a) on true order by 1, 2",
    "select sum(case when exists ({q}) then 1 when o.b then 10 end) filter (where not o.k in ({q})), count(*) from l o",
    "select array_agg(o.id order by (select max(z) from ({q}) s(z)) nulls first, o.id) from l o",
    "select o.id from l o where exists ({q}) union all select o.id from l o where not exists ({q}) order by 1",
    "select o.id from l o where exists (select z from ({q}) s(z) union all select 1 where o.x > 30) order by 1",
    "select o.id from l o where (o.k, o.x) in (select z, o.x from ({q}) s(z)) order by 1",
    "select o.id from l o where (o.k, o.id) not in (select z, p.id from ({q}) s(z), l p) order by 1",
    "select o.id, (o.k, o.x) = (select max(z), 20 from ({q}) s(z)) from l o order by 1",
    "select o.id, (o.k, o.id) < any (select z, 3 from ({q}) s(z)) from l o order by 1",
    "select o.id, a.n, c.m from l o, lateral ({q}) a(n), lateral (select max(p.x) from l p where p.k = a.n and p.id <> o.id) c(m) order by 1, 2, 3",
    "select o.id, a.n, c.m from l o left join lateral ({q}) a(n) on a.n > 1, lateral (select count(*) from l p where p.k = a.n or p.id = o.id) c(m) order by 1, 2, 3",
    "select o.id, a.n from l o, lateral ({q}) a(n) where not exists (select max(p.id) from l p where p.k = a.n having max(p.id) > o.id) order by 1, 2",
    "with w as (select o.id, (select max(z) from ({q}) s(z)) m from l o) select w.id, w.m from w where not exists (select from w x where x.m > w.m) order by 1",
    "select o.id, o.e from (select o.*, exists ({q}) e from l o) o where not o.e or o.x > 20 order by 1",
    "select distinct on ((select max(z) from ({q}) s(z))) o.id from l o order by (select max(z) from ({q}) s(z)), o.id",
    "select o.id from l o order by exists ({q}), o.id desc limit (select 4)",
    "select coalesce((select max(z) from ({q}) s(z)), o.k, 9), o.k between (select min(z) from ({q}) s(z)) and 3, nullif(o.k, (select max(z) from ({q}) s(z))) from l o order by o.id",
)
"""Where a subquery seldom stands."""
_FOUND: Final = (
    "select o.id from l o where exists (select i.id from r i where i.k >= o.k or exists (select from l p where p.k = i.k and p.id = 1)) order by 1",
    "select o.id from l o where exists (select i.id from r i where o.k in (select p.k from l p where p.id = i.id)) order by 1",
    "select o.id from l o where not exists (select i.id from r i where o.k = (select min(p.k) from l p where p.id = i.id)) order by 1",
    "select o.id from l o where o.id not in (select i.id from r i where o.k = (select min(p.k) from l p where p.id = i.id)) order by 1",
    "select o.id, z from l o, lateral (select i.id from r i where o.k = (select min(p.k) from l p where p.id = i.id)) q(z) order by 1, 2",
    "select o.id, (select count(*) from r i where o.k in (select p.k from l p where p.id = i.id)) from l o order by 1",
    "select o.id, exists (select q.m from (select max(i.k) as m from r i where i.k < o.k union all select min(i.k) from r i where i.k < o.k) q) from l o order by 1",
    "select o.id from l o where o.id = 1 or o.x > any (select a.k from r a, (select max(i.k) as m from r i where i.k = o.k and i.y > o.x / 20) q where a.k is distinct from q.m) order by 1",
    "select o.id, (select max(q.m) from (select max(i.k) as m from r i where i.k < o.k union all select min(i.k) from r i where i.k < o.k) q) from l o where o.k not in (select q.m from (select max(i.k) as m from r i where i.k < o.k union all select min(i.k) from r i where i.k < o.k) q) or o.b order by 1",
)
"""What was wrong once."""
_SOME: Final = 5
"""One of so many stands for all."""


def levels() -> Iterator[str]:
    """Some of every combination, so that each condition, form and place is there."""
    yield from TABLES
    yield from _FOUND
    for number, text in enumerate(all_levels()):
        if number % _SOME == 0:
            yield text


def all_levels() -> Iterator[str]:
    """All of them."""
    for condition, middle, around in product(_CONDITIONS, _MIDDLE, _AROUND):
        yield around.format(q=middle.format(t=condition))
    for form, place in product(_FORMS, _PLACES):
        yield place.format(q=form)
