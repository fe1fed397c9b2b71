create schema ds
create type ds.e as enum ('a', 'b')
create table ds.t (a int, v ds.e)
create index t_v on ds.t (v) where v = 'a'::ds.e
create unique index t_u on ds.t (a) where v = 'a'::ds.e
create index t_x on ds.t ((v = 'a'::ds.e))
drop schema ds
drop schema ds cascade
select relname from pg_class where relname like 't\_%'
create schema ds
create type ds.e as enum ('x', 'a')
create table t2 (a int, v ds.e)
create index t2_v on t2 (a) where v = 'a'::ds.e
create unique index t2_u on t2 (a) where v = 'a'::ds.e
drop schema ds
drop schema ds cascade
insert into t2 values (1), (1)
select relname from pg_class where relname like 't2%'
