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
select convalidated from pg_constraint where conname = 'n1' order by 1
rollback
select convalidated from pg_constraint where conname = 'n1' order by 1
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
# who leaves a key as it is, is not asked for it
create table up (id int primary key, x int)
create table uc (id int, p int, q int)
insert into uc values (1, 99, 5), (2, null, 6)
alter table uc add constraint fk foreign key (p) references up not valid
update uc set q = 7
update uc set p = p
update uc set p = 99
update uc set p = 98 where id = 1
update uc set p = 97 where id = 2
update uc set id = 3, p = 99 where id = 1
insert into uc values (4, 99, 1)
create table m2 (a int, b int, primary key (a, b))
create table m (id int, a int, b int)
insert into m values (1, 1, 1), (2, 1, null)
alter table m add foreign key (a, b) references m2 (a, b) match full not valid
update m set id = id + 10
update m set b = null where id = 12
update m set a = 1, b = 1
insert into uc values (5, 99, 1) on conflict do nothing
merge into uc using (values (1)) v(x) on uc.id = v.x when matched then update set q = 12
alter table uc validate constraint fk
create table ud (id int primary key, p int)
insert into ud values (1, 99)
alter table ud add constraint fk foreign key (p) references up deferrable initially deferred not valid
begin
update ud set id = 2
commit
insert into ud values (2, 98) on conflict (id) do update set id = 3
insert into ud values (3, 98) on conflict (id) do update set p = excluded.p
# meridian
alter table n add constraint nn not null b not valid
