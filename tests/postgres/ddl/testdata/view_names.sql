# The query of a view has the names that its columns have.
create table inv (no text, amount int)
create view v as select no, amount from inv
alter view v rename column amount to total
select pg_get_viewdef('v'::regclass) like '%AS total%'
create view w (x, y) as select no, amount as a from inv union all select 'z', 1
select pg_get_viewdef('w'::regclass) like '%AS x%', definition like '%AS y%' from pg_views where viewname = 'w'
alter view w rename column y to a
select pg_get_viewdef('w'::regclass) like '%AS y%'
alter view v rename column total to amount
select pg_get_viewdef('v'::regclass) like '%AS%'
select column_name from information_schema.columns where table_name in ('v', 'w') order by table_name, ordinal_position
