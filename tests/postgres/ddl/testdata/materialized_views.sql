# A materialized view holds the rows that its query had when it was refreshed.
create table t (id int primary key, g text, n numeric(10,2))
insert into t values (1, 'a', 1.5), (2, 'a', 2.5), (3, 'b', null)
create materialized view m as select g, count(*) as c, sum(n) as s from t group by g
select * from m order by g
select g, m.c from m where c > 1 order by 1
insert into t values (4, 'b', 7)
select * from m order by g
refresh materialized view m
select * from m order by g
create materialized view if not exists m as select 1 as x
create materialized view m as select 1 as x
create table m (a int)
create view m as select 1 as x
create materialized view t as select 1 as x
select relkind, relispopulated, relhasrules, relpersistence, relreplident, relnatts from pg_class where relname = 'm'
select schemaname, matviewname, tablespace, hasindexes, ispopulated, definition from pg_matviews
select pg_get_viewdef('m'::regclass)
select pg_get_viewdef('m'::regclass, true)
select tablename from pg_tables where tablename in ('m', 't')
select viewname from pg_views where viewname = 'm'
select table_name, table_type from information_schema.tables where table_name in ('m', 't')
select count(*) from information_schema.columns where table_name = 'm'
select count(*) from information_schema.views where table_name = 'm'
select count(*) from information_schema.view_table_usage where view_name = 'm'
select attname, format_type(atttypid, atttypmod), attnotnull from pg_attribute where attrelid = 'm'::regclass and attnum > 0 order by attnum
select typname, typtype from pg_type where typrelid = 'm'::regclass
select rulename, ev_type, is_instead from pg_rewrite where ev_class = 'm'::regclass
select classid::regclass, refclassid::regclass, refobjsubid, deptype from pg_depend where objid in (select oid from pg_rewrite where ev_class = 'm'::regclass) order by 2, 3, 4
select pg_describe_object('pg_class'::regclass, 'm'::regclass, 0)
select pg_relation_is_updatable('m'::regclass, true)
select relname from pg_stat_user_tables where relname in ('m', 't') order by 1
# Nobody changes its rows.
insert into m values ('z', 1, 1)
insert into m select * from m
insert into m values ('z', 1, 1) on conflict do nothing
update m set c = 1
delete from m
merge into m using t on m.g = t.g when matched then delete
truncate m
truncate t, m
begin
lock table m
rollback
begin
lock table t, m in access share mode
rollback
select * from m for update
select t.id from t, m where m.g = t.g for update of t
with d as (delete from m returning *) select * from d
create view over_m as select * from m
insert into over_m values ('z', 1, 1)
update over_m set c = 1
delete from over_m
merge into over_m using t on over_m.g = t.g when matched then delete
select pg_relation_is_updatable('over_m'::regclass, true)
select is_updatable, is_insertable_into from information_schema.views where table_name = 'over_m'
select g from over_m order by g
select * from over_m for update
create view checked as select * from m with check option
drop view over_m
drop view if exists checked
alter table t add foreign key (g) references m (g)
create table refs (g text references m (g))
# What it is not.
drop table m
drop view m
drop index m
drop sequence m
drop materialized view t
alter view m rename to m2
alter table m add column z int
alter table m drop column c
alter table m alter column c set default 1
alter table m alter column c set not null
alter table m alter column c type int
alter table m add constraint k unique (g)
alter materialized view t rename to t2
alter materialized view m add column z int
alter materialized view no_such rename to n
alter materialized view if exists no_such rename to n
comment on view m is 'x'
comment on table m is 'x'
comment on materialized view t is 'x'
refresh materialized view t
refresh materialized view no_such
create view v as select * from t
refresh materialized view v
drop materialized view v
alter materialized view v rename to v2
comment on materialized view v is 'x'
drop view v
# No data.
create materialized view e (k, total) as select g, sum(n) from t group by g with no data
select * from e
select * from m, e
select 1 where exists (select from e)
select count(*) from pg_class where relname = 'e' and not relispopulated
create view over_e as select k from e
select * from over_e
create materialized view ee as select * from e
create materialized view ee as select * from e with no data
create table from_e as select * from e
create table from_e as select * from e with no data
drop table from_e
copy e to stdout
insert into t select 9, k, 1 from e
refresh materialized view ee
refresh materialized view concurrently e
refresh materialized view concurrently e with no data
refresh materialized view e
select * from e order by k
select * from over_e order by k
refresh materialized view ee
select * from ee order by k
refresh materialized view e with no data
select * from e
select * from ee order by k
refresh materialized view e with data
drop materialized view e
drop materialized view e cascade
# Names and forms.
create materialized view f (a, b, c) as select 1 as x, 2 as y
create materialized view f (a) as select 1 as x, 2 as y
select * from f
drop materialized view f
create materialized view f as select 1 as x, 2 as x
create materialized view f as select 'x'
select pg_typeof("?column?") from f
drop materialized view f
create materialized view f as values (1, 'a'), (2, 'b')
select * from f order by 1
drop materialized view f
create materialized view f as table t
select * from f order by 1
drop materialized view f
create unlogged materialized view f as select 1 as x
create materialized view f as select 1 as x into g
create materialized view f as with d as (delete from t returning *) select * from d
create materialized view f as with d as (select 1 as a) select * from d
select pg_get_viewdef('f'::regclass)
drop materialized view f
create temporary table tmp (a int)
create materialized view f as select * from tmp
drop table tmp
create materialized view f as select no_such from t
create materialized view f as select 1 / 0 as x
create materialized view f as select (1 / n)::numeric(8,2) as x from t where n is not null with no data
update t set n = 0 where id = 1
refresh materialized view f
select * from f
update t set n = 1.5 where id = 1
refresh materialized view f
select count(*) from f
drop materialized view f
create materialized view f with (fillfactor = 70) as select 1 as x
select reloptions from pg_class where relname = 'f'
alter materialized view f set (fillfactor = 80)
alter materialized view f reset (fillfactor)
select reloptions from pg_class where relname = 'f'
alter materialized view f set (no_such = 1)
drop materialized view f
create materialized view f with (no_such = 1) as select 1 as x
create materialized view no_such.f as select 1 as x
create materialized view f tablespace nowhere as select 1 as x
drop materialized view f
drop materialized view if exists f
drop materialized view f, m
# Renamed, moved, owned, commented.
alter materialized view m rename to mm
alter materialized view mm rename column c to cnt
alter materialized view mm rename column no_such to x
alter materialized view mm rename column cnt to g
alter table mm rename column s to total
alter table mm rename to m
select pg_get_viewdef('m'::regclass)
select * from m order by g
refresh materialized view m
select * from m order by g
create schema s
alter materialized view m set schema s
select * from m
select count(*) from s.m
refresh materialized view s.m
alter materialized view if exists no_such set schema s
alter materialized view s.m set schema public
comment on materialized view m is 'kept rows'
comment on column m.cnt is 'how many'
select obj_description('m'::regclass), col_description('m'::regclass, 2)
create role keeper
alter materialized view m owner to keeper
select matviewowner = 'keeper' from pg_matviews where matviewname = 'm'
alter materialized view m owner to current_user
grant select on m to keeper
grant select (g) on table m to keeper
select has_table_privilege('keeper', 'm', 'select'), has_table_privilege('keeper', 'm', 'insert')
select count(*) from information_schema.table_privileges where table_name = 'm'
revoke all on m from keeper
drop role keeper
# Dependencies.
alter table t rename column g to grp
alter table t rename to base
select pg_get_viewdef('m'::regclass)
refresh materialized view m
select * from m order by g
drop table base
alter table base drop column n
alter table base alter column n type float8
alter table base alter column grp type varchar(10)
create view over_m as select g from m
create materialized view m3 as select g from over_m
drop materialized view m
drop view over_m
drop schema s
select * from m3 order by g
alter table base drop column n cascade
select relname from pg_class where relname in ('m', 'over_m', 'm3')
create materialized view m as select grp from base
create materialized view m3 as select * from m
drop materialized view m cascade
create materialized view m as select grp from base
drop table base cascade
select relname from pg_class where relname in ('m', 'base')
create schema s2
create table s2.t (a int)
create materialized view s2.m as select 1 as x
drop schema s2
drop materialized view s2.m
create materialized view m as select * from s2.t
drop schema s2
drop schema s2 cascade
create type mood as enum ('sad', 'ok')
create materialized view m as select 'ok'::mood as f
drop type mood
drop materialized view m
drop type mood
# Indexes, and REFRESH CONCURRENTLY.
create table t (id int primary key, g text, n int)
insert into t values (1, 'a', 1), (2, 'b', 2)
create materialized view m as select id, g, n from t
refresh materialized view concurrently m
create index m_g on m (g)
refresh materialized view concurrently m
create unique index m_part on m (id) where n > 0
create unique index m_expr on m (abs(id))
refresh materialized view concurrently m
create unique index m_id on m (id)
refresh materialized view concurrently m
insert into t values (3, 'c', 3)
refresh materialized view concurrently m
select * from m order by id
select indexname, indexdef from pg_indexes where tablename = 'm' order by 1
select hasindexes from pg_matviews where matviewname = 'm'
select relhasindex from pg_class where relname = 'm'
drop index m_part, m_expr
create materialized view u as select g, n from t
create unique index u_n on u (n)
insert into t values (4, 'd', 3)
refresh materialized view u
refresh materialized view concurrently u
select * from u order by n, g
create unique index u_g on u (g)
refresh materialized view u
select * from u order by n, g
refresh materialized view concurrently u with no data
refresh materialized view u with no data
refresh materialized view concurrently u
update t set n = 4 where id = 4
refresh materialized view u
select * from u order by n, g
create table like_m (like m)
select * from like_m
create statistics st on id, g from m
analyze m
alter index m_id rename to m_key
alter table m rename column id to key
select indexdef from pg_indexes where indexname = 'm_key'
select m from m order by key limit 1
select (m).g from m order by key limit 1
# In one transaction.
begin
insert into t values (5, 'e', 5)
refresh materialized view m
select count(*) from m
select count(*) from pg_matviews where ispopulated and matviewname = 'm'
rollback
select count(*) from m
begin
create materialized view inside as select count(*) as c from t
insert into t values (6, 'f', 6)
select * from inside
refresh materialized view inside
select * from inside
commit
select * from inside
begin read only
refresh materialized view inside
rollback
# Constants, clocks and sequences.
create sequence sq
create materialized view nx as select nextval('sq') as v, g from t where id < 3
select count(*) from nx
refresh materialized view nx
select max(v) from nx
drop sequence sq
create materialized view clock as select now() as at, current_user as who
refresh materialized view clock
select who = current_user, at <= now() from clock
# meridian
create materialized view followed with (refresh = 'on commit') as select 1 as x
create materialized view follows with (refresh = '10 s') as select 1 as x
create materialized view follows with (refresh = manual) as select 1 as x
select reloptions from pg_class where relname = 'follows'
alter materialized view follows set (refresh = 'manual')
alter materialized view follows set (refresh = 'on commit')
alter materialized view follows reset (refresh)
create materialized view kept with (history = '7 days', cluster_by = 'g') as select g, n from t
refresh materialized view kept
select * from kept where g = 'a'
create materialized view f using heap as select 1 as x
create materialized view f as select * from pg_class
create materialized view f as execute nothing
create materialized view g as select 'ok' as f
copy g from stdin
create type mood as enum ('sad', 'ok')
create materialized view moody as select 'ok'::mood as f
drop type mood cascade
alter type mood rename value 'ok' to 'fine'
alter type mood add value 'great'
select * from moody
create table base_of (x int)
create materialized view d1 as select x from base_of
create index d1_x on d1 (x)
create view d2 as select x from d1
comment on materialized view d1 is 'goes'
drop table base_of cascade
select relname from pg_class where relname in ('base_of', 'd1', 'd2', 'd1_x')
