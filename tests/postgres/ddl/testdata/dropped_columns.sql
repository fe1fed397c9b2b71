# What is asked of columns by their numbers: a column that was dropped, or has got another type,
# leaves the numbers of the others as they are.
create domain positive as int check (value > 0)
create table t (a int, b positive, c int, d text)
insert into t values (1, 2, 3, 'x')
alter table t drop column a
select pg_typeof(b), pg_typeof(c), pg_typeof(d) from t
create table made as select c, d from t
insert into made values (-1, 'no domain')
create table domained as select b from t
insert into domained values (-1)
select * into chosen from t
insert into chosen values (-1)
insert into t values (5, 6, 'y') returning pg_typeof(b), pg_typeof(c), pg_typeof(d)
with gone as (delete from t where b = 5 returning *) select pg_typeof(b), pg_typeof(c) from gone
alter table t alter column c type positive
select pg_typeof(b), pg_typeof(c), pg_typeof(d) from t
create table again as select c, d from t
insert into again values (-1)
alter table t drop column b, add column e positive default 7, add column f int default 8
select pg_typeof(c), pg_typeof(d), pg_typeof(e), pg_typeof(f) from t
alter table t add column h int, add check (pg_typeof(h)::oid = 'int4'::regtype)
create view shown as select f, e from t
select pg_typeof(x.f) from (select f, e from t) x
