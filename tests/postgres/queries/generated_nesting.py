# ruff: noqa: E501 -- a statement stands on one line, as it does in the file
"""The file `generated_nesting.txt`: queries in queries that refer to no outer row.

Rows `(id, k, x)` made in many ways, and what may be done with such rows: each source under each
consumer, a consumer of two sources with another one beside it, a consumer over a consumer. Engines
move conditions, take joins away and read a thing once that is written twice, each by a rule of its
own; rows filled with NULLs by an outer join and inputs without rows are lost silently.
"""

from collections.abc import Iterator
from itertools import product
from typing import Final

from tests.postgres.queries.generated_queries import TABLES as _LEFT_AND_RIGHT

TABLES: Final = (
    *_LEFT_AND_RIGHT,
    "create table m (id int, k int, x int)",
    "insert into m select i, case when i % 7 > 0 then i % 11 end, case when i % 5 > 0 then i % 300 end"
    " from generate_series(1, 5000) i",
    "create view vj as select l.id, r.k, r.id::int as x from l left join r on r.k = l.k and r.id > 1",
    "create view vg as select min(id) as id, k, sum(x)::int as x from l group by k having count(*) > 1",
    "create view vu as select id, k, x from l where k > 1 union all select id::int, k, null from r",
)
_SOURCES: Final = (
    "select id, k, x from l",
    "select id, k, x from l where k > 1",
    "select l.id, r.k, x from l join r using (k)",
    "select l.id, k, r.id::int as x from l left join r using (k)",
    "select l.id, k, x from l right join r using (k)",
    "select coalesce(l.id, 0) as id, k, r.id::int as x from l full join r using (k)",
    "select l.id, r.k, x from l left join r on l.k = r.k and r.y > 2",
    "select l.id, r.k, x from l left join r on l.k = r.k and l.x > 15",
    "select l.id, r.k, x from l left join r on l.k = 1",
    "select l.id, r.k, x from l left join r on r.k = 1",
    "select l.id, r.k, x from l left join r on false",
    "select l.id, r.k, x from l left join (select * from r where k = 9) r on true",
    "select l.id, e.k, x from l left join e on true",
    "select r.id::int as id, l.k, l.x from l right join r on l.k = r.k and l.b",
    "select l.id, r.k, x from l full join r on l.k = r.k and l.x > 15",
    "select l.id, r.k, x from l full join r on l.k = r.k where l.id is null or r.id is null",
    "select l.id, r.k, x from l full join r on false",
    "select l.id, e.k, x from l full join e on l.k = e.k",
    "select l.id, r.k, x from l cross join r where r.id > 4",
    "select l.id, e.k, x from l cross join e",
    "select a.id, b.k, c.id::int as x from l a left join l b on a.id = b.id + 1 left join r c on c.k = b.k",
    "select a.id, b.k, b.x from l a left join (l b join r c on b.k = c.k and c.y > 2) on a.id = b.id",
    "select a.id, b.k, c.id::int as x from l a left join l b on a.id = b.id + 1 left join r c on c.k = b.k where c.k is null",
    "select l.id, r.k, x from l left join r on l.k = r.k where r.k > 1 or r.k is null",
    "select l.id, r.k, x from l left join r on l.k = r.k where coalesce(r.y, 0) = 0",
    "select l.id, l.k, c as x from l left join (select k, 1 as c from r) r on l.k = r.k",
    "select l.id, l.k, coalesce(r.c, 0) as x from l left join (select k, count(*)::int as c from r group by k) r on l.k = r.k",
    "select id, k, x from l where k in (select k from r)",
    "select id, k, x from l where k not in (select k from r where k is not null)",
    "select id, k, x from l where k not in (select k from r)",
    "select id, k, x from l where k not in (select k from e)",
    "select id, k, x from l where exists (select from r where r.k = l.k)",
    "select id, k, x from l where not exists (select from r where r.k = l.k and r.y > 2)",
    "select id, k, x from l where exists (select from e)",
    "select id, k, x from l where not exists (select from e)",
    "select min(id) as id, k, sum(x)::int as x from l group by k having count(*) > 1",
    "select max(id) as id, k, count(*)::int as x from l where id > 1 group by k",
    "select max(id) as id, min(k) as k, count(x)::int as x from l",
    "select max(id) as id, min(k) as k, count(x)::int as x from l where false",
    "select max(id) as id, min(k) as k, count(x)::int as x from l having count(*) > 100",
    "select max(id) as id, k, count(x)::int as x from l where false group by k",
    "select max(id) as id, k, x from l group by rollup (k, x)",
    "select max(id) as id, k, grouping(k, g) as x from l group by grouping sets ((k), (g), ())",
    "select count(*)::int as id, k, max(x) as x from l where id > 3 group by cube (k, b)",
    "select max(id) as id, k, 1 as x from e left join l using (k) group by grouping sets ((k), ())",
    "select distinct 1 as id, k, x from l where x < 60",
    "select distinct on (k) id, k, x from l order by k, id desc",
    "select distinct on (k) id, k, x from l order by k, x desc nulls last, id",
    "select id, k, x from (select id, k, x, row_number() over (partition by k order by x, id) as n from l) q where n = 1",
    "select id, k, r::int as x from (select id, k, rank() over (order by k nulls first) as r from l) q where r <= 3",
    "select id, k, lag(x) over (partition by k order by id) as x from l",
    "select id, k, sum(x) over (order by id rows 1 preceding)::int as x from l",
    "select id, k, count(*) over (partition by k)::int as x from l",
    "select id, k, x from l order by id limit 3",
    "select id, k, x from l order by x desc nulls last, id offset 2",
    "select id, k, x from l order by k fetch first 3 rows with ties",
    "select id, k, x from l limit 0",
    "select id, k, x from l union select id::int, k, null from r",
    "select id, k, x from l union all select id::int, k, 5 from r where k > 1",
    "select id, k, x from l union all select id, k, x from l where k = 1",
    "(select id, k, x from l order by id limit 2) union all (select id, k, x from l order by id desc limit 2)",
    "select 0 as id, k, k as x from l intersect select 0, k, k from r",
    "select 0 as id, k, null::int as x from l intersect all select 0, k, null from r",
    "select 0 as id, k, k as x from l except select 0, k, k from r",
    "select 0 as id, k, null::int as x from l except all select 0, k, null from r",
    "select id, k, x from l except select id, k, x from l where k = 1",
    "select id, k, x from (values (1, 1, 10), (2, null, 20), (3, 2, null), (3, 2, null)) v (id, k, x)",
    "select l.id, v.k, l.x from l left join (values (1), (2), (null)) v (k) on l.k = v.k",
    "select i as id, l.k, l.x from generate_series(0, 5) i left join l on l.id = i",
    "select l.id, i as k, l.x from l cross join generate_series(1, 2) i where l.k = i or l.k is null",
    "select id, u as k, x from l, unnest(array[l.k, null, 9]) u where l.id < 4",
    "select l.id, u.k, u.o::int as x from l left join unnest(array[1, 2, null]) with ordinality u (k, o) on u.k = l.k",
    "with w as (select id, k, x from l where k > 0) select a.id, b.k, b.x from w a left join w b on a.id = b.id + 1",
    "with w as materialized (select id, k, x from l) select id, k, x from w where k = 1 union all select id, k, x from w where x > 20",
    "with w as (select k, count(*)::int as c from l group by k) select a.c as id, a.k, b.c as x from w a left join w b on a.k = b.k",
    "with recursive w as (select 1 as id, 1 as k, 10 as x union all select id + 1, nullif(k + 1, 3), x + 10 from w where id < 5) select id, k, x from w",
    "with recursive w (id, k, x) as (select id, k, x from l where id = 1 union select l.id, l.k, w.x from w join l on l.id = w.id + 1) select id, k, x from w",
    "select id, k, x from vj",
    "select id, k, x from vg",
    "select id, k, x from vu",
    "select vj.id, vg.k, vg.x from vj left join vg on vg.k = vj.k",
    "select id, k, x from l where false",
    "select id, k, x from l where null::boolean",
    "select id, k, x from l where k = k",
    "select id, k, x from l where x is null or x > 30",
    "select 1 as id, k, k as x from e",
    "select id, nullif(k, 2) as k, coalesce(x, -1) as x from l",
    "select id, null::int as k, 7 as x from l",
    "select 1 as id, 2 as k, 3 as x",
    "select 1 as id, 2 as k, 3 as x where false",
    "select id, k, x from m where id % 300 = 5",
    "select k as id, max(x) as k, count(x)::int as x from m group by k",
    "select a.id, b.k, b.x from m a left join m b on a.id = b.id + 4900 and b.x > 10 where a.id > 4880 and a.id % 9 = 0",
    "select id, k, x from m where x = (select max(x) from m) order by id limit 5",
    "select id, k, x from m order by x nulls first, id desc offset 995 limit 8",
    "select l.id, m.k, m.x from l left join m on l.id = m.k and m.id < 20",
    "select id, k, (select max(id)::int from r) as x from l where k < (select max(k) from r)",
    "select id, case when k > 1 then k end as k, x from l where (k > 1) is not true",
    "select l.id, l2.k, l2.x from l left join lateral (select k, x from l i where i.id > 2 order by i.id limit 1) l2 on l2.k = l.k",
)
"""Rows `(id, k, x)`; each is put into brackets."""
_CONSUMERS: Final = (
    "select id, k, x from ({s}) s order by id, k, x",
    "select count(*), count(k), sum(x), min(id), array_agg(k order by k, id, x), bool_or(k > 1) from ({s}) s",
    "select count(*) from ({s}) s",
    "select 1 as one from ({s}) s",
    "select k, count(*), count(x), sum(x), string_agg(id::text, ',' order by id) from ({s}) s group by k order by k",
    "select k, count(*) filter (where x > 15), max(x) filter (where id < 3) from ({s}) s group by k having count(*) < 3 order by k",
    "select sum(x) from ({s}) s having count(*) > 2",
    "select count(distinct k), count(distinct x), sum(distinct x) from ({s}) s",
    "select k, count(distinct x), array_agg(distinct id order by id) from ({s}) s group by k order by k",
    "select k, x, count(*), grouping(k, x) from ({s}) s group by rollup (k, x) order by k, x, 4, 3",
    "select max(c), count(*) from (select k, count(*) as c from ({s}) s group by k) q",
    "select distinct k from ({s}) s order by k",
    "select distinct on (k) k, id, x from ({s}) s order by k, id desc nulls last, x",
    "select id, k, x, rank() over (partition by k order by x), row_number() over (order by id, k, x) from ({s}) s order by id, k, x, 4, 5",
    "select id, k, x, lag(x) over w, sum(x) over (w rows between 1 preceding and current row), first_value(id) over w from ({s}) s window w as (partition by k order by id, x) order by 1, 2, 3, 4, 5",
    "select id, k, x from (select *, row_number() over (partition by k order by id, x) as n from ({s}) s) q where n = 1 order by id, k, x",
    "select id, k, c from (select id, k, count(*) over (partition by k) as c from ({s}) s) q where k > 1 order by id, k, c",
    "select a.id, b.id, b.k from ({s}) a join ({s}) b on a.k = b.k order by 1, 2, 3",
    "select a.id, a.k, b.id, b.k from ({s}) a full join ({s}) b on a.id = b.k order by 1, 2, 3, 4",
    "select a.id, b.x from ({s}) a left join ({s}) b using (id) order by 1, 2",
    "with s as ({s}) select a.id, b.k from s a left join s b on a.id = b.id + 1 order by 1, 2",
    "with s as ({s}) select count(*), (select max(k) from s), (select count(*) from s where k is null) from s where id > 1",
    "select a.id, a.k, b.id, b.x from ({s}) a left join ({t}) b on a.k = b.k order by 1, 2, 3, 4",
    "select a.id, a.k, b.id, b.x from ({s}) a left join ({t}) b on a.k = b.k and a.x > 15 and b.id > 1 order by 1, 2, 3, 4",
    "select a.id, a.k, b.k from ({s}) a right join ({t}) b on a.k = b.k where a.id is null order by 1, 2, 3",
    "select a.id, b.id, b.k from ({s}) a left join ({t}) b on a.k = 1 order by 1, 2, 3",
    "select a.id, b.id, k from ({s}) a full join ({t}) b using (k) order by 1, 2, 3",
    "select a.id, b.x from ({s}) a left join ({t}) b on false order by 1, 2",
    "select l.id, s.k, s.x from l left join ({s}) s on true where s.k is null order by 1, 2, 3",
    "select l.id, s.k, coalesce(s.x, -1) from l left join ({s}) s on s.k = l.k and s.x is null order by 1, 2, 3",
    "select l.k, count(s.k), count(*), sum(s.x) from l left join ({s}) s on s.id = l.id group by l.k order by 1",
    "select count(s.k), count(l.id) from ({s}) s full join l on l.k = s.k and l.id = s.id",
    "select id, k, x from ({s}) a union select id, k, x from ({t}) b order by 1, 2, 3",
    "select k from ({s}) a intersect select k from ({t}) b order by 1",
    "select k from ({s}) a except select k from ({t}) b order by 1",
    "select k from ({s}) a except all select k from ({t}) b order by 1",
    "select k, x from ({s}) a intersect all select k, x from ({s}) b order by 1, 2",
    "select id from l where k in (select k from ({s}) s) order by id",
    "select id from l where k not in (select k from ({s}) s) order by id",
    "select id, k = any (select k from ({s}) s), k > all (select k from ({s}) s) from l order by id",
    "select id, k in (select k from ({s}) s where x > 10), exists (select from ({s}) s where k is null) from l order by id",
    "select id, k, x from ({s}) s where k in (select k from ({t}) t) order by 1, 2, 3",
    "select id, k, x from ({s}) s where k not in (select k from ({t}) t where k is not null) order by 1, 2, 3",
    "select id, (select max(x) from ({s}) s), (select count(*) from ({s}) s where k = 1) from l order by id",
    "select id from l where exists (select from ({s}) s) order by id",
    "select id from l where not exists (select from ({s}) s where x > 20) order by id",
    "select id, (select k from ({s}) s order by id, k, x limit 1) from l order by id",
    "select id, k, x from ({s}) s order by k nulls first, x desc, id limit 3",
    "select id, k from ({s}) s order by coalesce(k, x) desc nulls last, id, k limit 2 offset 1",
    "select id, k, x from ({s}) s where k is null order by 1, 2, 3",
    "select id, k, x from ({s}) s where k = 1 or x > 5 order by 1, 2, 3",
    "select id, k, x from ({s}) s where (k = k) is null or x = 20 order by 1, 2, 3",
    "select id, k, x from ({s}) s where false order by 1, 2, 3",
    "select id, k, x from ({s}) s where null::boolean or k is not null order by 1, 2, 3",
    "select nullif(k, 1), coalesce(k, x, id), k is null, case when x > 15 then k else id end from ({s}) s order by 1, 2, 3, 4",
    "select q.c, r.id from (select k, count(*) as c from ({s}) s group by k) q right join r on q.k = r.k order by 1, 2",
    "select q.one, l.id from l left join (select k, 1 as one from ({s}) s) q on q.k = l.k where q.one is null order by 2",
    "select a.k, (select count(*) from (select id from ({s}) s limit 2) q) from (select distinct k from ({s}) s) a order by 1",
    "select count(*) from ({s}) a, ({t}) b where a.k = b.k or a.x = b.x",
    "select q.k, sum(q.n) over (order by q.k nulls first) from (select k, count(*) as n from ({s}) s group by k) q order by 1, 2",
    "select k, sum(count(*)) over (order by k), rank() over (order by count(*) desc) from ({s}) s group by k order by 1, 2, 3",
)
"""What is done with rows `{s}`, beside other rows `{t}`."""
_STEP: Final = 37
"""How far from a source the one stands that is put beside it."""
_KEPT: Final = 8
"""One of so many statements is in the file."""


def nesting() -> Iterator[str]:
    """Each source and each consumer several times, some of the pairs."""
    yield from TABLES
    yield from list(all_nesting())[::_KEPT]


def all_nesting() -> Iterator[str]:
    """Each source under each consumer."""
    for (number, source), consumer in product(enumerate(_SOURCES), _CONSUMERS):
        beside = _SOURCES[(number + _STEP * (1 + len(consumer) % 5)) % len(_SOURCES)]
        yield consumer.format(s=source, t=beside)
