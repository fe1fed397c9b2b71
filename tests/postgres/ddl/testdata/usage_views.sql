# What uses what, in information_schema.
create schema s
create type s.mood as enum ('sad', 'ok')
create domain s.small as int not null constraint few check (value < 10)
create domain names as text[]
create table t (id int primary key, m s.mood, ms s.mood[], d s.small, ns names, u text unique, n name[], twice int generated always as (id * 2) stored, constraint positive check (id > 0))
create table s.o (id int references t (id), b numeric(5,2)[] not null, foreign key (b) references s.o (b)) 
create table s.p (id int references t (id), u text constraint named not null, a int, b int, unique (a, b), foreign key (u) references t (u))
create view v as select t.id, p.a + p.b as c, t.m from t join s.p on t.id = p.id
create view s.w as select c from v
select constraint_schema, constraint_name, check_clause from information_schema.check_constraints where constraint_schema in ('public', 's') order by 1, 2
select * from information_schema.column_column_usage
select domain_schema, domain_name, table_schema, table_name, column_name from information_schema.column_domain_usage where domain_schema in ('public', 's') order by 1, 2, 5
select udt_schema, udt_name, table_schema, table_name, column_name from information_schema.column_udt_usage where table_schema in ('public', 's') order by 3, 4, 5
select table_schema, table_name, column_name, constraint_schema, constraint_name from information_schema.constraint_column_usage where table_schema <> 'pg_catalog' order by 4, 5, 1, 2, 3
select table_schema, table_name, constraint_schema, constraint_name from information_schema.constraint_table_usage where table_schema <> 'pg_catalog' order by 3, 4, 1, 2
select object_schema, object_name, object_type, dtd_identifier from information_schema.data_type_privileges where object_schema in ('public', 's') order by 1, 2, 4
select udt_schema, udt_name, domain_schema, domain_name from information_schema.domain_udt_usage where domain_schema in ('public', 's') order by 3, 4
select object_schema, object_name, object_type, collection_type_identifier, data_type, collation_name, udt_schema, udt_name, dtd_identifier, numeric_precision from information_schema.element_types where object_schema in ('public', 's') order by 1, 2, 4
select view_schema, view_name, table_schema, table_name, column_name from information_schema.view_column_usage where view_schema = 'public' order by 1, 2, 3, 4, 5
select view_schema, view_name, table_schema, table_name from information_schema.view_table_usage where view_schema = 'public' order by 1, 2, 3, 4
select grantee, specific_schema, routine_name, privilege_type, is_grantable from information_schema.routine_privileges where routine_name = 'format_type' order by 1
select grantee, routine_name, is_grantable from information_schema.role_routine_grants where routine_name = 'format_type'
select collation_schema, collation_name, pad_attribute from information_schema.collations where collation_name in ('C', 'POSIX', 'default') order by 2
select collation_name, character_set_name from information_schema.collation_character_set_applicability where collation_name in ('C', 'POSIX') order by 1
select character_set_name, character_repertoire, form_of_use from information_schema.character_sets
select count(*), count(catalog_name) from information_schema.information_schema_catalog_name
select * from information_schema.sql_parts order by 1
select count(*), min(feature_id), max(feature_name) from information_schema.sql_features
select * from information_schema.sql_sizing where sizing_id = 97
select * from information_schema.sql_implementation_info where implementation_info_id = '23'
select grantee, udt_schema, udt_name, privilege_type, is_grantable from information_schema.udt_privileges where udt_schema in ('public', 's') order by 1, 2, 3
select schemaname, relname, heap_blks_read is null, idx_blks_read is null from pg_statio_user_tables order by 1, 2
select schemaname, relname from pg_statio_user_sequences
select count(*) from pg_ts_config where cfgname = 'nothing'
select count(*) from pg_stat_archiver
select count(*) from pg_stat_wal
select count(*) from pg_stat_checkpointer
select count(*) from information_schema.user_defined_types
select datname = current_database(), usename = session_user, application_name, client_addr is not null, client_port > 0, state, xact_start <= query_start + interval '1 minute', wait_event, query, backend_type from pg_stat_activity where pid = pg_backend_pid()
select pg_typeof(client_addr), pg_typeof(backend_xid) from pg_stat_activity where pid = pg_backend_pid()
select pg_cancel_backend(null), pg_terminate_backend(null)
select pg_cancel_backend(0)
select pg_terminate_backend(-1)
select pg_terminate_backend(-1, 5), pg_terminate_backend(timeout => 1, pid => -1)
select pg_terminate_backend(-1, -5)
select pg_cancel_backend(pg_backend_pid())
select 1
# meridian
select current_user is not null, count(*) from pg_stat_database_conflicts
select 1 where pg_terminate_backend(-1)
