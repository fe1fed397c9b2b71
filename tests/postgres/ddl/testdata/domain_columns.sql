# Where values of a domain become columns of something else: what stays of the domain, and whose
# rules new rows have then.
create domain pos as int check (value > 0)
create domain plain as int
create table t (id int primary key, p pos, q plain)
insert into t values (1, 1, 1), (2, 2, 2)
create table c1 as select p::int as p, q from t
create table c2 as select 5::pos as p, 6::plain as q
create table c3 as select p from t union select p from t
create table c4 as select coalesce(p, p) as p, case when true then p else q end as b, case when id > 1 then p else p end as d, coalesce(p, 1) as e, max(p) over () as f, -p as g from t
create table c5 as select max(p) as m, p as k from t group by p
create table c6 as with x as (select p, q from t) select * from x
create table c7 as select s.p from (select p, id from t order by 1 limit 5) s join t using (id)
create table c8 as select distinct p from t
create table c9 as select (select p from t where id = 1) as p
create table c10 as select p from t union select 1
create table c11 as select nullif(p, 3) as n, greatest(p, p) as g, p::plain as pl from t
create view v as select id, p, q from t
create view v2 as select p::int as p, 5::pos as f, 6::plain as pl from t
create view v3 as select p from t union all select p from t
create table l1 (like v)
create table l2 (like v2)
create table l3 (like v3)
create table l4 as select * from v
create table l5 as select * from v3
select * into l6 from v
select pg_typeof(p), pg_typeof(p::int), pg_typeof(5::pos), pg_typeof(6::plain), pg_typeof(coalesce(p, p)) from t limit 1
select pg_typeof(p), pg_typeof(f), pg_typeof(pl) from v2 limit 1
select pg_typeof(p) from (select p from t union select p from t) x limit 1
select column_name, domain_name, data_type, udt_name from information_schema.columns where table_name in ('v', 'v2') order by table_name, ordinal_position
insert into l4 values (3, -1, 0)
create or replace view v as select id, p::int as p, q from t
create view w as select 1::plain as p
alter domain plain add constraint ck check (value < 100)
insert into c2 values (5, 500)
insert into l1 values (1, 2, 500)
insert into v values (5, -5, 5)
select pg_typeof(n), pg_typeof(g), pg_typeof(pl) from c11 limit 1
select pg_typeof(coalesce(p, null)), pg_typeof(case when id > 0 then p end) from t limit 1
select pg_typeof(p) from t group by p order by 1 limit 1
create table c12 as select p, row_number() over (order by p) as n from t
insert into c12 values (-1, 1)
with made as (insert into c12 values (7, 1) returning p) select pg_typeof(p) from made
