# tables made, copy1, chosen, shape
create table src (id int primary key, v numeric(8,2) not null, s varchar(10) default 'x', g int generated always as (id + 1) stored)
insert into src values (1, 1.5, 'a'), (2, 2.25, default), (3, 100, null)
create table made as select * from src
insert into made values (1, null, 'longer than', 0), (null, 123456.789, null, null)
insert into made values (1, null, 'ten chars!', 0), (null, 123456.789, null, null)
create table made as select 1
create table if not exists made as select 1
create table copy1 (a, b) as select id, v * 2 from src with no data
create table copy2 (a, b, c) as select id, v from src
create table copy2 as select id, id from src
create table copy2 as select nope from src
create table copy2 as select 1 / 0 as x
create table copy2 as table src with no data
select count(*) from copy2
drop table copy2
create table copy2 as values (1, 'one'), (2, 'two')
select column1, column2 from copy2 order by 1
drop table copy2
select id, s into chosen from src where id < 3
select id into chosen from src
select 1 as one, 'text' as two, null as three, now() is null as four, array[1, 2] as five into shape
insert into shape values (2, 'x', 'y', true, '{3}')
select column_name, data_type, is_nullable, column_default from information_schema.columns where table_name in ('made', 'shape') order by table_name, ordinal_position
with w as (select 5 as n) select n, n * 2.5 as m into from_with from w
select * from from_with
drop table from_with
create table agg as select s, count(*) as n, sum(v) as total, max(v)::float8 as f from src group by s
select * from agg order by n, s
drop table agg
create table sets as select 1 as a union all select 2.5 union all select null
select a from sets order by a
drop table sets
create temp table tmp as select id, g from src
insert into tmp values (9, 9) returning *
create table from_tmp as select t.id, made.s from tmp t join made using (id)
select count(*) from from_tmp
drop table from_tmp
create table unnamed as select 1, 'a', upper('b')
create table unnamed as select 1, upper('b'), id::text || 'x' as z from src limit 1
select * from unnamed
drop table unnamed, tmp, src, chosen
