# tables t, c1, c2, c3, c4, s1, s2
create table t (a int not null, b varchar(5), c numeric(6,2), d date)
create table c1 (x int)
create table c2 (x int)
create table c3 (x int)
create table c4 (x int)
create table s1 (x int)
create table s2 (x int)
drop table c1, c2, c3, c4, s1, s2
insert into t values (1, 'x', 1.50, '2024-01-01'), (2, null, 2.25, null)
create table c1 as select * from t
create table c1 as select 1
create table if not exists c1 as select 1
create table c2 (p, q) as select a, b, c from t where a > 1
create table c3 as select a from t with no data
create table c4 as values (1, 'one'), (2, 'two')
create table c5 (a, b, c) as select 1, 2
create table c5 as select 1 as a, 2 as a
create table c5 as select nope from t
create table nope.c5 as select 1
insert into c1 values (null, 'toolong', 3)
insert into c1 values (null, 'short', 3)
insert into c4 values (3, 'three')
select a, c into s1 from t where a = 1
select a into s1 from t
select a as k into s2 from t union select 7 order by 1
truncate c1, c2
truncate table only s1
truncate t, t
truncate nope
truncate c4 cascade
truncate c3 restrict
drop table c3
create table c3 as with q as (select 5 as five) select five, five * 2 as ten from q
select * into c3 from t
