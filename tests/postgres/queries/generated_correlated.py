# ruff: noqa: E501 -- a statement stands on one line, as it does in the file
"""The file `generated_correlated.txt`: subqueries that refer to the outer row.

Every form of a subquery, joined to its row in several ways, wherever a subquery may stand. Engines
turn such queries into joins, each form by a rule of its own: rows that are not there, NULLs and
rows that only an aggregate makes are lost silently.
"""

from collections.abc import Iterator
from itertools import product
from typing import Final

from tests.postgres.queries.generated_queries import TABLES

_JOINED: Final = (
    "i.k = o.k",
    "i.k = o.k and i.y > o.x / 20",
    "i.k < o.k",
    "o.k > 1",
    "(i.k = o.k or o.x > 30)",
)
"""How a row `i` of the subquery belongs to a row `o` outside."""
_FORMS: Final = (
    "select i.k from r i where {j}",
    "select i.k + o.k from r i where {j}",
    "select max(i.k) from r i where {j}",
    "select count(*) from r i where {j}",
    "select count(*) + o.k from r i where {j}",
    "select count(*) from r i where {j} having count(*) > 1",
    "select i.k from r i where {j} group by i.k",
    "select sum(i.id) from r i where {j} group by i.k having count(*) > 1",
    "select distinct i.k from r i where {j}",
    "select i.k from r i where {j} order by i.id limit 1",
    "select i.k + o.x from r i where {j} order by i.id desc limit 1",
    "select i.id + o.x from r i where {j} order by i.id limit 1 offset 1",
    "select i.k from r i where {j} union select o.k",
    "select i.k from r i where {j} except select 2",
    "select row_number() over (order by i.id) from r i where {j}",
    "select max(q.m) from (select i.k as m from r i where {j} order by i.id limit 2) q",
    "select count(*) from (select max(i.y) as m from r i where {j}) q",
    "select coalesce(sum(q.n), -1) from (select count(*) as n from r i where {j} group by i.k) q",
    "select a.k from r a join r i on a.id = i.id + 1 where {j}",
    "select i.k from r i left join r a on a.id = i.id + o.id where {j}",
    "select i.k from r i where {j} and exists (select from l p where p.k = i.k and p.id <> o.id)",
    "select max((select max(p.x) from l p where p.k = i.k and p.id < o.id)) from r i where {j}",
    "select row_number() over () from (select max(i.k) as m from r i where {j}) q",
    "select coalesce(max(q.m) over (), -2) from (select max(i.k) as m from r i where {j}) q",
    "select coalesce(q.m, -1) from (select max(i.k) as m from r i where {j}) q",
    "select q.m from (select max(i.k) as m from r i where {j}) q where q.m is null",
    "select distinct 3 from (select max(i.k) as m from r i where {j}) q",
    "select q.m from (select max(i.k) as m from r i where {j} union all select min(i.k) from r i where {j}) q",
    "select a.k from (select max(i.k) as m from r i where {j}) q left join r a on a.k = q.m",
    "select a.k from r a, (select max(i.k) as m from r i where {j}) q where a.k is distinct from q.m",
    "select cardinality(array_agg(q.m)) from (select max(i.k) as m from r i where {j}) q",
    "select cardinality(array_agg(distinct q.m)) from (select min(i.k) as m from r i where {j}) q",
    "select jsonb_array_length(jsonb_agg(q.m)) from (select min(i.k) as m from r i where {j}) q",
    "select cardinality(array(select max(i.k) from r i where {j}))",
    "select q.m from (select max(i.k) as m from r i where {j}) q order by o.x limit 1",
    "select q.n from (select sum(p.m) as n from (select max(i.k) as m from r i where {j}) p) q where o.x > 10 or q.n is null",
    "select x from unnest(array[o.k, o.x]) x where exists (select from r i where i.k = x)",
    "values (o.k), (o.x)",
    "select o.k",
)
_PLACES: Final = (
    "select o.id, ({q}) from l o order by o.id",
    "select o.id, case when o.k > 1 then ({q}) else 0 end from l o order by o.id",
    "select o.id from l o where coalesce(({q}), 2) > 1 order by o.id",
    "select o.id from l o order by ({q}) desc nulls last, o.id",
    "select o.id from l o where exists ({q}) order by o.id",
    "select o.id from l o where not exists ({q}) order by o.id",
    "select o.id, exists ({q}), o.k in ({q}) from l o order by o.id",
    "select o.id from l o where o.k in ({q}) order by o.id",
    "select o.id from l o where o.k not in ({q}) order by o.id",
    "select o.id from l o where o.id = 1 or o.x > any ({q}) order by o.id",
    "select o.id, o.k not in ({q}), o.k >= all ({q}) from l o order by o.id",
    "select o.id, (select array_agg(z order by z) from ({q}) q(z)) from l o order by o.id",
    "select o.id, q.z from l o, lateral ({q}) q(z) order by 1, 2",
    "select o.id, q.z from l o left join lateral ({q}) q(z) on q.z > 1 order by 1, 2",
    "select count(*) filter (where exists ({q})), max(o.id) from l o",
    "select sum(o.id), count(q.z) from l o left join lateral ({q}) q(z) on true where o.b",
)
_SOME: Final = 5
"""Of the further ways of joining, this many queries stand for one."""


def correlated() -> Iterator[str]:
    """Every form in every place for the first way of joining, some for the others."""
    yield from TABLES
    for number, text in enumerate(all_correlated()):
        if number < len(_FORMS) * len(_PLACES) or number % _SOME == 0:
            yield text


def all_correlated() -> Iterator[str]:
    """All of them."""
    for number, (joined, form, place) in enumerate(product(_JOINED, _FORMS, _PLACES)):
        if number < len(_FORMS) * len(_PLACES) or "{j}" in form:
            yield place.format(q=form.format(j=joined))
