# SET SCHEMA of sequences and views
create schema x
create sequence s
create table t (a serial primary key, b int)
create view v as select * from t
create view v2 as select * from v
create index ti on t (b)
create type ty as enum ('a')
alter sequence s set schema nope
alter sequence s set schema x
alter sequence s set schema x
alter sequence if exists s set schema x
alter sequence x.s set schema x
alter sequence x.s set schema public
alter sequence t_a_seq set schema x
alter table t_a_seq set schema x
alter sequence t set schema x
alter sequence v set schema x
alter view t set schema x
alter view s set schema x
alter view nope set schema x
alter view if exists nope set schema x
alter view v set schema x
select * from v2
alter view x.v set schema public
alter table v set schema x
alter table s set schema x
alter table ti set schema x
alter table t_pkey set schema x
create sequence s
alter table x.s set schema public
create view v as select 1
alter view x.v set schema public
create type x.w as enum ('b')
create view w as select 1
alter view w set schema x
create temp view tv as select 1
alter view tv set schema x
create temp sequence ts
alter sequence ts set schema x
alter materialized view v set schema x
# meridian
alter sequence x.s set schema pg_catalog
alter view x.v set schema pg_temp
