# Indexes by other names, those of constraints, too; what ALTER INDEX names.
create table t (a int primary key, b int unique, c text)
create index i on t (c)
create unique index ui on t (c)
create view v as select * from t
create sequence s
comment on index t_pkey is 'key'
comment on constraint t_pkey on t is 'constraint'
comment on index i is 'index'
alter index i rename to i2
alter index i rename to i3
alter index if exists i rename to i3
alter index i2 rename to t
alter index i2 rename to t_pkey
alter index i2 rename to s
alter index t_pkey rename to pk
select conname from pg_constraint where conrelid = 't'::regclass and contype <> 'n' order by 1
select relname from pg_class where relkind = 'i' and relnamespace = 'public'::regnamespace order by 1
alter index ui rename to ui2
alter index public.ui2 rename to ui
alter index nope.ui rename to ui3
alter table i2 rename to i
alter table pk rename to pkk
alter view i rename to x
alter sequence i rename to x
alter view t rename to x
alter sequence t rename to x
alter sequence v rename to x
alter view s rename to x
alter table t_b_key rename to bk
alter index i rename to i
alter index pkk rename to pkk
select obj_description('pkk'::regclass), obj_description('i'::regclass), (select obj_description(oid, 'pg_constraint') from pg_constraint where conname = 'pkk')
insert into t values (1, 1, 'a'), (1, 2, 'b')
insert into t values (1, 1, 'a'), (2, 1, 'b')
insert into t values (1, 1, 'a'), (2, 2, 'a')
insert into t values (1, 1, 'a') on conflict on constraint pkk do nothing
alter table t rename constraint pkk to i
alter table t rename constraint pkk to bk
alter table t rename constraint pkk to v
# relations of any kind
alter index t rename to t2
alter index v rename to v2
alter index s rename to s2
select * from t2, v2
select nextval('s2')
alter table t2 rename to t
alter table v2 rename to v
alter table s2 rename to s
alter table t rename to pkk
alter table t rename to i
alter view v rename to i
alter view v rename to bk
alter sequence s rename to bk
alter table t rename to v
alter index if exists nope.i rename to x
alter table if exists nope.i rename to x
alter table nope.i rename to x
alter view nope.i rename to x
alter sequence nope.i rename to x
alter sequence if exists nope.i rename to x
alter view if exists nope rename to x
create type ty as enum ('a')
alter table t rename to ty
alter view v rename to ty
alter index i rename to ty
alter index ty rename to i
# storage parameters
alter index i set (nope = 5)
alter index i set (fillfactor = 60, fillfactor = 70)
alter index i reset (fillfactor)
alter index i reset (nope)
alter index t set (fillfactor = 80)
alter index s set (fillfactor = 80)
alter index v reset (fillfactor)
alter index nope set (fillfactor = 80)
alter index nope.i set (fillfactor = 80)
alter index if exists nope set (fillfactor = 80)
alter index if exists nope.i set (fillfactor = 80)
alter index i attach partition pkk
alter table i add column x int
alter table i alter c set not null
alter table pkk drop constraint x
begin
alter index i rename to ii
create index i on t (a)
rollback
select indexname from pg_indexes where tablename = 't' order by 1
create temp table tt (a int primary key)
alter index tt_pkey rename to ttk
alter index pg_temp.ttk rename to tt_pkey
create table parent (id int primary key)
create table child (p int references parent)
alter index parent_pkey rename to renamed
insert into child values (1)
drop index renamed
alter table parent drop constraint renamed
# meridian
alter index i set (fillfactor = 70)
alter table i set (fillfactor = 70)
alter index pkk set (deduplicate_items = off)
alter index i set tablespace pg_default
alter index i depends on extension plpgsql
alter index pg_class_oid_index rename to x
