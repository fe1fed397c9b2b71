# Catalogs of the server and of the session: settings of the build, time zones, text search, cursors.
select count(*) from pg_shdepend where dbid = 0 and refobjid > 16384
select count(*) > 10, bool_or(name = 'VERSION') from pg_config
select count(*) >= 0 from pg_backend_memory_contexts
select name, abbrev, utc_offset, is_dst from pg_timezone_names where name in ('UTC', 'Asia/Kolkata', 'Etc/GMT+5', 'America/Phoenix') order by 1
select count(*) > 400 from pg_timezone_names
select abbrev, utc_offset, is_dst from pg_timezone_abbrevs where abbrev in ('CET', 'CEST', 'EST', 'MSK', 'UTC', 'Z', 'LMT') order by 1
select count(*) from pg_timezone_abbrevs
select datname, xact_commit >= 0, deadlocks >= 0, stats_reset is null from pg_stat_database where datname in ('postgres', 'template1') order by 1
select datid, datname from pg_stat_database where datid = 0
select name, blks_zeroed >= 0 from pg_stat_slru order by 1
select count(*) from pg_stat_progress_copy
select count(*), max(wal_distance) from pg_stat_recovery_prefetch
select oid, conname, connamespace, conowner, conforencoding, contoencoding, condefault from pg_conversion order by oid limit 3
select count(*) from pg_conversion
select * from pg_ts_config order by oid limit 3
select count(*) from pg_ts_config
select count(*) from pg_ts_config_map
select * from pg_ts_config_map order by 1, 2, 3 limit 3
select * from pg_ts_dict order by oid limit 3
select count(*) from pg_ts_dict
select oid, prsname, prsnamespace from pg_ts_parser
select oid, tmplname, tmplnamespace from pg_ts_template order by oid
select count(*) from pg_wait_events
select * from pg_wait_events where type = 'Lock' order by name limit 3
select count(*) >= 0 from pg_init_privs
create role shd
create table sht (a int)
alter table sht owner to shd
select dbid = (select oid from pg_database where datname = current_database()), classid::regclass, objid::regclass, objsubid, refclassid::regclass, refobjid::regrole, deptype from pg_shdepend where refobjid = 'shd'::regrole and classid = 'pg_class'::regclass
drop table sht
drop role shd
prepare p (int, text) as select $1, $2
prepare q as select 1 as a, 'x'::text as b
prepare r as insert into pg_temp.x values (1)
select name, statement, parameter_types, result_types, from_sql, prepare_time is not null from pg_prepared_statements order by name
deallocate p
select name from pg_prepared_statements
deallocate all
select count(*) from pg_prepared_statements
select count(*) from pg_cursors
begin
declare c scroll cursor for select 1
declare d binary cursor with hold for select 2
select name, statement, is_holdable, is_binary, is_scrollable, creation_time is not null from pg_cursors order by name
close c
select name from pg_cursors
commit
select name, is_holdable from pg_cursors
close all
select name from pg_cursors
select count(*) from pg_stat_io
