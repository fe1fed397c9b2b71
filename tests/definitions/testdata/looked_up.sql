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
# meridian
alter table t add column g text generated always as ('sq'::regclass) stored
alter table t add column b text default 'sq'::regclass
create table k1 (a text check (a <> 'sq'::regclass::text))
create domain dd as text check (value <> 'sq'::regclass::text)
