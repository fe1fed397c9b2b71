create table t (a int, b text)
insert into t values (1,'x'),(2,'y')
alter table t add column c int
select * from t
alter table t add column d int default 7
alter table t add column e timestamptz default now() not null
select a,b,c,d,e is not null from t order by a
alter table t add column d int
alter table t add column if not exists d int
alter table t add column f int not null
alter table t drop column b
alter table t drop column b
alter table t drop column if exists b
select a,c,d from t order by a
alter table t add column b int
select a,b,c,d from t order by a
insert into t (a,b) values (3, 33)
select a,b,c,d from t order by a
alter table t rename column a to aa
alter table t rename a to x
alter table t rename column aa to d
select aa,b from t order by aa
alter table t alter column d set default 9
insert into t (aa) values (4)
alter table t alter column d drop default
insert into t (aa) values (5)
select aa,b,c,d from t order by 1
alter table t alter d set not null
update t set d = 0 where d is null
alter table t alter d set not null
insert into t (aa) values (6)
alter table t alter d drop not null
insert into t (aa) values (6)
alter table t alter column aa type bigint
select aa from t order by 1
alter table t alter column aa type text using 'n' || aa
select aa from t order by 1
alter table t alter column aa type int
alter table t alter column aa type int using substr(aa, 2)::int
select aa+1 from t order by 1
alter table t add constraint pos check (aa > 1)
alter table t add constraint pos check (aa > 0)
insert into t (aa) values (0)
alter table t add constraint pos check (aa > 0)
alter table t rename column aa to a
insert into t (a) values (0)
alter table t drop constraint nope
alter table t drop constraint if exists nope
alter table t drop constraint pos
insert into t (a) values (0)
alter table t add primary key (a)
insert into t (a) values (0)
alter table t add primary key (b)
alter table t add constraint u unique (d)
delete from t where a > 3
update t set d = a
alter table t add constraint u unique (d)
insert into t (a, d) values (10, 1)
alter table t drop constraint u, add column z int default 5, alter column c set default 3
insert into t (a, d) values (10, 1)
select a,b,c,d,z from t order by a
begin
alter table t add column q int default 1
insert into t (a, q) values (100, 2)
select a, q from t order by a
rollback
select * from t where a = 100
begin
alter table t add column q int default 1
savepoint s
alter table t drop column q
rollback to s
select a, q from t order by a
commit
alter table nope add column a int
alter table if exists nope add column a int
alter table t alter column a drop not null
create table v (a varchar(5) default 'abc', n numeric(5,2))
insert into v values ('hello', 1.5)
alter table v alter a type varchar(10)
alter table v alter a type varchar(3)
alter table v alter a type text
alter table v alter n type numeric(10,3)
select * from v
alter table v alter n type int
alter table v alter n set default 'x'
alter table v alter n set default 1+1
alter table v alter a type int
alter table v rename constraint x to y
alter table v add constraint c1 check (n > 0), add constraint c2 check (n < 100)
alter table v rename constraint c1 to c3
insert into v (n) values (-1)
alter table v rename n to m
insert into v (m) values (1000)
alter table v drop column m
insert into v values ('q')
select * from v
alter table v add check (length(a) < 10)
insert into v values ('12345678901')
alter table v add column ctid int
alter table v validate constraint v_a_check
alter table v alter a set not null, alter a drop not null

# --- a default of another type -----------------------------------------------------------------
create table documents (id int, j jsonb default '{"b": 1, "a": "it''s"}')
insert into documents values (1)
alter table documents alter column j type text
insert into documents values (2)
select * from documents order by id
drop table documents
