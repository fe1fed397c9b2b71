# ALTER ROLE and ALTER DATABASE .. SET: what is kept, checked and shown.
create role alice login
create role bob superuser
alter role alice set search_path to a, "B c", "$user"
alter role alice set work_mem = '64MB'
alter role alice set statement_timeout = 5000
alter role alice set my.own to 'x y'
alter user alice set DateStyle = 'SQL, DMY'
alter role alice in database postgres set work_mem = '1MB'
alter role all set lock_timeout = 7
alter role all in database postgres set lock_timeout = 8
alter database postgres set application_name to 'of the database'
alter database postgres set timezone = 'Europe/Berlin'
select d.datname, r.rolname, setconfig from pg_db_role_setting left join pg_database d on d.oid = setdatabase left join pg_roles r on r.oid = setrole order by 1, 2
select rolname, rolconfig from pg_roles where rolname in ('alice', 'bob') order by 1
select usename, useconfig from pg_user where usename in ('alice', 'bob') order by 1
select usename, useconfig from pg_shadow where usename in ('alice', 'bob') order by 1
alter role alice set work_mem = '32MB'
alter role alice set WORK_MEM to '16MB'
select rolconfig from pg_roles where rolname = 'alice'
alter role alice reset work_mem
alter role alice reset work_mem
alter role alice set statement_timeout to default
select rolconfig from pg_roles where rolname = 'alice'
set work_mem = '3MB'
alter role alice set work_mem from current
alter role alice set search_path from current
select rolconfig from pg_roles where rolname = 'alice'
alter role alice set nope = 1
alter role alice set work_mem = 'much'
alter role alice set work_mem = -5
alter role alice set shared_buffers = '1GB'
alter role alice set server_version = '1'
alter role alice set fsync = off
alter role alice set log_connections = on
alter role alice set work_mem = 1, 2
alter role alice set timezone = 'Nowhere'
alter role alice set role = 'carol'
alter role alice set role = 'bob'
alter role alice reset nope
alter role alice reset my.never
alter role nobody set work_mem = '1MB'
alter role pg_monitor set work_mem = '1MB'
alter role alice in database nodb set work_mem = '1MB'
alter database nodb set work_mem = '1MB'
alter database template1 set work_mem = '2MB'
alter role current_user set work_mem = '5MB'
select setconfig from pg_db_role_setting where setrole = (select oid from pg_authid where rolname = current_user)
alter role current_user reset all
select current_setting('work_mem')
begin
alter role alice set work_mem = '9MB'
rollback
select rolconfig from pg_roles where rolname = 'alice'
alter role alice rename to alicia
select rolconfig from pg_roles where rolname = 'alicia'
alter role alicia reset all
select rolconfig from pg_roles where rolname = 'alicia'
select count(*) from pg_db_role_setting where setrole = (select oid from pg_authid where rolname = 'alicia')
drop role alicia
select d.datname, r.rolname, setconfig from pg_db_role_setting left join pg_database d on d.oid = setdatabase left join pg_roles r on r.oid = setrole order by 1, 2
alter database postgres reset timezone
alter database postgres reset all
alter database template1 reset all
alter role all reset all
alter role all in database postgres reset all
select count(*) from pg_db_role_setting
