# CREATE SCHEMA with what is in it: sequences, tables, views, indexes, whatever the order they stand in.
create schema sch create view v as select x, y + 1 as n from a create index ai on a (y) create table a (x int primary key, y int default nextval('s')) create sequence s
select table_name, table_type from information_schema.tables where table_schema = 'sch' order by 1
select indexname from pg_indexes where schemaname = 'sch' order by 1
insert into sch.a values (1), (2) returning *
select x from sch.v order by x
select * from a
create table a (z int)
create schema s2 create table a (q int) create view va as select * from a create table sch.b (a int)
select * from s2.va
create schema s2 create table a (q int) create view va as select * from a create table s2.b (a int references a2) 
create schema s2 create table a (q int primary key) create view va as select * from a create table s2.b (a int references a) create view p as select z from public.a
select * from s2.va
select conname, pg_get_constraintdef(oid) from pg_constraint where connamespace = 's2'::regnamespace order by 1
insert into s2.b values (1)
create schema s2 create table c (a int)
create schema s3 create table a (q nope)
create schema s3 create table a (q int) create table a (q int)
create schema s3 create temp table a (q int)
select nspname from pg_namespace where nspname like 's_' order by 1
begin
create schema s3 create table a (q int, z serial) create view v as select q + 1 as r from a
insert into s3.a values (1) returning *
select * from s3.v
savepoint one
create schema s4 create table a (q nope)
rollback to one
create schema s4 create table b (q int) create view v as select * from b
rollback
select nspname from pg_namespace where nspname like 's_' order by 1
create schema s5 create table t (a int) create table u (like t, b int)
select * from s5.u
create schema s6 create table t (a int) create schema s7
show search_path
# meridian
create schema s8 authorization current_user create table t (a int)
create schema s9 create table t (a int) create trigger x before insert on t execute function f()
create schema s10 create table t (a int) grant select on t to public
select * from s10.t
create schema if not exists s2 create table c (a int)
