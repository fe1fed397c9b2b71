create table p (id int primary key, u int unique)
create table c (id int primary key, pid int references p deferrable initially deferred)
create table i (id int, pid int constraint i_fk references p deferrable)
create table k (id int constraint k_key unique deferrable initially deferred, v int)
insert into p values (1, 10), (2, 20)
# alone, a statement is its transaction
insert into c values (1, 9)
insert into c values (1, 1)
insert into i values (1, 9)
delete from p where id = 1
insert into k values (1, 1), (2, 2)
update k set id = id + 1
insert into k values (2, 5)
# child first, then parent
begin
insert into c values (2, 3)
insert into p values (3, 30)
commit
select * from c order by 1
begin
insert into c values (3, 77)
select * from c order by 1
commit
select * from c order by 1
# the row that was wrong went, or was mended
begin
insert into c values (4, 78)
delete from c where id = 4
commit
begin
insert into c values (4, 78)
update c set pid = 2 where id = 4
commit
# the parent goes first
begin
delete from p where id = 1
delete from c where pid = 1
commit
begin
delete from p where id = 2
insert into p values (2, 21)
commit
begin
delete from p where id = 2
commit
select * from p order by 1
begin
update p set id = 5 where id = 2
update c set pid = 5 where pid = 2
commit
select * from c order by 1
# SET CONSTRAINTS
begin
insert into c values (5, 79)
set constraints all immediate
insert into c values (6, 79)
commit
begin
set constraints all immediate
insert into c values (5, 79)
rollback
begin
set constraints i_fk deferred
insert into i values (1, 80)
insert into c values (5, 80)
set constraints c_pid_fkey immediate
rollback
begin
set constraints i_fk deferred
insert into i values (1, 80)
insert into p values (80, 800)
set constraints i_fk immediate
insert into i values (2, 81)
commit
begin
set constraints all deferred
insert into i values (1, 80)
commit
set constraints all deferred
set constraints nope deferred
begin
set constraints k_key, nope immediate
rollback
set constraints nope.k_key deferred
begin
set constraints p_pkey deferred
rollback
begin
set constraints p_pkey immediate
set constraints public.c_pid_fkey, k_key immediate
rollback
# savepoints
begin
savepoint s
insert into c values (5, 90)
rollback to s
commit
begin
savepoint s
insert into c values (5, 90)
release s
commit
begin
savepoint s
set constraints all immediate
rollback to s
insert into c values (5, 91)
insert into p values (91, 91)
commit
begin
insert into c values (6, 92)
savepoint s
insert into p values (92, 92)
set constraints all immediate
rollback to s
commit
begin
insert into c values (6, 92)
savepoint s
set constraints all immediate
rollback to s
insert into p values (92, 92)
commit
select * from c order by 1
# keys
begin
insert into k values (2, 7)
select count(*) from k where id = 2
update k set id = 20 where v = 7
commit
begin
insert into k values (3, 8), (3, 9)
commit
begin
insert into k values (3, 8)
set constraints k_key immediate
rollback
begin
insert into k values (3, 8)
delete from k where id = 3
commit
select * from k order by 1
begin
update k set id = 20 where id = 2
update k set id = 2 where v = 7
set constraints all immediate
select * from k order by 1
commit
create table kp (a int, b int, primary key (a, b) deferrable initially immediate)
insert into kp values (1, 1), (1, 2), (2, 1)
insert into kp values (1, 1)
update kp set b = b + 1
begin
set constraints kp_pkey deferred
insert into kp values (1, 2)
insert into kp values (2, 2)
savepoint s
set constraints all immediate
rollback to s
delete from kp where a = 2
commit
select * from kp order by 1, 2
# ON CONFLICT, references
insert into k values (2, 1) on conflict (id) do nothing
insert into k values (2, 1) on conflict do nothing
insert into k values (200, 1) on conflict do nothing
insert into k values (2, 1) on conflict on constraint k_key do update set v = 0
create table bad (a int references k (id))
create table bad (a int references kp)
select a, b, count(*) from kp group by a, b order by 1, 2
create table kd (a int primary key deferrable, v int)
select a, v from kd group by a
# other actions are not deferred
create table cas (pid int references p on delete cascade on update restrict deferrable initially deferred)
insert into p values (300, 300)
begin
insert into cas values (300), (300)
delete from p where id = 300
select * from cas
commit
insert into p values (300, 300)
begin
insert into cas values (300)
update p set id = 301 where id = 300
rollback
# what waits keeps a table from being altered
begin
insert into c values (10, 500)
alter table c add column x int
rollback
begin
insert into c values (10, 1)
alter table c add column x int
rollback
begin
insert into c values (10, null)
alter table c alter column pid set not null
rollback
begin
insert into c values (10, 500)
drop table c
rollback
begin
insert into c values (10, 500)
truncate c
rollback
begin
insert into c values (10, 500)
create index on c (pid)
rollback
begin
insert into c values (10, 500)
create index ci on c (pid)
rollback
begin
delete from p where id = 3
alter table p add column x int
rollback
begin
insert into c values (10, 5)
set constraints all immediate
alter table c add column x int
rollback
begin
insert into c values (10, 5)
alter table c rename to cc
rollback
begin
insert into c values (10, 5)
alter table c rename column pid to parent
commit
begin
insert into c values (15, 5000)
alter table c rename column parent to pid
alter table c rename constraint c_pid_fkey to c_other
commit
alter table c rename column parent to pid
begin
insert into k values (10, 5)
alter table k add column x int
rollback
begin
insert into k values (2, 5)
alter table k add column x int
rollback
begin
update c set id = 100 where id = 2
alter table c add column x int
rollback
begin
set constraints all immediate
insert into c values (100, 5)
alter table c add column x int
rollback
# ALTER
alter table c alter constraint c_pid_fkey not deferrable
insert into c values (11, 600)
begin
insert into c values (11, 600)
rollback
alter table c alter constraint c_pid_fkey deferrable
select conname, condeferrable, condeferred from pg_constraint where contype in ('f', 'p', 'u') and conrelid > 16000 order by 1
alter table c alter constraint c_pid_fkey initially deferred
select constraint_name, is_deferrable, initially_deferred from information_schema.table_constraints where constraint_type in ('FOREIGN KEY', 'PRIMARY KEY', 'UNIQUE') and table_schema = 'public' order by 1
select conname, pg_get_constraintdef(oid) from pg_constraint where contype in ('f', 'p', 'u') and conrelid > 16000 order by 1
select indexrelid::regclass::text, indimmediate from pg_index where indrelid in ('k'::regclass, 'kp'::regclass, 'p'::regclass) order by 1
alter table c alter constraint nope deferrable
alter table k alter constraint k_key not deferrable
alter table c alter constraint c_pkey deferrable
# one row only refers to nothing: which of several is named is the engine's
insert into p values (2, 1002), (4, 1004), (6, 1006)
alter table c add constraint c_more foreign key (id) references p deferrable initially deferred
alter table c add constraint c_pid_key unique (pid) deferrable
alter table p add constraint p_more unique (id, u) deferrable initially deferred
select conname, condeferrable, condeferred from pg_constraint where conrelid in ('p'::regclass, 'c'::regclass) and contype <> 'n' order by 1
alter table p add column f int references p initially deferred
begin
insert into p values (700, 700, 701)
insert into p values (701, 701, 700)
commit
delete from p where id = 700
begin
delete from p where id = 700
delete from p where id = 701
commit
# what is written wrongly
create table bad (a int references p not deferrable initially deferred)
create table bad (a int references p initially deferred not deferrable)
create table bad (a int references p deferrable not deferrable)
create table bad (a int references p initially deferred initially immediate)
create table bad (a int deferrable)
create table bad (a int not null initially deferred)
create table bad (a int check (a > 0) deferrable)
create table bad (a int, check (a > 0) deferrable)
create table bad (a int, foreign key (a) references p not deferrable initially deferred)
create table bad (a int, unique (a) not deferrable initially deferred)
create table good (a int references p not deferrable initially immediate, b int unique initially immediate deferrable)
select conname, condeferrable, condeferred from pg_constraint where conrelid = 'good'::regclass order by 1
# several statements of a string
insert into c values (12, 600); insert into p values (600, 600)
insert into c values (13, 800); insert into p values (801, 801)
select count(*) from c where id in (12, 13)
begin
insert into c values (14, 900)
commit and chain
select 1
rollback
select 1
