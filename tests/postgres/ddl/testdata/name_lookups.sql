# What is computed for every row and would look a name up in the catalog.
create table t (id int, ts timestamptz)
create sequence sq
insert into t values (1, null)
create table t2 (id int, g text generated always as (t2.*) stored)
select (select max(a1.ts) from t a3) g, count(*) from t a1 group by 1
create table k2 (a text default 'sq'::regclass)
insert into k2 default values
insert into k2 select * from (values ('x')) v
select * from k2

alter table t add column g text generated always as ('sq'::regclass) stored
alter table t add column b text default 'sq'::regclass
create table k1 (a text check (a <> 'sq'::regclass::text))
create domain dd as text check (value <> 'sq'::regclass::text)
insert into k1 values ('sq')
insert into k1 values ('x')
alter table k1 add check (a <> 't'::regclass::text)
create table k3 (a dd)
insert into k3 values ('sq')
insert into k3 values ('y')
insert into t (id) values (2)
select * from t order by id
create sequence "S 1'x"
create table q1 (a int default nextval('"S 1''x"'))
select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'q1'::regclass
create table q2 (a text default 'sq'::regclass, b int)
