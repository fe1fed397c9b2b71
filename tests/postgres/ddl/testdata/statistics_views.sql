create schema s2
create table s2.t (id int primary key, v text)
create table s2.u (v text)
create index on s2.u (v)
create view s2.w as select 1 as one
select schemaname, relname, seq_scan is null, idx_scan is null, n_tup_upd, n_dead_tup, last_vacuum, vacuum_count, total_vacuum_time from pg_stat_user_tables where schemaname = 's2' order by relname
select schemaname, relname, indexrelname, idx_scan, idx_tup_read, idx_tup_fetch from pg_stat_user_indexes where schemaname = 's2' order by 3
select count(*) from pg_stat_all_tables where relname in ('pg_class', 't', 'u', 'w')
select relname, schemaname, idx_scan is null from pg_stat_sys_tables where relname in ('pg_class', 'pg_type') order by 1
select count(*) from pg_stats where schemaname = 's2'
select attname from pg_statistic join pg_attribute on starelid = attrelid and attnum = staattnum where starelid = 's2.t'::regclass
select * from pg_prepared_xacts
select funcname from pg_stat_user_functions
select s.relid::regclass, c.relkind from pg_stat_user_tables s join pg_class c on c.oid = s.relid where schemaname = 's2' order by 1::text
select relkind from pg_class where relname like 'pg_stat_user%' order by 1
