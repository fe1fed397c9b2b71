# A unique index becomes a constraint.
create table t (a int, b text, c int)
insert into t values (1, 'x', 5), (2, 'y', 6)
create unique index ti on t (a)
comment on index ti is 'of ti'
alter table t add constraint tk unique using index ti
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 't'::regclass order by 1
select obj_description('tk'::regclass)
create unique index tp on t (c, b)
alter table t add primary key using index tp
alter table t add primary key using index tp
create unique index tp2 on t (c)
select conname, contype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 't'::regclass order by 1
insert into t values (3, null, 1)
insert into t values (1, 'z', 1)
insert into t values (5, 'z', 1) on conflict on constraint tk do nothing
insert into t values (5, 'z', 7) on conflict on constraint tk do update set b = 'changed' returning *
alter table t add constraint x unique using index nope
create index plain on t (b)
alter table t add constraint x unique using index plain
alter table t add constraint x unique using index tk
create unique index d on t (b desc)
alter table t add constraint x unique using index d
create table other (a int unique)
create unique index oi on other (a)
alter table t add constraint x unique using index oi
alter table t add constraint x unique using index t
create unique index d2 on t (b)
alter table t add constraint x unique using index d2 deferrable initially deferred
begin
insert into t values (7, 'x', 8)
rollback
create table n (a int, b int)
insert into n values (null, 1), (null, 2)
create unique index ni on n (a) 
alter table n add primary key using index ni
delete from n
alter table n add constraint np primary key using index ni, add column c int default 7
insert into n values (null, 1)
insert into n values (1, 1), (1, 2)
alter index np rename to np2
select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'n'::regclass order by 1
create unique index nn on n (b) nulls not distinct
alter table n add constraint nn unique using index nn
insert into n values (5, null), (6, null)
alter table n drop constraint nn
insert into n values (5, null), (6, null)
# ON CONFLICT of what has no index
create table chk (a int constraint pos check (a > 0), b int not null)
insert into chk values (1, 1) on conflict on constraint pos do nothing
insert into chk values (1, 1) on conflict on constraint chk_b_not_null do nothing
insert into chk values (1, 1) on conflict on constraint nope do nothing
# SET EXPRESSION
create table g (a int, b int generated always as (a * 2) stored, c int default 1, constraint small check (b < 100))
create index gi on g (b)
insert into g values (1), (30)
alter table g alter column b set expression as (a * 3)
select * from g order by a
insert into g values (3)
alter table g alter b set expression as (a * 4)
alter table g alter b set expression as (a + c), add column d int default 9
select * from g order by a
alter table g alter a set expression as (1)
alter table g alter nope set expression as (1)
alter table g alter b set expression as (b + 1)
alter table g alter b set expression as (a + nope)
alter table g alter b set expression as (random())
alter table g alter b set expression as ('x'::text)
alter table g alter b set expression as ((select 1))
alter table g alter b set expression as (case when a > 2 then a end)
alter table g alter b set not null
alter table g alter b set expression as (a)
alter table g alter b set not null, alter b set expression as (a + 1)
alter table g alter b set expression as (nullif(a, 1))
alter table g add unique (b)
alter table g alter b set expression as (7)
insert into g (a) values (50)
select * from g order by a
create table r (x int references g (b))
insert into r values (31)
alter table g alter b set expression as (a + 2)
alter table g alter b set expression as (case when a = 30 then 31 else a + 100 end)
alter table g drop constraint small, alter b set expression as (case when a = 30 then 31 else a + 100 end)
select * from g order by a
create view gv as select b from g
alter table g alter b set expression as (case when a = 30 then 31 else a + 200 end)
select * from gv order by b
# meridian
# PostgreSQL tells the new name before it fails.
alter table t add constraint p2 primary key using index tp2
alter table t add constraint tk unique using index tp2
alter table t add constraint t unique using index tp2
create table cc (a int not null, constraint chk2 check (a > 0))
create unique index cci on cc (a)
alter table cc add constraint chk2 unique using index cci
create table ref (a int references cc (a))
create table p (a int)
create unique index pi on p (a)
create table pr (a int references p (a))
alter table p add unique using index pi deferrable
alter table p add unique using index pi
