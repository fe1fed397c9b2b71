create table t (a int primary key, b text unique, c int check (c > 0), d int references t (a))
comment on table t is 'the table'
comment on column t.a is 'the key'
comment on column public.t.b is 'text''s own'
comment on constraint t_pkey on t is 'of the key'
comment on constraint t_c_check on t is 'of the check'
comment on constraint t_d_fkey on public.t is 'of the foreign key'
comment on index t_pkey is 'of the index'
create index i on t (c)
comment on index i is 'plain'
create sequence s
comment on sequence s is 'counts'
create view v as select a, b from t
comment on view v is 'looks'
comment on column v.b is 'of the view'
create schema other
comment on schema other is 'another'
select obj_description('t'::regclass), obj_description('t'::regclass, 'pg_class'), obj_description('t'::regclass, 'pg_type'), col_description('t'::regclass, 1), col_description('t'::regclass, 2), col_description('t'::regclass, 3)
select c.relname, d.objsubid, d.description from pg_description d join pg_class c on c.oid = d.objoid and d.classoid = 'pg_class'::regclass where c.relnamespace = 'public'::regnamespace order by 1, 2
select c.conname, obj_description(c.oid, 'pg_constraint') from pg_constraint c where conrelid = 't'::regclass order by 1
select nspname, obj_description(oid, 'pg_namespace') from pg_namespace where nspname = 'other'
alter table t rename to u
alter table u rename column b to bb
alter table u rename constraint t_pkey to u_key
alter table u rename constraint t_c_check to positive
alter view v rename to w
alter schema other rename to others
select c.relname, d.objsubid, d.description from pg_description d join pg_class c on c.oid = d.objoid and d.classoid = 'pg_class'::regclass where c.relnamespace = 'public'::regnamespace order by 1, 2
select c.conname, obj_description(c.oid, 'pg_constraint') from pg_constraint c where conrelid = 'u'::regclass and contype <> 'n' order by 1
select nspname, obj_description(oid, 'pg_namespace') from pg_namespace where nspname like 'other%'
alter table u alter column c type bigint
comment on column u.c is 'wider'
alter table u drop constraint positive
alter table u alter column c type text using c::text || '!'
select col_description('u'::regclass, 3)
alter table u drop column c
select d.objsubid, d.description from pg_description d where d.objoid = 'u'::regclass order by 1
alter table u add column c int
alter table u drop constraint positive
comment on table u is null
comment on sequence s is ''
comment on table u is null
select d.objsubid, d.description from pg_description d where d.objoid in ('u'::regclass, 's'::regclass) order by 1
begin
comment on table u is 'one'
savepoint p
comment on table u is 'two'
comment on column u.a is 'other'
select obj_description('u'::regclass), col_description('u'::regclass, 1)
rollback to p
select obj_description('u'::regclass), col_description('u'::regclass, 1)
rollback
select obj_description('u'::regclass), col_description('u'::regclass, 1)
begin
create table n (a int)
comment on table n is 'new'
comment on column n.a is 'new'
drop table n
create table n (a int)
select obj_description('n'::regclass), col_description('n'::regclass, 1)
comment on table n is 'newer'
commit
select obj_description('n'::regclass), col_description('n'::regclass, 1)
drop view w
create view v as select 1 as x
select obj_description('v'::regclass)
drop schema others
create schema others
select obj_description('others'::regnamespace)
comment on table nope is 'x'
comment on table nope.u is 'x'
comment on table others.u is 'x'
comment on table v is 'x'
comment on view u is 'x'
comment on sequence u is 'x'
comment on index u is 'x'
comment on index nope is 'x'
comment on column u.nope is 'x'
comment on column nope.a is 'x'
comment on column s.last is 'x'
comment on column i.a is 'x'
comment on column v.nope is 'x'
comment on constraint nope on u is 'x'
comment on constraint u_key on nope is 'x'
comment on schema nope is 'x'
comment on database nope is 'x'
comment on table u is 5
comment on nothing u is 'x'
create unique index ui on u (bb, a)
comment on index ui is 'unique'
comment on constraint ui on u is 'x'
drop index ui
create unique index ui on u (bb, a)
select obj_description('ui'::regclass)
create schema moving
create table moving.m (a serial, b int)
create index m_b on moving.m (b)
create view moving.mv as select a from moving.m
alter schema moving rename to moved
select relname, relnamespace::regnamespace from pg_class where relname in ('m', 'm_b', 'm_a_seq', 'mv') order by 1
insert into moved.m (b) values (1) returning a
alter table moved.m set schema public
select relname, relnamespace::regnamespace from pg_class where relname in ('m', 'm_b', 'm_a_seq', 'mv') order by 1
create table nn (a int primary key, b text not null, c int constraint named not null)
comment on constraint nn_b_not_null on nn is 'of b'
comment on constraint named on nn is 'of c'
comment on constraint nn_a_not_null on nope is 'x'
comment on constraint nn_d_not_null on nn is 'x'
create table copied (like nn including comments)
create table bare (like nn)
select conrelid::regclass::text, conname, obj_description(oid, 'pg_constraint') from pg_constraint where contype = 'n' and conrelid in ('nn'::regclass, 'copied'::regclass, 'bare'::regclass) order by 1, 2
alter table nn rename constraint nn_b_not_null to nb
alter table nn rename column b to bb
alter table nn rename to n2
select conname, obj_description(oid, 'pg_constraint') from pg_constraint where contype = 'n' and conrelid = 'n2'::regclass order by 1
alter table n2 alter bb drop not null
alter table n2 alter bb set not null
alter table n2 drop column c
alter table n2 add column c int constraint named not null
select conname, obj_description(oid, 'pg_constraint') from pg_constraint where contype = 'n' and conrelid = 'n2'::regclass order by 1
# meridian
comment on function lower(text) is 'x'
comment on type int4 is 'x'
comment on trigger x on u is 'x'
comment on database postgres is 'all of it'
select datname, shobj_description(oid, 'pg_database'), shobj_description(oid, 'pg_authid') from pg_database
