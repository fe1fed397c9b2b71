# What is promised of rows that were there before, and what is no default.
create table p (id int primary key)
create table t (a int, b int)
insert into t values (1, 1), (-1, 9)
alter table t add constraint c check (a > 0) not valid, add constraint f foreign key (b) references p not valid
select conname, pg_get_constraintdef(oid), convalidated from pg_constraint where conrelid = 't'::regclass order by 1
insert into t values (-5, null)
insert into t values (5, 5)
alter table t validate constraint c
alter table t validate constraint f
update t set a = 1, b = null where a < 0
alter table t validate constraint c
select conname, pg_get_constraintdef(oid), convalidated from pg_constraint where conrelid = 't'::regclass order by 1
alter table t rename constraint c to cc
alter table t rename column a to aa
alter table t alter aa type bigint
alter table t rename to tt
select conname, pg_get_constraintdef(oid), convalidated from pg_constraint where conrelid = 'tt'::regclass order by 1
alter table tt alter constraint f deferrable
select conname, pg_get_constraintdef(oid), convalidated from pg_constraint where conrelid = 'tt'::regclass order by 1
insert into p values (1), (9)
alter table tt validate constraint f
alter table tt validate constraint f
select conname, pg_get_constraintdef(oid), convalidated from pg_constraint where conrelid = 'tt'::regclass order by 1
create table n (a int check (a > 0), b int, constraint late check (b > 0) not valid, foreign key (b) references p not valid)
select conname, pg_get_constraintdef(oid), convalidated from pg_constraint where conrelid = 'n'::regclass order by 1
alter table n add column c int check (c > 0)
alter table n add constraint n1 check (a > 1) not valid
create table l (like n including all)
select conname, pg_get_constraintdef(oid), convalidated from pg_constraint where conrelid = 'l'::regclass order by 1
alter table n alter a type bigint
select conname, pg_get_constraintdef(oid), convalidated from pg_constraint where conrelid = 'n'::regclass order by 1
begin
alter table n validate constraint n1
select convalidated from pg_constraint where conname = 'n1'
rollback
select convalidated from pg_constraint where conname = 'n1'
alter table n add unique (a) not valid
create table k (a int, constraint x check (a > 0) deferrable)
create table d (a int default null, b varchar(3) default null, c numeric default null::numeric, e numeric(5,2) default null, g int[] default null)
select attname, atthasdef from pg_attribute where attrelid = 'd'::regclass and attnum > 0 order by attnum
alter table d alter a set default 7, alter c set default 1
alter table d alter a set default null, add column h int default null
select attname, atthasdef from pg_attribute where attrelid = 'd'::regclass and attnum > 0 order by attnum
create domain dd as int default 7
create table zd (a dd default null, b dd)
insert into zd default values returning *
select attname, atthasdef from pg_attribute where attrelid = 'zd'::regclass and attnum > 0 order by attnum
begin
create index concurrently ii on d (a)
rollback
begin
drop index concurrently nope
rollback
begin
create table never (a int)
savepoint one
create index concurrently ii on d (a)
rollback to one
rollback
create index concurrently ii on d (a)
drop index concurrently ii
# meridian
alter table n add constraint nn not null b not valid
