# What is named with a schema that is not there.
alter table nosch.t add column a int
alter table if exists nosch.t add column a int
alter table nosch.t rename to x
alter table if exists nosch.t rename to x
alter table nosch.t rename column a to b
alter table if exists nosch.t rename column a to b
alter table nosch.t set schema public
alter table if exists nosch.t set schema public
drop table nosch.t
truncate nosch.t
drop sequence nosch.s
drop sequence if exists nosch.s
alter sequence nosch.s restart
alter sequence if exists nosch.s restart
alter view nosch.v rename to w
alter view if exists nosch.v rename to w
alter index nosch.i rename to j
alter index if exists nosch.i rename to j
create index on nosch.t (a)
create table nosch.t (a int)
create type nosch.e as enum ('x')
create domain nosch.d as int
insert into nosch.t values (1)
update nosch.t set a = 1
delete from nosch.t
select * from nosch.t
comment on table nosch.t is 'x'
comment on column nosch.t.a is 'x'
grant select on nosch.t to public
# DROP tells of the schema first, then of the name alone.
drop view nosch.v
drop index nosch.i
drop table if exists nosch.t
drop view if exists nosch.v
drop index if exists nosch.i
drop type if exists nosch.e
drop domain if exists nosch.d
drop table if exists nosch.t, public.zz, zz
drop view public.zz
drop index public.zz
drop sequence public.zz
drop view postgres.public.zz
drop table nodb.nosch.t
drop table if exists nodb.nosch.t
drop view nodb.nosch.v
drop index nodb.nosch.i
drop sequence nodb.nosch.s
drop table pg_catalog.zz
drop table if exists information_schema.zz
create view vw as select 1 as a
drop table vw
drop index vw
drop table if exists vw
create table tt (a int)
drop view tt
# References, and what looks after files.
create table r (a int references nosch.t)
create table r (a int references nosch.t (a))
alter table tt add foreign key (a) references nosch.t
alter table tt add column b int references nosch.t
alter table tt add foreign key (a) references zz
analyze nosch.t
analyze zz
