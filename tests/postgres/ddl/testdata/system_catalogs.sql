# Tables, as the catalogs show them.
create schema s
create table s.t (id int primary key, a numeric(10,2) default 3.50, b text not null default 'x''y', c timestamptz default now(), "D e" varchar(7), unique (a, b), check (a > 0))
create table s.u (n bigint unique nulls not distinct, v float8[], f char(3) default 'ab', w bool default true)
select relname, relkind, relnatts, relhasindex, relchecks, relpersistence, relreplident, relispopulated, relam from pg_class c join pg_namespace n on n.oid = relnamespace where nspname = 's' order by relname
select attname, atttypid, attlen, attnum, atttypmod, attndims, attbyval, attalign, attstorage, attnotnull, atthasdef, attidentity, attgenerated, attisdropped, attislocal, attcollation from pg_attribute where attrelid = (select oid from pg_class where relname = 't' and relkind = 'r') and attnum > 0 order by attnum
select attname, atttypid, attlen, attnum, atttypmod, attndims, attbyval, attalign, attstorage, attnotnull, atthasdef from pg_attribute where attrelid = (select oid from pg_class where relname = 'u' and relkind = 'r') and attnum > 0 order by attnum
select relname, attname, attnum, atttypid from pg_attribute join pg_class on oid = attrelid where relname in ('t_pkey', 't_a_b_key', 'u_n_key') order by 1, 3
select conname, contype, conkey, convalidated, condeferrable, connoinherit, confupdtype from pg_constraint where connamespace = (select oid from pg_namespace where nspname = 's') order by conname
select c.relname, indnatts, indnkeyatts, indisunique, indnullsnotdistinct, indisprimary, indimmediate, indisvalid from pg_index join pg_class c on c.oid = indexrelid join pg_class t on t.oid = indrelid where t.relname in ('t', 'u') order by 1
select * from pg_indexes where schemaname = 's' order by indexname
select schemaname, tablename, tablespace, hasindexes, hasrules, hastriggers, rowsecurity from pg_tables where schemaname = 's' order by 2
select oid, typname, typlen, typbyval, typtype, typcategory, typispreferred, typdelim, typelem, typarray, typalign, typstorage, typnotnull, typbasetype, typtypmod, typndims, typcollation from pg_type where typname in ('bool', 'int4', 'int8', 'text', 'numeric', 'timestamptz', 'uuid', 'bytea', 'name', 'bpchar', 'oid', 'interval', '_int4', '_text', 'date', 'float8') order by oid
select nspname from pg_namespace where nspname in ('s', 'public', 'pg_catalog', 'information_schema', 'nobody') order by 1
select oid, amname, amtype from pg_am where amname in ('heap', 'btree') order by 1
# Functions that look into them.
select attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid in (select oid from pg_class where relname in ('t', 'u') and relkind = 'r') and attnum > 0 order by attrelid, attnum
select format_type(1042, null), format_type(1042, -1), format_type(1042, 14), format_type(1015, 14), format_type(1700, 655366), format_type(0, 1), format_type(null, 1), format_type(1043, null)
select conname, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) = pg_get_constraintdef(oid) from pg_constraint where connamespace = (select oid from pg_namespace where nspname = 's') and contype <> 'c' order by 1
select c.relname, pg_get_indexdef(c.oid), pg_get_indexdef(c.oid, 1, true) from pg_class c where relkind = 'i' and relnamespace = (select oid from pg_namespace where nspname = 's') order by 1
select a.attname, pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d join pg_attribute a on attrelid = adrelid and attnum = adnum where a.attname in ('a', 'c', 'w') order by 1
select relname, pg_table_is_visible(oid) from pg_class where relname in ('t', 'pg_class', 'tables') order by 1
select pg_table_is_visible(0), pg_type_is_visible(23), obj_description(1, 'pg_class'), col_description(1, 2), pg_get_constraintdef(1), pg_encoding_to_char(6)
select relname, pg_get_userbyid(relowner) = current_user from pg_class where relname = 't' order by pg_get_userbyid(relowner)
# Oids that are shown as names.
select 's.t'::regclass, 'S.T'::regclass::oid = 's.t'::regclass, 'pg_class'::regclass, 'pg_catalog.pg_class'::regclass::oid, 's.t_pkey'::regclass, 'information_schema.tables'::regclass
select 'int'::regtype, 'character varying'::regtype::oid, '23'::regtype, 'int[]'::regtype, 'numeric(10,2)'::regtype, 's'::regnamespace, 'timestamptz'::regtype::text
select conname, conrelid::regclass, conrelid::regclass::text, conindid::regclass from pg_constraint where conrelid = 's.u'::regclass
select 0::oid::regclass, 999::regclass, null::regclass, '-'::regtype, 0::regtype::text
select oid::regtype::text, oid::regtype from pg_type where oid in (23, 1043, 1007, 1184) order by oid
select attname, atttypid::regtype from pg_attribute where attrelid = 's.t'::regclass and attnum > 0 order by attnum
select 'nope'::regclass
select 's.nope'::regclass
select 'a.b.c.d'::regclass
select 'nope'::regtype
select 'nope'::regnamespace
select 'nope'::regrole
select to_regclass('s.t'), to_regclass('nope'), to_regtype('int'), to_regtype('integer'), to_regtype('_int4'), to_regtype('nope'), to_regnamespace('s'), to_regnamespace('nope')
select relname from pg_class where oid = any (array['s.t'::regclass, 's.u'::regclass]::oid[]) order by 1
select 's.t'::regclass = 's.t'::regclass::oid, 's.t'::regclass > 0::oid
# The views of information_schema.
select table_schema, table_name, table_type, is_insertable_into, is_typed, commit_action from information_schema.tables where table_schema = 's' order by 2
select column_name, ordinal_position, is_nullable, data_type, character_maximum_length, character_octet_length, numeric_precision, numeric_precision_radix, numeric_scale, datetime_precision, udt_schema, udt_name, dtd_identifier, is_identity, is_generated, is_updatable from information_schema.columns where table_schema = 's' order by table_name, ordinal_position
select column_name, column_default from information_schema.columns where table_schema = 's' and column_name in ('a', 'c', 'w') order by 1
select table_name, constraint_type, is_deferrable, initially_deferred, enforced, nulls_distinct from information_schema.table_constraints where table_schema = 's' and constraint_type <> 'CHECK' order by constraint_name
select constraint_name, table_name, column_name, ordinal_position from information_schema.key_column_usage where table_schema = 's' order by 1, 4
select schema_name from information_schema.schemata where schema_name in ('s', 'public') order by 1
# Foreign keys, with the key that they refer to.
create table s.f (x int references s.t on delete cascade, y numeric(10,2), z text, constraint pair foreign key (y, z) references s.t (a, b) on update set null)
select conname, contype, confrelid::regclass, conindid::regclass, conkey, confkey, confupdtype, confdeltype, confmatchtype, pg_get_constraintdef(oid) from pg_constraint where conrelid = 's.f'::regclass order by 1
select constraint_name, constraint_type from information_schema.table_constraints where table_name = 'f' and table_schema = 's' order by 1
select constraint_name, column_name, ordinal_position, position_in_unique_constraint from information_schema.key_column_usage where table_name = 'f' and table_schema = 's' order by 1, 3
select constraint_name, unique_constraint_schema, unique_constraint_name, match_option, update_rule, delete_rule from information_schema.referential_constraints where constraint_schema = 's' order by 1
drop table s.f
# Views and other indexes.
create view s.v as select id, a, b as "B" from s.t
create index ix on s.t (b, a desc) where a > 1
create index on s.u (lower(f))
select relname, relkind, relnatts, relhasrules, relhasindex from pg_class where relname in ('v', 'ix', 'u_lower_idx', 't') and relnamespace = 's'::regnamespace order by 1
select attname, atttypid::regtype, atttypmod, attnum, attnotnull from pg_attribute where attrelid = 's.v'::regclass and attnum > 0 order by attnum
select schemaname, viewname from pg_views where schemaname = 's'
select table_name, check_option from information_schema.views where table_schema = 's'
select table_name, table_type from information_schema.tables where table_schema = 's' order by 1
select column_name, data_type, is_nullable from information_schema.columns where table_schema = 's' and table_name = 'v' order by ordinal_position
select c.relname, indnatts, indisunique, indisprimary, indisvalid, indpred is null, indexprs is null from pg_index join pg_class c on c.oid = indexrelid where c.relname in ('ix', 'u_lower_idx') order by 1
select pg_table_is_visible('s.v'::regclass), 's.v'::regclass, 's.ix'::regclass
drop view s.v
drop index s.ix
# Sequences, identities, generated columns.
create table s.g (id serial primary key, i int generated always as identity (start 5), d bigint generated by default as identity, a int, g int generated always as (a * 2) stored)
create sequence s.q increment 2 minvalue 1 maxvalue 100 cycle
select relname, relkind, relnatts from pg_class where relnamespace = 's'::regnamespace and relkind = 'S' order by 1
select seqrelid::regclass, seqtypid::regtype, seqstart, seqincrement, seqmax, seqmin, seqcache, seqcycle from pg_sequence where seqrelid::regclass::text like 's.%' order by seqrelid::regclass::text
select attname, atthasdef, attidentity, attgenerated, attnotnull from pg_attribute where attrelid = 's.g'::regclass and attnum > 0 order by attnum
select adnum, pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 's.g'::regclass and adnum < 5 order by adnum
select column_name, column_default, is_identity, identity_generation, identity_start, identity_increment, identity_maximum, identity_minimum, identity_cycle, is_generated from information_schema.columns where table_schema = 's' and table_name = 'g' order by ordinal_position
select sequence_name, data_type, numeric_precision, start_value, minimum_value, maximum_value, increment, cycle_option from information_schema.sequences where sequence_schema = 's' order by 1
select pg_get_serial_sequence('s.g', 'id'), pg_get_serial_sequence('s.g', 'i'), pg_get_serial_sequence('s.g', 'a'), pg_get_serial_sequence(null, 'a')
select pg_partition_ancestors('s.g')
select pg_typeof(1), pg_typeof('x'::varchar(3))::text, pg_typeof(array[1]), pg_typeof(null), pg_typeof(1) = 'int'::regtype
drop table s.g
drop sequence s.q
# What a transaction has done, and what is not there.
begin
create table s.own (a int)
select relname from pg_class where relname = 'own'
rollback
select relname from pg_class where relname = 'own'
select count(*) from pg_trigger
select * from pg_catalog.nothing
select * from information_schema.nothing
select c.relname from pg_catalog.pg_class c where c.relkind = any (array['r', 'p']) and c.relname = 't'
drop table s.t, s.u
select relname from pg_class c join pg_namespace n on n.oid = relnamespace where nspname = 's'
select s.ssl, s.version, s.cipher, s.bits, s.client_dn, s.client_serial, s.issuer_dn from pg_stat_ssl s join pg_stat_activity a using (pid) where a.pid = pg_backend_pid()
select gss_authenticated, principal, encrypted, credentials_delegated from pg_stat_gssapi where pid = pg_backend_pid()
select backend_type, object, context, reads is null, read_bytes is null, writes is null, fsync_time is null from pg_stat_io where backend_type in ('client backend', 'checkpointer') order by 1, 2, 3
# meridian
delete from pg_class
drop table pg_class
alter table pg_class rename to x
