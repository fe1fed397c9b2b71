create table t (id int primary key, b text)
create table o (id int primary key, b text)
insert into t values (1, 'one'), (2, 'two')
create view plain as select id, b from t where id > 0
create view over_plain as select p.id, o.b from plain p left join o using (id)
create view grouped as select b, count(*) as n from t group by b
create view counted as select count(*) as n from t
create view distinct_ as select distinct b from t
create view having_ as select 1 as x from t having true
create view ranked as select id, rank() over (order by id) as r from t
create view sets as select generate_series(1, id) as g from t
create view united as select id from t union all select id from o
create view limited as select id from t order by id limit 1
create view with_query as with t as (select id from o) select id from t
create view no_table as select 1 as x
create view subquery as select id from (select id from t offset 0) s
create view locking as select id, b from t for update
create view sharing as select id from t for share of t
select * from plain order by id for update
select * from grouped for update
select * from counted for update
select * from distinct_ for update
select * from having_ for update
select * from ranked for update
select * from sets for update
select * from united order by 1 for update
select * from limited for update
select * from with_query for update
select * from no_table for update
select * from subquery order by 1 for update
select * from locking order by id
select * from sharing order by id
select * from locking order by id for share
insert into locking values (3, 'three') returning *
update locking set b = 'drei' where id = 3 returning *
delete from locking where id = 3
select * from o order by id
select count(*) from locking
create view bad as select count(*) from t for update
create view bad as select id from t for update of o
create view bad as select id from t union select id from o for update
insert into o select * from locking
create table copy_of as select * from locking
select * from copy_of order by id
create materialized view m as select id from t for update
# meridian
select * from over_plain p order by id for update of p
