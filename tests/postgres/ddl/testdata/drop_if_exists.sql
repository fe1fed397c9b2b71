# What nobody has is dropped with a notice; places and words of odd definitions.
create temp table tt (a int) on commit drop
prepare p(int) as select $1 as a
create temp table tb on commit drop as execute p(5)
create table t (a int)
drop sequence t
drop view t
create schema if not exists s4 create table x (a int)
create index on missing (a)
alter sequence missing restart
alter table t alter a set default sum(1)
alter table t alter a set default (select 1)
alter table t alter a set default a
alter table t alter a set default count(*) over ()
alter table t alter a set default generate_series(1,3)
create table r (a real, b double precision)
insert into r values ('1e40')
insert into r values ('1e-60')
insert into r (b) values ('1e400')
alter table t drop column xmin
alter table t drop column if exists xmin
alter table t alter column ctid type int
alter table t alter column ctid set not null
alter table t rename ctid to x
alter table t rename a to ctid
drop function if exists foo(int)
drop function if exists foo
drop procedure if exists foo()
drop trigger if exists tr on t
drop rule if exists ru on t
drop extension if exists ext
drop language if exists lang
drop collation if exists coll
drop foreign table if exists ft
drop foreign data wrapper if exists fw
drop server if exists se
drop materialized view if exists mv
drop publication if exists pu
drop event trigger if exists ev
drop policy if exists po on t
drop statistics if exists st
drop access method if exists am
drop role if exists rol
drop routine if exists foo
drop function foo(int)
drop trigger tr on t
drop trigger tr on missing
drop trigger if exists tr on missing
drop materialized view mv
drop extension ext
create table ui (a int, b int)
create unique index ui1 on ui (a) nulls not distinct
alter table ui add primary key using index ui1
alter table t add x int default sum(1)
alter table t add x int default (select 1)
alter table t add x int default 'x'
alter table t add x int default nofun(1)
alter table t add x int check (sum(1) > 0)
alter table t alter a set default nofun(1)
alter table t alter a set default 'x'
create index on nos.missing (a)
alter sequence nos.missing restart
alter table t alter nope set default 1
drop function if exists nos.foo(int)
drop function nos.foo(int)
drop function foo
drop procedure foo(int, text)
drop trigger if exists tr on nos.t
drop trigger tr on nos.t
drop materialized view t
drop materialized view if exists nos.t, u
drop foreign table t
drop foreign table ft
drop rule ru on t
drop policy po on t
drop collation co
drop collation nos.co
drop statistics st, su
drop statistics if exists st, nos.su
drop language lang
drop event trigger ev
drop publication pu
drop foreign data wrapper fw
drop server se
drop access method am
drop function foo(nosuch)
drop function if exists foo(nosuch)
drop procedure if exists foo(int), bar(text, varchar(10))
# Names that other kinds of things have.
drop collation c
drop collation if exists sql
drop access method sql
drop extension if exists heap
