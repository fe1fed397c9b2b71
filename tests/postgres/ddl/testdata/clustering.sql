# What PostgreSQL says of a wrong partition key, Meridian says, too.
create table a (x int, y int) partition by list (x, y)
create table a (x int, y int generated always as (x * 2) stored) partition by range (y)
create table a (x int) partition by range (zz)
create table a (x int) with (foo = 1)
create table a (x int) with (other.foo = 1)
create table e (x int, y int, z text) partition by range (x, x)
alter table e drop column y
insert into nowhere select 1
# meridian
# A table keeps its rows itself; its partition key is the order in which large writes are laid down.
create table p (id int, k text, d date) partition by range (d, k)
select relkind, reloptions, relispartition from pg_class where relname = 'p'
insert into p select g, 'k' || g, date '2020-01-01' + (g * 7 % 10) from generate_series(1, 10) g
select * from p
truncate p
insert into p select g, 'k' || g, date '2020-01-01' + (g * 7 % 10) from generate_series(1, 5) g order by g
select id from p
insert into p (id) values (9), (8)
select id from p
truncate p
insert into p select g, 'k', null from generate_series(3, 1, -1) g returning id
alter table p drop column d
alter table p alter d type timestamp
alter table p rename d to "Day"
select options, definition from pg_meridian.table_options where table_name = 'p'
alter table p reset (cluster_by)
alter table p drop column "Day"
alter table p set (cluster_by = 'K, "id"')
alter table p set (cluster_by = 'k, "id"', history = '3 days 02:00:00')
select options, definition from pg_meridian.table_options where table_name = 'p'
begin
alter table p reset (cluster_by, history)
select options, definition from pg_meridian.table_options where table_name = 'p'
rollback
select options, definition from pg_meridian.table_options where table_name = 'p'
create table r (region text) partition by list (region)
select options, definition from pg_meridian.table_options where table_name = 'r'
create table n (x json) partition by range (x)
create table n (x int) partition by hash (x)
create table n (x int) partition by range ((x + 1))
create table n (x text) partition by range (x collate "C")
create table n partition of p for values from (1) to (2)
alter table p attach partition r for values from (1) to (2)
create table n (x int) with (fillfactor = 70)
create table n (x int) with (toast.autovacuum_enabled = false)
create table n (x int) with (cluster_by = '')
create table n (x int) with (cluster_by = 'x,')
create table n (x int) with (history = '1 day', history = '2 days')
alter table p reset (cluster_by = 'x')
alter table p set (foo = 1)
