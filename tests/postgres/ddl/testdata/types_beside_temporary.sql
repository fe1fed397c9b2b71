# A type that is made while there are temporary relations is none of them.
create temp table tt (i int)
create type foo as enum ('a', 'b')
create domain bar as int check (value > 0)
create table uses (f foo, b bar)
insert into uses values ('a', 1)
select n.nspname, t.typname from pg_type t join pg_namespace n on n.oid = t.typnamespace where typname in ('foo', 'bar') order by 2
discard temp
select * from uses
insert into uses values ('b', 2)
insert into uses values ('b', 0)
create temp view tv as select 1 as one
create type foo as enum ('c')
discard all
select * from uses order by f
drop table uses
drop type foo
drop domain bar
