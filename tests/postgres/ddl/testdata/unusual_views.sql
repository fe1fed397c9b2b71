# Views that few people write: columns of odd types and names, what may be replaced, what rests on what.
create table t (id int primary key, b text, n numeric(6,2), ts timestamp(3), arr int[], c char(4), v varchar(5))
insert into t values (1, 'one', 1.5, '2025-01-01 10:00:00.123', '{1,2}', 'ab', 'vv'), (2, 'two', 2.25, null, null, null, null)
create view r1 as select row(1, 2) as r
create view r2 as select row(id, b) from t
create view r4 as select (select row(1)) as r
create view r5 as select null as n, 'x' as s, pg_typeof(null) as ty
select n, s, pg_typeof(n), pg_typeof(s) from r5
create view p1 as select pg_sleep(0)
create view p2 as select pg_sleep(0) as v, 1 as one
select one from p2
create view e1 as select from t
select count(*) from e1
create view e2 as select
select * from e2
create view d1 as select id, id from t
create view d2 as select * from t a join t b on a.id = b.id
create view d3 as select count(*), count(id) from t
create view d4 (x, y) as select count(*), count(id) from t
select * from d4
create view d5 (x) as select id, b from t
select * from d5 order by 1
create view d6 (x, x) as select 1, 2
create view d7 (b) as select id, b from t
create view u1 as select 1 + 1, 'a' || 'b'
create view u2 as select 1 + 1, id from t
select * from u2 order by 2
create view n1 as select "?column?" + 1 as z from u2
select * from n1
create view c1 as select v, c, n, ts, arr, b from t
select attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'c1'::regclass and attnum > 0 order by attnum
create view c2 as select v || 'x' as a, c || 'x' as b, n + 1 as d, ts + '1 day' as e, arr || 3 as f, coalesce(v, 'abcdefg') as g, case when true then v else v end as h, n * 1.0 as i, substring(v, 1, 2) as j, v::varchar(3) as k, upper(c) as l from t
select attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'c2'::regclass and attnum > 0 order by attnum
create view c3 as select v from t union all select v from t
create view c4 as select v from t union all select 'abc'
create view c5 as select v from t union all select b from t
create view c6 as select n from t union all select n + 1 from t
create view c7 as values (1, 'x'), (2, null)
select attrelid::regclass as view, attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid in ('c3'::regclass, 'c4'::regclass, 'c5'::regclass, 'c6'::regclass, 'c7'::regclass) and attnum > 0 order by 1, attnum
select * from c7 order by column1
create or replace view c3 as select v::varchar(6) from t union all select v from t
create or replace view c3 as select b as v from t
create or replace view c3 as select v::varchar(5) as v from t
create or replace view c3 as select v as w from t
create or replace view c3 as select v, id from t
create or replace view c3 as select v from t
create or replace view c3 as select v, id, v as again from t
create or replace view c1 as select v, c, n::numeric as n, ts, arr, b from t
create or replace view c1 as select v, c, n, ts::timestamp as ts, arr, b from t
create or replace view c1 as select v, c, n, ts, arr::bigint[] as arr, b from t
create or replace view c1 as select v, c::char(5) as c, n, ts, arr, b from t
create or replace view c1 as select v, c, n, ts, arr, b from t where id > 0
create or replace view c1 as select * from c3
create or replace view t as select 1
create or replace view nope.v as select 1
create view pg_catalog.v as select 1
create view t as select 1
create sequence sq
create view sq as select 1
create or replace view sq as select 1
create view selfish as select * from selfish
create view a1 as select id from t
create view a2 as select id from a1
create view w1 as with q as (select id from t) select * from q
create view w2 as with q as (insert into t (id) values (9) returning id) select * from q
create view w3 as with recursive q(i) as (select 1 union all select i + 1 from q where i < 3) select * from q
select * from w3 order by 1
create recursive view w4 (i) as select 1 union all select i + 1 from w4 where i < 3
select * from w4 order by 1
create view i1 as select id into nowhere from t
create view f1 as select * from generate_series(1, 2) g
create view f2 as select * from generate_series(1, 2) with ordinality
create view f3 as select g, t.id from t, lateral generate_series(1, t.id) g
create view f4 as select id from t for update
create view f5 as select id from t limit 1 offset 1
create view f6 as select distinct on (b) b, id from t order by b, id desc
create view f7 as select unnest(arr) as x, id from t
create view f8 as select * from unnest(array[1,2], array['a','b']) as u(x, y)
select * from f1 order by 1
select * from f2 order by 1
select * from f3 order by 1, 2
select * from f4 order by 1
select count(*) from f5
select * from f6 order by 1
select * from f7 order by 1
select * from f8 order by 1
create view s1 as select max(id) as m, b from t group by b having count(*) > 0
create view s2 as select id, rank() over (order by id desc) from t
create view s3 as select id, exists (select 1 from s1 where s1.m = t.id) as e from t
create view s4 as select (select max(m) from s1) as top
select * from s3 order by 1
drop view s1
drop view s1, s3
drop view s1, s3, s4
create view l1 as select $1 as x
create view l2 as select id from t where id = $1
create view "Odd ""name" as select id as "Id", b as "B b" from t
select "Id" from "Odd ""name" order by 1
drop view "Odd ""name"
create temp view tv as select id from t
create view over_tv as select * from tv
create unlogged view uv as select 1
create view if not exists nv as select 1
create materialized view mv2 as select 1 with nodata
alter table t drop column n
alter table t alter column v type varchar(9)
alter table t alter column id type bigint
alter table t drop column arr restrict
drop table t
select viewname, viewowner = current_user as own from pg_views where schemaname = 'public' and viewname like 'c_' order by 1
select table_name, is_updatable, is_insertable_into, check_option from information_schema.views where table_schema = 'public' and table_name in ('c1', 'c2', 'c3', 'd3', 'd4', 'd5', 'u2', 'w1', 'f4', 'f5', 'f6', 'f7', 'n1', 'e1', 'a2') order by 1
select table_name, column_name, data_type, is_updatable from information_schema.columns where table_name in ('u2', 'c3', 'r5', 'd5', 'p2') order by 1, ordinal_position
# meridian
create view r3 as select t from t
create or replace view a1 as select id from a1
create or replace view a1 as select id from a2
