# A table of what a prepared statement selects.
create table t (a int, b text)
insert into t values (1, 'x'), (2, 'y'), (3, 'z')
create table n as execute nope
prepare p as select a, b from t where a > 1
create table n as execute p
select * from n order by a
create table n as execute p
create table if not exists n as execute p
prepare q (int, text) as select $1 + a as sum, $2 as what from t
create table n2 as execute q(10, 'w')
select * from n2 order by sum
select column_name, data_type from information_schema.columns where table_name = 'n2' order by 1
create table n3 (x, y) as execute q(1 + 1, upper('w'))
select * from n3
create table n4 as execute q(10)
create table n4 as execute q(10, 'w', 5)
create table n4 (x, y, z) as execute q(10, 'w')
create temp table n5 as execute q(20, null)
select * from n5 order by sum
deallocate p
prepare p as select b from t
create table n6 as execute p
select * from n6 order by b
prepare i as insert into t values (4, 'w')
create table n7 as execute i
prepare v as values (1, 2), (3, 4)
create table n8 as execute v
select * from n8 order by 1
begin
create table n9 as execute p
insert into n9 values ('own')
select * from n9 order by b
rollback
select * from n9
prepare d as select a from t where b = $1
create table n10 as execute d('x'); create table n11 as execute d('y'); create table n12 as execute d('z')
select n10.a, n11.a, n12.a from n10, n11, n12
create sequence sq
prepare s as select nextval('sq') from t
create table n13 as execute s
select * from n13 order by 1
# meridian
explain create table n14 as execute s
# PostgreSQL's tag is SELECT 0.
create table n15 as execute q(1, 'w') with no data
select * from n15
