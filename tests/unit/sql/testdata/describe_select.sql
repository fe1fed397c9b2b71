select 1
select 1, 'a', null, true, 1.5, 1e10, 3000000000, 30000000000000000000, -5, -2147483648, 0x1f, 1_000
select 'a'::text, 'a'::varchar(3), 'a'::char(3), 'a'::char, '1'::int, '1.5'::numeric, '1.5'::numeric(5,2), 'a'::varchar, 'a'::bpchar
select cast(1 as bigint), 1::int2, 1::float4, 1::real, 1::double precision, date '2024-01-01', timestamp '2024-01-01 10:00', timestamptz '2024-01-01 10:00+02', interval '1 day'
select int '5', numeric '1.50', text 'x', bool 't', uuid 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', bytea '\xdead'
select a from t
select * from t
select t.* from t
select public.t.* from t
select public.t.a from t
select a as x, b y from t
select a+1, a+s, a+l, a*1.5, a/2, s/2, a%2, -a, +a, a-s, l*l from t
select f+1, r+1, r+r, r+f, f*2.5, n+1, n*a, n/3, n%2, -n, u+u, u*2 from t
select a || b from t
select b || 'x', b || v, v || v, c || v, b || 1, 1 || b from t
select a = 1, a = l, a = n, a = f, b = 'x', b = v, c = 'x', v = 'x', d = '2024-01-01', ts > d, tz < ts, o from t
select a < '5', '5' < a, l >= 2, n <> 2.5, f = 1, r = 1.5 from t
select b like 'x%', b not like 'x', b ilike 'X', b not ilike 'q', b like 'a!%' escape '!' from t
select b ~ 'x', b !~ 'x', b ~* 'x', b !~* 'x' from t
select a between 1 and 2, a not between 1 and s, a between symmetric 2 and 1 from t
select a in (1,2,3), a not in (1,2), b in ('a','b'), a in (1, 2.5), l in (1, '2'), a in (s, 5) from t
select a is null, a is not null, o is true, o is not true, o is false, o is not false, o is unknown, o is not unknown from t
select a is distinct from 1, a is not distinct from null, b is distinct from 'x' from t
select o and a > 1, o or a > 1, not o from t
select case when a > 1 then 1 else 2 end, case a when 1 then 'x' when 2 then 'y' end, case when o then 1 else 2.5 end, case when o then b else 'x' end, case when o then v else v end from t
select case when o then null else null end from t
select case when o then a else l end, case when o then n else a end, case when o then d else ts end from t
select coalesce(a, 1), coalesce(b, 'x'), coalesce(null, null), coalesce(a, l), coalesce(n, 0), coalesce(v, 'x'), coalesce(v, v) from t
select nullif(a, 1), nullif(b, 'x'), nullif(n, 0), nullif('a', 'b'), nullif(v, 'x'), nullif(1, 2.5) from t
select greatest(a, 1), least(a, l, s), greatest(b, 'x'), greatest(n, 1), least(f, 1) from t
select count(*), count(a), count(distinct b), sum(a), sum(l), sum(n), sum(f), sum(r), sum(s), avg(a), avg(n), avg(f), avg(r) from t
select min(a), max(b), min(v), max(c), min(d), max(ts), min(tz), max(n), min(f), min(by) from t
select bool_and(o), bool_or(o), every(o) from t
select string_agg(b, ','), string_agg(b, ',' order by a), string_agg(distinct b, ',') from t
select count(*) filter (where a > 1), sum(a) filter (where o) from t
select stddev(a), variance(n), stddev(f), var_pop(f), stddev_samp(a) from t
select bit_and(a), bit_or(s) from t
select a, count(*) from t group by a
select a, b, sum(l) from t group by a, b having sum(l) > 10 order by 3 desc
select a as k, count(*) from t group by k
select a + 1, count(*) from t group by a + 1
select a + 1 as k, count(*) from t group by 1
select count(*) from t having count(*) > 0
select a from t group by a order by count(*)
select sum(a) + count(*) from t
select max(a) from t where a > 0
select (select max(a) from t) as m
select (select 1), (select b from t limit 1), (select 'x')
select exists (select 1 from t), not exists (select * from u)
select a in (select x from u), a not in (select x from u), a = any (select x from u), a <> all (select x from u) from t
select (a, b) in (select x, y from u) from t
select a from t where exists (select 1 from u where u.x = t.a)
select a, (select count(*) from u where u.x = t.a) from t
select a, (select max(u.z) from u where u.x = t.a) as m from t order by m nulls first
select * from t, u
select * from t join u on t.a = u.x
select * from t left join u on t.a = u.x
select * from t right join u on t.a = u.x
select * from t full join u on t.a = u.x
select * from t cross join u
select * from t join w using (a)
select * from t left join w using (a, b)
select * from t right join w using (a)
select * from t full join w using (a)
select * from t natural join w
select a from t full join w using (a)
select x.a, y.a from t x join w y on x.a = y.a
select x.* from t as x
select p, q from t as x (p, q)
select * from w as x (p)
select j.a from (t join w using (a)) as j
select * from (select a, b from t) s
select s.p from (select a from t) as s (p)
select * from (select 'x' as c, null as d, 1) s
select * from (values (1, 'a'), (2, 'b')) v
select * from (values (1, 'a'), (2.5, null)) as v (n, s)
select n, s from (values (1, 'a')) as v (n, s) where n > 0
values (1, 'a'), (2, 'b')
values (1), (2.5)
values ('a'), (null)
values (1, 2) order by 1 limit 1
values (1), (2) order by column1 desc
select 1 union select 2
select 1 union all select 2.5
select 'a' union select 'b'
select null union select 1
select '1' union select 2
select a from t union select x from u order by a
select a from t intersect select x from u
select a, b from t except all select x, y from u
select v from t union select v from t
select v from t union select b from t
select c from t union all select c from t
select n from t union select n from t
select n from t union select a from t
select d from t union select ts from t
(select a from t order by a limit 1) union all (select a from t limit 2) order by 1
select 1 union select 2 union all select 3 intersect select 4
with x as (select a from t) select * from x
with x (p) as (select a from t), y as (select p + 1 as q from x) select * from x, y
with x as (values (1, 'a')) select column1, column2 from x
with x as (select 'k' as k) select k from x union select 'z'
with x as (select 1 as a) select x.a, t.a from x join t on t.a = x.a
select * from t, lateral (select x from u where u.x = t.a) s
select * from t left join lateral (select x from u where u.x = t.a) s on true
select distinct a, b from t order by b
select distinct b from t
select a from t order by b
select a from t order by a + 1 desc nulls last
select a as x, b from t order by x, 2
select b as a, a as b from t order by a
select a from t limit 10 offset 5
select a from t fetch first 3 rows only
select a from t limit null
select a from t limit all
select a from t limit '5'
select
select from t
table t
select current_date, current_timestamp, localtimestamp, now(), current_user, session_user, current_catalog, current_schema
select current_database(), current_schema(), version(), pg_backend_pid()
select transaction_timestamp(), statement_timestamp()
select length(b), lower(b), upper(v), char_length(b), octet_length(b), length(v), length(c) from t
select substring(b from 2 for 3), substring(b from 2), substring(b, 1, 2), substr(b, 2), left(b, 2), right(b, 1) from t
select trim(b), trim(both 'x' from b), ltrim(b), rtrim(b, 'y'), btrim(b), trim(leading from b), trim(trailing 'z' from b) from t
select position('a' in b), strpos(b, 'a'), replace(b, 'a', 'b'), overlay(b placing 'x' from 2), overlay(b placing 'x' from 2 for 1) from t
select concat(a, b), concat_ws(',', a, b), repeat(b, 2), reverse(b), split_part(b, ',', 1), lpad(b, 5), rpad(b, 5, 'x') from t
select abs(a), abs(n), abs(f), abs(-5), ceil(n), ceil(f), floor(n), round(n), round(n, 1), round(f), trunc(n), trunc(n, 1), sign(n) from t
select sqrt(f), sqrt(a), sqrt(n), power(2, 3), power(f, 2), exp(1), ln(n), log(n), mod(a, 2), mod(l, 2), pi(), random() from t
select ceil(a), floor(a), round(a), sqrt(4), round(2.5), round(1.234, 2)
select extract(year from d), extract(epoch from ts), extract(dow from tz), date_part('year', ts), extract(hour from timestamp '2024-01-01') from t
select date_trunc('day', ts), date_trunc('month', tz), date_trunc('day', d) from t
select d + 1, d - 1, d - d, ts - ts, tz - tz, d + interval '1 day', ts + interval '1 day', tz - interval '1 hour', 1 + d from t
select interval '1 day' * 2, interval '1 day' + interval '2 hours', - interval '1 day'
select ts at time zone 'UTC', tz at time zone 'UTC' from t
select d::text, a::text, n::text, b::varchar(3), a::numeric(10,2), n::int, f::int, f::numeric, ts::date, d::timestamp, o::int, o::text from t
select a::float8, l::int, s::int8, '5'::int2, 5::text, true::int, 'yes'::bool from t
select md5(b), ascii(b), chr(65), initcap(b), translate(b, 'a', 'b'), starts_with(b, 'x') from t
select (a), ((a)), (a + 1) from t
select "a", "Odd Name", "x y"."a" from odd "x y"
select a "Quoted", 1 as "select" from t
select (1, 2) = (1, 2), (a, b) = (1, 'x'), (a, l) < (1, 2) from t
select (a, b) in ((1, 'x'), (2, 'y')) from t
select a = any (array[1, 2]) from t
select true, false, not true, true and null, null is null
select null::int, null::text, null + 1, null || 'x'
select 1 + '2', '2' + 1, '1' || '2', 'a' < 'b'
select 7/2, 7.0/2, 7/2.0, 7%3, 2^3, 2.0^3, 5 & 3, 5 | 3, 5 # 3, ~5, 1 << 3, 16 >> 2, |/ 4.0, @ -5
select 1 < 2, 1 <> 2, 1 != 2, 1 >= 2.5, 'a' = 'a'
select a collate "C" from odd
select b collate "C" from t order by b collate "C"
select count(*) as "count(*)" from t
select max(a) as max, min(a) from t group by b
select t.a, u.x from t, u where t.a = u.x and t.b = u.y order by t.a, u.x
select a from t where o
select a from t where b = 'x' and (a > 1 or n < 2.5) and not o
select a from t where d > '2024-01-01' and ts < now() and tz >= current_timestamp
select sum(n * 2), avg(n + 1), sum(a * 1.5), sum(n) / count(*), round(avg(n), 2) from t
select u, n, u + n, n + 1, n * n, sum(u), max(u) from t
select upper('x'), lower('X'), length('abc'), abs(-1), coalesce('a', 'b')
select date '2024-01-31' + interval '1 month', timestamp '2024-01-01' - date '2023-01-01'
select to_hex(a), to_hex(l), quote_literal(b), quote_ident(b) from t
select make_date(2024, 1, 1), make_timestamp(2024, 1, 1, 0, 0, 0), to_timestamp(0)
select isfinite(d), isfinite(ts) from t
select uid, uid = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', by, by = '\x00' from t
select encode(by, 'hex'), decode('00', 'hex'), length(by), by || by from t
select bit_length(b), sha256(by) from t
select int4(5.5), text(5), float8(1), date('2024-01-01')
select 'abc'::text::varchar(2)::char(5)
select count(*) from (select distinct a from t) s
select a from (select a, b from t where a > 1 order by b limit 5) s order by a
select s.c from (select count(*) as c from t group by a) s where s.c > 1
select t1.a from t t1 join t t2 on t1.a = t2.a join t t3 on t3.a = t2.a
select x from u where x = (select max(a) from t)
select sum(a) from t group by b, d having min(a) > 0 and count(*) > 1 order by sum(a), b
select b from t group by b having b > 'x'
select a, case when count(*) > 1 then 'many' else 'one' end from t group by a
select coalesce(sum(a), 0), coalesce(sum(n), 0), coalesce(avg(a), 0) from t
select pg_catalog.lower(b), pg_catalog.count(*) from t group by b
select a operator(pg_catalog.+) 1 from t
select 5::smallint + 5, 5::smallint + 5::smallint, 5::bigint + 5::smallint
select 1.0, 1.50, 0.1 + 0.2, 1.5 * 1.5, 1.0 / 3
select - 5.5, +5, - (5), -a from t
select 2147483647, 2147483648, 9223372036854775807, 9223372036854775808
