# What is called for each row of a statement, with names that are known, computed, or none.
create sequence s
create table t (id serial primary key, a text, n numeric)
create table "T x" ("Id" serial, b int)
select pg_get_serial_sequence('nosuch', 'id')
select pg_get_serial_sequence('t', 'nosuch')
select pg_get_serial_sequence('public.t', 'id'), pg_get_serial_sequence('"T x"', 'Id')
select pg_get_serial_sequence('T X', 'Id')
select pg_get_serial_sequence('"T x"', 'id')
select pg_get_serial_sequence('', 'id')
select pg_get_serial_sequence('t', 'a')
select setval(pg_get_serial_sequence('t','id'), (select max(id) from t))
select setval(pg_get_serial_sequence('t','a'), 5)
select nextval(pg_get_serial_sequence('t','a'))
insert into t (a) values ('x'), ('y')
select setval(pg_get_serial_sequence('t','id'), (select max(id) from t))
select setval(pg_get_serial_sequence('"t"','id'), coalesce(max("id"), 1), max("id") IS NOT null) FROM "t"
select setval(pg_get_serial_sequence('"T x"','Id'), coalesce(max("Id"), 1), max("Id") IS NOT null) FROM "T x"
select setval('s', coalesce(max(id),1)) from t
SELECT setval('t_id_seq', (SELECT GREATEST(MAX(id)+(SELECT increment_by FROM pg_sequences where sequencename = 't_id_seq'), (SELECT min_value FROM pg_sequences where sequencename = 't_id_seq')) FROM t), false)
select nextval(name) from (values ('s'), ('t_id_seq')) v(name)
select nextval('s') from generate_series(1, 5)
select id, nextval('s') from t order by id desc
select nextval('s'), setval('s', 50), nextval('s')
select setval('s', 60), nextval('s') from t
select 'x' || nextval('s') || a from t order by a
select nextval('s') as a, 1 as b
select nextval('s')::int as a
select case when false then nextval('s') end, coalesce(1, nextval('s'))
select currval('s')
select currval('s') from t
select lastval() from t
select nextval('s'::regclass::oid)
select nextval('s'::text)
select setval('s', 5::int2), setval('s', 7.0)
select setval('s', '9')
select setval('s', null)
select setval('s', 5, null)
select setval(null, 5)
select nextval(null)
select currval(null)
select nextval(null::regclass)
select nextval(0)
select nextval(1)
select nextval(5.5)
select nextval()
select nextval('s', 1)
select setval('s')
select setval('s', 1, true, true)
select setval('s', 0)
select setval('s', 'x')
select setval('s', id) from t where false
select setval('s', id) from t order by id
select nextval('s') from t limit 1
select currval('s')
insert into t (id, a) select nextval('t_id_seq'), 'q' || id from t order by id
select id, a from t order by 1
update t set n = nextval('s') where id = 3
select count(distinct n) from t
insert into t (id, a) values (nextval('t_id_seq'), 'z') returning id
create sequence "S q"
select nextval('"S q"'), nextval('public."S q"')
select nextval('S q')
select nextval('postgres.public.s')
select nextval('other.public.s')
select nextval('a.b.c.d')
select nextval('')
select nextval('.')
select nextval('nosch.s')
select nextval('t')
select nextval('t_pkey')
drop sequence s cascade
select lastval()
# Behind conditions, in statements that write, in blocks.
drop table t
create sequence s
create sequence r increment 10
create table t (id int, a int, b text)
insert into t values (1, 0, 'x'), (2, 5, 'y'), (3, null, 'z')
select id, case when a = 0 then nextval('s') when a > 0 then 10 / a + nextval('r') else -1 end from t order by id
select id, coalesce(a, nextval('s')) from t order by id
select currval('s'), currval('r')
select id, a > 1 and nextval('s') > 0, a = 0 or nextval('r') > 0 from t order by id
select currval('s'), currval('r')
select id, case when nextval('s') > 5 then nextval('r') end from t order by id
select setval('s', nextval('r')), lastval(), currval('s')
select setval('s', 1) + setval('s', 10), nextval('s')
select nullif(nextval('s'), 11), case nextval('s') when 11 then 'a' when 12 then 'b' end, nextval('s') between 13 and 14, nextval('s')
update t set a = nextval('s'), b = b || nextval('r') where id = 2
select * from t order by id
update t set a = nextval('s') where id = 3 returning a, b
select count(distinct a) from t
insert into t select nextval('s') + 100, g, 'g' || nextval('r') from generate_series(1, 3) g order by g desc
select * from t where id > 100 order by id
insert into t (id) select nextval('s')
create table c as select nextval('s') as n, id from t order by id
select n - min(n) over () from c order by 1
with w as (insert into t (id) select nextval('s') returning id > 0 as ok) select * from w
with w as (insert into t (id) values (1000) returning id) select id, nextval('s') from w
select currval('s')
select random() <> random(), nextval('s') from t limit 1
select b, nextval('s') from (select distinct b from t where id < 4) q order by b
select count(*), nextval('s') from t
select b, count(*), nextval('s') from t where id < 4 group by b having count(*) > 0 order by b
select row_number() over (order by id), nextval('s') from t where id < 4 order by id
select (select nextval('s'))
select (select nextval('s')) from t where id < 4
select nextval('s') union all select nextval('s')
values (nextval('s')), (nextval('s'))
select nextval('s') where false
select nextval('s') limit 0
select currval('s')
create view v as select nextval('s') as n
begin read only
select nextval('s')
rollback
begin read only
select currval('s')
select setval('s', 3)
rollback
begin
savepoint a
select setval('s', 30) from t where id = 1
rollback to a
commit
select nextval('s')
select nextval('s') in (1, 31, 32), greatest(nextval('s'), 5)
select array[nextval('s'), nextval('s')]
select nextval('s')::text || 'x', nextval('s')::int2, 'a' as k
prepare p as select nextval($1), $2::int
execute p('s', 5)
prepare q(text) as select nextval($1)
execute q('s')
execute q('nosuch')
select length(b), setval('s', length(b)) from t where id = 1
select null::int, nextval('s') from t where id = 1
select 'lit', nextval('s') as "N"
select now() is not null, nextval('s')
create table d (id int default nextval('nosuch'::text), x int)
insert into d (x) values (1)
insert into d (x) select 1
create table d2 (id int default nextval('s'::text), x int)
insert into d2 (x) values (1) returning id > 0
insert into d2 (x) select 1 from t limit 2
select count(*), count(distinct id) from d2
drop sequence r
select lastval() > 0
drop view v
drop sequence s cascade
select lastval()
insert into d2 (x) values (1)
# meridian
create sequence s
create table m (id int, a int)
insert into m values (1, 2), (3, 4)
select * from (select nextval('s') as n from m) q
select distinct nextval('s') from m
select max(nextval('s')) from m
select nextval('s') from m order by 1
select nextval('s') from m where nextval('s') > 0
with w as (select nextval('s') as n from m) select count(*) from w
delete from m where id = nextval('s')
explain (costs off) select nextval('s')
merge into m using (values (1)) v(x) on m.id = v.x when matched then update set a = nextval('s')
select * from m where id = nextval('s')
select nextval('s'), * from m where id < 3 order by id offset 1
select nextval('s') in (select 33)
select lastval()
explain (costs off) select nextval('s') from m
create table d4 (id int default setval('s', 500), x int)
select (select setval('s', 500))
insert into m values (setval('s', 500))
