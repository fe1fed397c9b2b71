# The index of a key has a name that no other relation of its schema may have.
create table a (i int primary key, t text, unique (t))
create table a_pkey (i int)
create table if not exists a_pkey (i int)
create table if not exists a_pkey as select 1
create table a_t_key as select 1
select 1 into a_t_key
create view a_pkey as select 1
create or replace view a_pkey as select 1 as x
create sequence a_pkey
create sequence if not exists a_pkey
create index a_t_key on a (t)
create unique index a_t_key on a (i)
create unique index if not exists a_t_key on a (i)
create index if not exists a_pkey on a (t)
create unique index u on a (i)
create unique index if not exists u on a (t)
create unique index u on a (t)
create index u on a (t)
create index if not exists u on a (t)
create table u (a int)
create type a_pkey as enum ('x')
drop type a_pkey
create domain a_pkey as int
create schema x
create table x.a_pkey (i int)
create table x.o (i int constraint a_t_key unique)
alter table x.o set schema public
create view x.v1 as select 1
create table w (i int constraint v1 unique)
alter view x.v1 set schema public
create sequence x.v1s
create table w2 (i int constraint v1s unique)
alter sequence x.v1s set schema public
select relname, relkind from pg_class where relnamespace = 'public'::regnamespace order by 1
select to_regclass('u')::text, to_regclass('a_pkey')::text
