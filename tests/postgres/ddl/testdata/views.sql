create table t (a int, b text, c numeric(10,2))
insert into t values (1, 'x', 1.5), (2, 'y', 2.5)
create view v as select * from t
select * from v order by a
alter table t add column d int default 7
select * from v order by a
alter table t rename column b to bb
select * from v order by a
select b from v where a = 1
alter table t rename to tt
select * from v order by a
create view v as select 1
create or replace view v as select a, b from (select 1 as a, 'x'::text as b) q
create or replace view v as select a as x, bb as b, c from tt
create or replace view v as select a::text as a, bb as b, c from tt
create or replace view v as select a + 10 as a, bb as b, c, d from tt
select * from v order by a
create view w (one, two) as select a, count(*) from v group by a
select * from w order by one
select w.one, x.b from w join v x on x.a = w.one order by 1
create view bad (p, q, r) as select 1, 2
create view bad as select 1 as a, 2 as a
create view bad as select * from nope
create or replace view tt as select 1
drop view v
drop table tt
drop table v
drop view tt
alter table tt drop column a
alter table tt drop column d
alter table tt alter column a type bigint
alter table tt add column e int
alter table tt drop column e
insert into tt values (3, 'z', 9, 9)
select count(*) from w
begin
create view z as select a from v
select * from z order by 1
rollback
select * from z
drop view if exists z
drop view z
alter view w rename to ww
select count(*) from ww
drop view v cascade
select * from ww
create view u as select 1 as one, 'txt' as t, now() is not null as n
select * from u
create view j as with q as (select a from tt where a > 1) select q.a, tt.bb from q join tt using (a)
select * from j order by 1
select a from (select * from j) s order by a
create view agg as select sum(a) s, max(c) m from tt
select * from agg
create view un as select a from tt union all select 100
select * from un order by 1
drop table tt cascade
select * from un
create view p as select $1
create table base (x int)
create view bv as select x from base where x > 0
drop schema public
# meridian
create or replace view bv as select x from bv
create view cv with (security_barrier = true) as select x from base
create temp view tv as select 1
create view sv as select * from meridian.timelines
