# Columns that go with CASCADE while views read them.
create table t (z int, a int, b int, c text, g int generated always as (b * 2) stored)
insert into t values (0, 1, 2, 'x')
create view one as select a, c from t
create view two as select c from one
create view three as select b from t
create view four as select g from t
comment on view one is 'said'
alter table t drop column a
alter table t drop column a cascade
select * from one
select * from two
select * from three
select * from t
alter table t drop column c cascade, drop column if exists c cascade
alter table t drop column b cascade
select * from four
create table u (id int, x int, y int)
create view all_of_it as select * from u
create view doubled as select x.id, y.x from u x join u y using (id)
begin
alter table u drop column x cascade, drop column y cascade
select count(*) from pg_views where schemaname = 'public'
rollback
select * from all_of_it
alter table u drop column x cascade, drop column y cascade
create view all_of_it as select * from u
select * from all_of_it
create domain positive as int check (value > 0)
create table p (id int, n positive)
create table q (id int, m positive)
create view joined as select p.id, q.m, p.n from p join q using (id)
create view over_it as select m from joined
create view apart as select id from p
drop domain positive cascade
select * from over_it
select * from p, q, apart
# A view that is grouped by a primary key rests on it.
create table g (id int primary key, a int, b text unique)
create table h (id int references g)
insert into g values (1, 2, 'x')
create view by_key as select id, a, count(*) as n from g group by id
create view over_key as select n from by_key
create view inside as select max(q.b) as m from (select id, b from g group by id) q
create view by_all as select id, a, count(*) as n from g group by id, a
create view by_hand as select b from g group by b
alter table g drop constraint g_b_key
alter table g drop constraint g_pkey
alter table h drop constraint h_id_fkey
alter table g drop constraint g_pkey
alter table g drop constraint g_pkey, add primary key (id)
begin
alter table g drop constraint g_pkey cascade
select * from over_key
rollback
select * from over_key
drop view over_key, by_key
alter table g drop constraint g_pkey cascade
select * from inside
select * from by_all
select * from by_hand
# Told is a view that reads the column itself.
create table w (id int, a int)
create view w1 as select id, a from w
create view w2 as select id, a from w1
alter table w alter id type bigint
alter table w alter a type bigint
alter table w drop column a
