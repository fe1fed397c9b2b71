# ALTER TABLE names relations of other kinds; ALTER VIEW names no table.
create table t (id int primary key, a int)
insert into t values (1, 10)
create view v as select id, a from t
create sequence s
alter table v rename to w
table w
alter table s rename to r
select nextval('r')
alter table w rename to t
alter table r rename to w
alter view t rename to x
alter view if exists nope rename to x
alter table if exists nope rename to x
drop view w
alter table t rename to v
table v

# --- labels get other names, so no generated column is made of them ------------------------------
create type mood as enum ('sad', 'ok')
create table g (m mood, x text)
alter table g add column shown text generated always as (m::text) stored
alter table g add column made mood generated always as (x::mood) stored
alter table g add column high boolean generated always as (m > 'sad') stored
insert into g values ('ok', 'x') returning *

# --- what a domain says of NULL --------------------------------------------------------------------
create domain given as int not null
create table d (a given, b int)
select column_name, is_nullable from information_schema.columns where table_name = 'd' order by 1
