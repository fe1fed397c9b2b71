create table t (a int)
insert into t values (1)
create temp table t (a int primary key, b text default 'x')
select * from t
insert into t values (5), (6)
insert into t values (5)
select * from t order by a
select * from public.t
select * from pg_temp.t order by a
insert into public.t values (2)
update pg_temp.t set b = 'y' where a = 5
delete from pg_temp.t where pg_temp.t.a = 6
select * from t
drop table t
select * from t order by a
create temporary table t2 as select a, a * 2 as twice from t
select * from t2 order by a
select a into temp t3 from t where a = 1
select * from t3
create temp table t4 (like t2 including all, c serial)
insert into t4 (a) values (7) returning *
create index on t4 (a)
create unique index u4 on t4 (a)
insert into t4 (a) values (7)
alter table t4 add column d int default 3
alter table t4 rename to t5
select * from t5
select relname, relkind, relpersistence, relnamespace = pg_my_temp_schema() from pg_class where relpersistence = 't' order by 1
select table_name, table_type from information_schema.tables where table_name in ('t', 't2', 't5') order by 1
select current_schema(), current_schemas(false)
create temp view v as select * from t5
select * from v
create view w as select a from t2
create or replace view w as select a, twice from t2
create view y as select * from w
select relname, relpersistence from pg_class where relname in ('v', 'w', 'y') order by 1
create temp sequence s
select nextval('s'), nextval('s')
select currval('s')
create temp table public.no (a int)
create temp table pg_temp.yes (a int)
create table pg_temp.also (a int)
select relname, relpersistence from pg_class where relname in ('yes', 'also') order by 1
create table no (a int) on commit drop
create table no (a int) on commit delete rows
create temp table p (a int primary key)
create temp table c (a int references p)
insert into c values (1)
create table perm (a int primary key)
create temp table c2 (a int references perm)
create table c3 (a int references p)
alter table perm set schema pg_temp
alter table p set schema public
begin
create temp table d (a int) on commit drop
insert into d values (1), (2)
create temp table e (a int primary key) on commit delete rows
insert into e values (1), (2)
create temp table f (a int) on commit preserve rows
insert into f values (1), (2)
select count(*) from d, e, f
savepoint one
insert into e values (3)
create temp table g (a int)
rollback to one
select * from g
rollback
begin
create temp table d (a int, b serial) on commit drop
create index on d (a)
create temp view dv as select * from d
insert into d values (1), (2)
create temp table e (a int primary key) on commit delete rows
insert into e values (1), (2)
create temp table f (a int) on commit preserve rows
insert into f values (1), (2)
select * from dv order by a
commit
select * from d
select * from dv
select * from e
select * from f order by a
insert into e values (1), (2)
select * from e
begin
insert into e values (1), (2)
savepoint one
insert into e values (3)
update e set a = a + 10
rollback to one
select * from e order by a
commit
select * from e
create temp table gone (a int) on commit drop
select * from gone
create temp table gone on commit drop as select 1 as a
select * from gone
create temp table kept on commit delete rows as select 1 as a
select * from kept
create temp table if not exists f (b int)
create table if not exists f (b int)
select * from public.f
drop table public.f
create temp table f (b int)
begin read only
insert into f values (3)
update f set a = 4 where a = 3
truncate f
create temp table never (a int)
rollback
begin read only
insert into f values (3)
select * from f order by a
insert into t values (3)
rollback
select * from f order by a
truncate f
select * from f
comment on table f is 'of f'
select obj_description('f'::regclass)
select 'f'::regclass, 'pg_temp.f'::regclass = 'f'::regclass, to_regclass('f')
set search_path = public, pg_temp
create table f (z text)
select * from f
drop table f
select * from f
set search_path = pg_temp
create table landed (a int)
select relname, relpersistence from pg_class where relname = 'landed'
select current_schema() = (select nspname from pg_namespace where oid = pg_my_temp_schema())
reset search_path
drop view pg_temp.v
drop table pg_temp.landed, yes
create table perm2 (a int default nextval('s'), b int)
insert into perm2 (b) values (1) returning *
discard temp
insert into perm2 (b) values (1) returning *
select * from t2
select nextval('s')
select relname from pg_class where relpersistence = 't'
create temp table again (a int)
insert into again values (1)
discard all
select * from again
create temp table again (a int)
begin
discard temp
select * from again
rollback
select * from again
begin
discard all
rollback
create temp table m (a int primary key, b int)
insert into m values (1, 1), (2, 2)
merge into m using (values (2, 20), (3, 30)) as s (a, b) on m.a = s.a when matched then update set b = s.b when not matched then insert values (s.a, s.b)
select * from m order by a
insert into m values (1, 5) on conflict (a) do update set b = excluded.b returning *
insert into t select a from m where a > 2
with moved as (delete from m where a = 1 returning a) insert into t select a from moved
select * from t order by a
drop table if exists m, nope
# meridian
select * from pg_temp_99.t
drop table pg_temp_99_5.t
create table pg_temp_99.t (a int)
create temp table ec (a int primary key) on commit delete rows
create temp table ed (a int references ec)
create view pg_temp.z as select 1 as a
select * from z
create temp table other as select 1 as a
create view public.x as select a from other
create unlogged table unl (a int)
alter schema pg_temp rename to other
create schema pg_temp_5
