create table t (a int, b int)
insert into t values (1, 2)
create view agg as select sum(a) as a from t
create view grp as select a from t group by a
create view hav as select a from t group by a having count(*) > 0
create view dis as select distinct a from t
create view uni as select a from t union all select b from t
create view wit as with w as (select 1 as a) select w.a from w
create view lim as select a from t limit 1
create view win as select a, row_number() over () as n from t
create view srf as select a, generate_series(1, 2) as g from t
create view joi as select t.a from t join t u on t.a = u.a
create view two as select t.a from t, t u
create view nul as select 1 as a
create view val (a) as values (1)
create view exp as select a + 1 as a from t
create view sub as select a from (select a from t) s
create view over_ as select a from agg
insert into agg values (1)
insert into grp values (1)
update hav set a = 1
delete from dis
insert into uni values (1)
update wit set a = 1
delete from lim
insert into win (a) values (1)
update srf set a = 1
delete from joi
insert into two values (1)
update nul set a = 1
delete from val
insert into exp values (1)
update sub set a = 1
delete from over_
merge into agg using t on agg.a = t.a when matched then update set a = 1
merge into agg using t on agg.a = t.a when matched then delete when not matched then insert values (1)
merge into grp using t on grp.a = t.a when not matched then insert values (1)
merge into exp using t on exp.a = t.a when not matched then insert values (1)
create view inner_ as select max((select max(a) from t)) as m, 1 as a from t
create view scalar as select (select max(a) from t) as m, a from t
update inner_ set a = 1
update scalar set a = 5 returning *
delete from exp
truncate scalar
create index on scalar (a)
create unique index i on scalar (a)
copy scalar to stdout
select * from t
# meridian
grant select on t to public
revoke all on t from public
alter table t owner to somebody
create role somebody
reassign owned by a to b
alter role somebody set search_path = x
