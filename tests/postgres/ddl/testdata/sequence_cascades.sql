# What goes with a sequence: defaults, views over it, and a domain whose default names it, with all of its columns.
create sequence s
create domain d as int default nextval('s')
create domain d2 as text default 'x' || nextval('s')
create table t (a d, b int, c int default nextval('s'), d d)
create index on t (a)
create table t2 (a int default nextval('s'), b d2)
insert into t (b) values (0)
create view v as select a, b from t
create view v2 as select b from t
create view v3 as select nextval('s') as n
drop sequence s
drop sequence s cascade
insert into t (b) values (1) returning *
insert into t2 default values returning *
select * from v2 order by b
select * from v
select typname from pg_type where typname in ('d', 'd2')
create sequence s1
create sequence s2
create domain e1 as int default nextval('s1')
create domain e2 as int default nextval('s2') + nextval('s1')
create table u (a e1, b e2, c int)
create table u2 (a e2 primary key, b int unique)
create table u3 (a e1 references u2, b e1, x int references u2 (b))
drop sequence s1, s2
begin
drop sequence s1, s2 cascade
select * from u
rollback
drop sequence s1, s2 cascade
select * from u
select * from u2
insert into u2 values (1)
insert into u3 values (1), (2)
# both sides of a foreign key, by the type
create domain k as int
create table p (a k primary key, b int unique)
create table c (a k references p, b k, x int references p(b))
drop domain k cascade
insert into p values (1)
insert into c values (1) returning *
# the sequence of a column
create table a (i serial, j int, k serial, l text)
alter table a alter j set default nextval('public.a_i_seq'), alter l set default 'x' || nextval('a_k_seq')
create table b (i int default nextval('a_i_seq'), j int)
create table c1 (i int default nextval('a_i_seq'), j text default 'k' || nextval('a_k_seq'), k int)
create view vb as select i, j from c1
alter view vb alter j set default 'n' || nextval('a_i_seq'), alter i set default nextval('a_k_seq')
alter view vb alter i set default nextval('a_k_seq')
create view va as select nextval('a_i_seq') as n
create view vva as select n + 1 as m from va
alter table a drop column i
alter table a drop column i cascade
insert into b (j) values (1) returning *
insert into c1 (k) values (1) returning *
insert into a default values returning *
insert into vb default values returning *
select * from va
alter table a drop column k
alter table a drop column k cascade
insert into a default values returning *
insert into c1 (k) values (2) returning *
insert into vb default values returning *
create table a2 (i serial, k serial, z int)
create view v4 as select z from a2
alter view v4 alter z set default nextval('a2_i_seq') + nextval('a2_k_seq')
create table b2 (i int default nextval('a2_i_seq'), k int default nextval('a2_k_seq'), r int)
alter table a2 drop column i cascade, drop column k cascade
insert into v4 default values returning *
insert into b2 (r) values (1) returning *
create table f (i serial, z int)
create table g (i int default nextval('f_i_seq'), z int)
create domain h as int default nextval('f_i_seq')
create table fk (h h, i int)
drop table f
alter table f drop column i
create schema sc
create sequence sc.s
create domain hh as int default nextval('sc.s')
create table l (h hh, i int)
drop schema sc
# What is temporary takes the defaults of what is not.
create temp sequence ts
create table t5 (a int default nextval('ts'), b text default 'x' || nextval('ts'), c int)
create view v5 as select a, c from t5
alter view v5 alter a set default nextval('ts')
insert into t5 (c) values (1) returning *
insert into v5 (c) values (1) returning *
discard temp
insert into t5 (c) values (2) returning *
insert into v5 (c) values (2) returning *
# meridian
drop table f cascade
alter table f drop column i cascade
drop schema sc cascade
insert into fk (i) values (1) returning *
insert into l (i) values (1) returning *
create sequence s
create table m (a int check (a <> 's'::regclass::oid::int), b int)
drop sequence s cascade
# PostgreSQL drops these with the session, and columns with them.
create temp sequence ts
create domain td as int default nextval('ts')
create domain td as int default 5
alter domain td set default nextval('ts')
alter domain td add check (value <> 'ts'::regclass::oid::int)
create table tt (a int, g int generated always as (a + coalesce('ts'::regclass::oid::int, 0)) stored)
create table tt (a td, b int, check (b <> 'ts'::regclass::oid::int))
create table tt (a td, b int)
alter table tt add check (b <> 'ts'::regclass::oid::int)
alter table tt add column c int default 4, add check (b <> 'ts'::regclass::oid::int)
create index on tt ((b + 'ts'::regclass::oid::int))
create view tv as select 'ts'::regclass::oid as o
create temp view tv as select 'ts'::regclass::oid > 0 as o
select * from tv
discard temp
insert into tt (b) values (1) returning *
create table own (i serial, j int default nextval('own_i_seq'))
create table own (i serial, j text default 'x' || nextval('public.own_i_seq'::regclass))
create table own (i serial, j text default 'own_i_seq')
alter table own add column k serial, add column l int default nextval('own_k_seq')
alter table own add column l int default nextval('own_i_seq')
insert into own default values returning *
