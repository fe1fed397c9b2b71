# LOCK TABLE of one session; others wait in tests/postgres/locking.
create table t (a int primary key)
create table u (b int)
create sequence s
create view v as select a from t
create index i on t (a)
lock table t
begin
lock table nope
rollback
begin
lock table t
lock t in access share mode
lock only t, u in row exclusive mode
lock table t in share mode nowait
lock table public.t * in access exclusive mode
insert into t values (1)
select * from t
savepoint one
lock table s
rollback to one
lock table nope.t
commit
begin read only
lock table t in access share mode
lock table t in share mode
select count(*) from t
commit
begin
create table n (a int)
lock table n
insert into n values (1)
commit
select * from n
begin isolation level repeatable read
lock table t in share mode
insert into t values (2)
commit
begin isolation level read committed
lock table t in row share mode
lock table t in row exclusive mode
insert into t values (3)
commit
select * from t order by a
begin isolation level repeatable read
lock table t
rollback
begin isolation level read committed
lock table t in share update exclusive mode
rollback
# meridian
begin
lock table v
rollback
begin
lock table pg_class
rollback
lock nope
