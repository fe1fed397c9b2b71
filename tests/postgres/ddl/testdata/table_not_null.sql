# NOT NULL as a constraint of a table, with a name.
create table t (a int, b int, c int, constraint b_here not null b, not null c, check (a > 0))
select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 't'::regclass order by 1
insert into t values (1, null, 1)
insert into t values (1, 1, null)
insert into t values (1, 1, 1)
create table bad (a int, constraint x not null nope)
create table bad (a int null, constraint x not null a)
create table bad (a int not null, constraint x not null a)
select conname from pg_constraint where conrelid = 'bad'::regclass order by 1
drop table bad
create table bad (a int constraint y not null, constraint x not null a)
create table bad (a int, constraint y not null a, constraint x not null a)
create table bad (a int, b int, constraint x not null a, constraint x not null b)
create table twice (a int, not null a, not null a, constraint x not null a, b int primary key, constraint z not null b, c serial, constraint cs not null c)
select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 'twice'::regclass order by 1
alter table t drop constraint b_here
insert into t values (1, null, 1)
alter table t add constraint again not null b
delete from t where b is null
alter table t add constraint again not null b
alter table t add constraint other not null b
alter table t add constraint again not null a
alter table t add not null a
alter table t add constraint nope not null nope
select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid = 't'::regclass order by 1
alter table t drop constraint again
insert into t values (2, null, 2)
