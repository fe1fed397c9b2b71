# A sequence as a relation: where it stands now, whatever a transaction sees.
create sequence s
select * from s
select last_value, log_cnt, is_called from s
select nextval('s')
select * from s
select nextval('s')
select last_value, is_called from public.s
select s.last_value + 1 as x from s where is_called
select setval('s', 20, false)
select * from s
select setval('s', 30)
select * from s
begin
select nextval('s')
rollback
select last_value from s
alter sequence s restart
select * from s
alter sequence s restart with 7
select * from s
alter sequence s increment 5
select nextval('s')
select nextval('s')
select * from s
begin
alter sequence s restart with 100
select * from s
rollback
select * from s
begin
create sequence own start 5
select * from own
select nextval('own')
select * from own
commit
select * from own
create sequence down increment -1 start -3
select * from down
insert into s values (1)
update s set last_value = 5
delete from s
truncate s
merge into s using (values (1)) v(x) on true when matched then delete
select nope from s
select a.last_value, b.last_value from s a, own b
select * from s for update
create index on s (last_value)
alter table s rename to s9
select last_value from s9
alter table s9 rename to s
select schemaname, sequencename, start_value, min_value, max_value, increment_by, cycle, cache_size, last_value from pg_sequences order by 2
select pg_sequence_last_value('s'::regclass), pg_sequence_last_value('down'::regclass)
create table t (id serial, a int)
insert into t (a) select 1 from generate_series(1, 3)
select last_value, is_called from t_id_seq
select t.*, last_value from t, t_id_seq
create table copied (like s)
create table cs as select last_value, is_called from s
select * from cs
select attname, atttypid::regtype::text, attnum, attnotnull from pg_attribute where attrelid = 's'::regclass and attnum > 0 order by attnum
select column_name from information_schema.columns where table_name = 's'
select 1 from s as q (a, b) where b is not null
create temp sequence ts
select is_called from ts
copy s to stdout
create table w (a bigint)
insert into w select last_value from s
select * from w
select relname, last_value from pg_class c, pg_sequences q where q.sequencename = c.relname order by 1
select nextval('s'), last_value from s
# meridian
create view sv as select last_value from s
select ctid from s
