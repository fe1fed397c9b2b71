# RESTART of a new sequence is its first value; what only identity columns may say; options said twice.
create sequence s restart 5
select nextval('s'), nextval('s')
select last_value, is_called from s
create sequence s1 start 3 restart
select nextval('s1')
create sequence s2 restart 7
select last_value, is_called from s2
select start_value, last_value from pg_sequences where sequencename = 's2'
alter sequence s2 restart
select nextval('s2')
create sequence s3 restart 500 maxvalue 100
create sequence s4 start 10 minvalue 10 restart 5
create table r (i int generated always as identity (restart 5), v int)
insert into r (v) values (1), (2) returning i
alter table r add j int generated always as identity (restart 7)
insert into r (v) values (3) returning i, j
truncate r restart identity
insert into r (v) values (3) returning i, j
create table r2 (i int generated always as identity (restart 500 maxvalue 100))
create table r3 (i int generated always as identity (as bigint))
create table r4 (i int not null)
alter table r4 alter i add generated always as identity (as int restart 3)
alter table r4 alter i add generated always as identity (restart 3)
insert into r4 default values returning i
create table r5 (i int generated always as identity (owned by none))
create table r6 (i int generated always as identity (owned by r.v))
create sequence s5 sequence name foo
alter sequence s sequence name foo
alter sequence s as bigint sequence name foo
alter table r alter i set sequence name foo
alter sequence s restart restart 5
alter sequence s restart 3 restart
alter sequence s increment 2 increment 3
alter sequence r cache 3
create view w as select 1 as a
alter sequence w owned by none
create index ri on r (v)
alter sequence if exists ri cycle
