# What a kept text names is known by oid: it follows a sequence's names, and keeps it.
create sequence s
create table t (a text default 'x' || nextval('s'), b int default 1)
insert into t (b) values (1), (2)
insert into t (b) select x from (values (1),(2)) v(x)
insert into t default values
select * from t
drop sequence s
select d.deptype from pg_depend d where d.refobjid = 's'::regclass and d.refclassid = 'pg_class'::regclass and d.classid = 'pg_attrdef'::regclass
alter sequence s rename to s2
insert into t (b) values (5) returning *
create schema x
alter sequence s2 set schema x
insert into t (b) values (6) returning *
create sequence s
create sequence s2
insert into t (b) values (7) returning *
alter sequence x.s2 set schema public
drop sequence s2
alter sequence x.s2 rename to s3
alter sequence x.s3 set schema public
alter table t add column c text not null default lpad(nextval('s3'::regclass)::text, 5, '0') || '/' || nextval('s')
select b, c from t order by c
alter table t add column d int default nextval('s3')
select b, d from t order by d
drop sequence s3
alter table t alter c drop default
create table u (like t including defaults)
drop sequence s3
create table w (a text default 'w' || currval('s'), b int)
insert into w (b) values (1) returning *
insert into w (b) select 2 returning *
drop sequence s3, s
drop sequence s3, s cascade
insert into t (b, c) values (8, '') returning *
insert into u (b, c) values (8, '') returning *
insert into w (b) values (3) returning *
# written as an oid, or found when the row is written
create sequence o
create table late (a text default 'o' || nextval('o'::text), b int)
insert into late (b) values (1) returning *
drop sequence o
insert into late (b) values (2)
# tables, views
create table one (a int)
create view seen as select 1 as z
create table two (a oid default 'one'::regclass::oid, b oid default 'seen'::regclass, c int)
create view three as select 'two'::regclass::oid > 0 as name
create view four as select nextval('o4') as n
create sequence o4
create view four as select nextval('o4') as n
select nextval('o4')
select n from four
drop table one
drop view seen
drop table two
drop sequence o4
alter table two rename to zwei
select * from three
drop table one cascade
drop view seen cascade
insert into zwei (c) values (1) returning *
drop table zwei cascade
drop sequence o4 cascade
select * from four
# what an owner takes along
create table p (id serial, z int)
create table q (a text default 'q' || nextval('p_id_seq'), b int, c text default currval('p_id_seq')::text)
drop table p
alter table p drop column id
drop table p cascade
insert into q (b) values (1) returning *
create table p (id serial, z int)
alter table p add column zz text default 'z' || nextval('p_id_seq')
alter table p drop column id
alter table p drop column id cascade
insert into p (z) values (1) returning *
create schema y
create sequence y.s
create table r (a int default nextval('y.s'), b text default 'b' || nextval('y.s'), c int)
drop schema y
drop schema y cascade
insert into r (c) values (1) returning *
# a domain's default
create sequence ds
create domain d as text default 'y' || nextval('ds')
create table dt (a d, b int)
insert into dt (b) values (1), (2) returning *
insert into dt (b) select 3 from (values (1), (2)) v(x) returning *
alter sequence ds rename to dds
insert into dt (b) values (4) returning *
alter domain d drop default
drop sequence dds
# evaluated for each row, by every writer
create sequence m
create table mt (k int primary key, v text default 'm' || nextval('m'), w text default nextval('m') || '-' || nextval('m'))
merge into mt using (values (1), (2)) s(k) on mt.k = s.k when not matched then insert (k) values (s.k)
select * from mt order by k
insert into mt (k) select 3 on conflict do nothing returning *
with x as (insert into mt (k) select 4 returning *) select * from x
