# A schema goes with its types, and these with the columns of tables in other schemas.
create schema n
create schema o
create type n.mood as enum ('sad', 'ok')
create table t (id int primary key, m n.mood)
insert into t values (1, 'sad')
drop schema n
drop schema n cascade
select * from t
insert into t values (2)
create schema n
create domain n.size as int check (value > 0)
create table o.t (id int, s n.size, k int)
create index i on o.t (s)
insert into o.t values (1, 2, 3)
drop schema n cascade
select * from o.t
select indexname from pg_indexes where schemaname = 'o'
create schema n
create type n.mood as enum ('sad', 'ok')
create table o.u (ms n.mood[], id int)
insert into o.u values ('{sad,ok}', 7)
begin
drop schema n cascade
select * from o.u
rollback
select * from o.u
drop table o.u
drop schema n, o cascade
