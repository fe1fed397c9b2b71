# CREATE STATISTICS: what is kept, checked and shown.
create schema other
create table t (a int, b int, c text, j json, unique (a))
create view v as select a, b from t
create sequence q
create statistics s on a, b from t
create statistics s2 (ndistinct) on b, a from t
create statistics on c, a from t
create statistics on c, a from t
create statistics (dependencies, mcv) on (a + b), c, lower(c) from t
create statistics on (lower(c)) from t
create statistics other.s on a, c from t
select stxname, stxnamespace::regnamespace, stxrelid::regclass, stxkeys, stxkind, stxstattarget, stxexprs is null, pg_get_statisticsobjdef(oid), pg_get_statisticsobjdef_columns(oid), pg_statistics_obj_is_visible(oid) from pg_statistic_ext order by 1, 2
select stxname, stxowner = (select oid from pg_authid where rolname = current_user) from pg_statistic_ext order by stxnamespace, 1
create statistics s on a, b from t
create statistics if not exists s on a, b from t
create statistics one on a from t
create statistics twice on a, a from t
create statistics twice on a, (a + b), (a + b) from t
create statistics gone on a, nope from t
create statistics sys on a, ctid from t
create statistics js on a, j from t
create statistics kinds (nothing) on a, b from t
create statistics single (mcv) on (a + b) from t
create statistics many on a, b, c, (a+1), (a+2), (a+3), (a+4), (a+5), (a+6) from t
create statistics vol on a, (random()) from t
create statistics sub on a, (select 1) from t
create statistics two on a, b from t, v
create statistics ov on a, b from v
create statistics oq on a, b from q
create statistics oi on a, b from t_a_key
create statistics ot on a, b from nope
create statistics nope.x on a, b from t
create statistics cat on relname, relkind from pg_class
alter statistics s set statistics 50
alter statistics s set statistics -2
alter statistics s set statistics 20000
select stxstattarget from pg_statistic_ext where stxname = 's' order by 1
alter statistics s set statistics default
alter statistics nope set statistics 5
alter statistics if exists nope set statistics 5
select stxstattarget from pg_statistic_ext where stxname = 's' order by 1
alter statistics s2 rename to s3
alter statistics s3 rename to s
alter statistics nope rename to x
alter statistics s3 set schema other
alter statistics other.s3 set schema public
alter statistics other.s set schema public
alter statistics s3 owner to current_user
comment on statistics s is 'both'
comment on statistics nope is 'x'
select obj_description((select oid from pg_statistic_ext where stxname = 's' and stxnamespace = 'public'::regnamespace), 'pg_statistic_ext')
alter table t rename column c to cc
alter table t alter column b type bigint
select stxname, pg_get_statisticsobjdef(oid) from pg_statistic_ext order by stxnamespace, 1
select classid::regclass, refclassid::regclass, refobjsubid, deptype from pg_depend where classid = 'pg_statistic_ext'::regclass and objid = (select oid from pg_statistic_ext where stxname = 's3') order by 1, 2, 3
alter table t drop column cc
select stxname, stxkeys from pg_statistic_ext order by stxnamespace, 1
drop statistics s, s3
drop statistics s
drop statistics if exists s, nope.s
drop statistics nope.s
create statistics other.s on a, b from t
drop schema other
drop schema other cascade
create statistics s on a, b from t
begin
drop table t cascade
select count(*) from pg_statistic_ext
rollback
select stxname from pg_statistic_ext
drop table t cascade
select count(*) from pg_statistic_ext
