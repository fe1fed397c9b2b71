# A definition's text names a type with its schema only if the search path does not find the type.
create schema app
create schema other
set search_path = app
create type st as enum ('a', 'b')
create domain pos as int check (value > 0) default 3
create table e (s st default 'a', q st[] default '{a}', p pos default 1::pos, t text generated always as (case when s = 'a' then 'x' end) stored, check (s <> 'b'), check (p::pos > 1))
create index ei on e ((s = 'a')) where s <> 'b'
create view v as select 'a'::st as z, s, '{a}'::st[] as y, 'st'::regtype as r, s::text t, 3::pos as pp from e where s <> 'b'
create view w as select * from v where s in ('a', 'b') or s = any (array['a', 'b']::st[])
select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'e'::regclass order by adnum
select pg_get_constraintdef(oid) from pg_constraint where conrelid = 'e'::regclass order by conname
select pg_get_indexdef('ei'::regclass)
select pg_get_viewdef('v'::regclass), pg_get_viewdef('w'::regclass), pg_get_viewdef('v'::regclass, true)
select column_name, column_default, generation_expression from information_schema.columns where table_name = 'e' order by 1
set search_path = ''
select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'app.e'::regclass order by adnum
select pg_get_constraintdef(oid) from pg_constraint where conrelid = 'app.e'::regclass order by conname
select pg_get_indexdef('app.ei'::regclass)
select pg_get_viewdef('app.v'::regclass), pg_get_viewdef('app.w'::regclass)
# A table's row type hides the enum.
set search_path = other, app
select pg_get_viewdef('app.v'::regclass), pg_get_viewdef('app.w'::regclass)
create table other.st (a int)
select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'app.e'::regclass order by adnum
select pg_get_viewdef('app.v'::regclass), pg_get_viewdef('app.w'::regclass)
select 'app.st'::regtype, pg_type_is_visible('app.st'::regtype), 'app.pos'::regtype
drop table other.st
select pg_get_viewdef('app.v'::regclass), pg_get_viewdef('app.w'::regclass)
# So do PostgreSQL's own types, and one of public is not always found.
create type app.text as enum ('a')
create table f (t app.text default 'a', s st default 'a'::st)
select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'f'::regclass order by adnum
select 'app.text'::regtype, pg_type_is_visible('app.text'::regtype)
create type public.mood as enum ('ok')
create table public.m (m public.mood default 'ok')
select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'public.m'::regclass
set search_path = public
select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'public.m'::regclass
# Messages name types in the same way.
create domain app.nn as int not null
create table app.n (p app.pos, n app.nn)
insert into app.n values (-1, 1)
insert into app.n values (1, null)
select (-1)::app.pos
select null::app.nn
create table app.r (a int, b app.st)
select row(1)::app.r
select row(1, date '2020-01-01')::app.r
set search_path = app
insert into n values (-1, 1)
insert into n values (1, null)
select (-1)::pos
select null::nn
select row(1)::r
select row(1, date '2020-01-01')::r
