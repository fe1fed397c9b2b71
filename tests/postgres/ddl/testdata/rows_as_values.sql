# Functions of several columns as values: their rows, a field of them, all of them.
create table t (a int primary key, b text, c numeric(10,2), d timestamptz, e int[])
insert into t values (1, 'x y', 1.5, '2020-01-02 03:04:05+00', '{1,2}'), (2, null, null, null, null), (3, 'q"r,', 0, null, '{}')
create index ti on t (b, a)
create table u (id int, t_id int)
insert into u values (10, 1), (11, 7)
select pg_get_keywords() limit 2
select (pg_get_keywords()).* limit 2
select json_each('{"a":1,"b":2}')
select (json_each('{"a":1,"b":2}')).*
select (json_each('{"a":1,"b":2}')).key
select information_schema._pg_expandarray('{4,5}'::int[])
select (information_schema._pg_expandarray('{4,5}'::int[])).*
select (information_schema._pg_expandarray(i.indkey)).n, (information_schema._pg_expandarray(i.indkey)).x from pg_index i join pg_class c on c.oid = i.indrelid where relname = 't' order by 1,2
select (sub.keys).n, (sub.keys).x from (select information_schema._pg_expandarray(i.indkey) as keys from pg_index i join pg_class c on c.oid = i.indrelid where relname = 't') sub order by 1,2
select result.TABLE_CAT, result.TABLE_SCHEM, result.TABLE_NAME, result.COLUMN_NAME, result.KEY_SEQ, result.PK_NAME from (select current_database() as TABLE_CAT, n.nspname as TABLE_SCHEM, ct.relname as TABLE_NAME, a.attname as COLUMN_NAME, (information_schema._pg_expandarray(i.indkey)).n as KEY_SEQ, ci.relname as PK_NAME, information_schema._pg_expandarray(i.indkey) as KEYS, a.attnum as A_ATTNUM from pg_catalog.pg_class ct join pg_catalog.pg_attribute a on (ct.oid = a.attrelid) join pg_catalog.pg_namespace n on (ct.relnamespace = n.oid) join pg_catalog.pg_index i on ( a.attrelid = i.indrelid) join pg_catalog.pg_class ci on (ci.oid = i.indexrelid) where true and ct.relname = 't' and i.indisprimary ) result where result.A_ATTNUM = (result.KEYS).x order by result.table_name, result.pk_name, result.key_seq
select tmp.TABLE_NAME, tmp.NON_UNIQUE, tmp.INDEX_NAME, tmp.TYPE, tmp.ORDINAL_POSITION, trim(both '"' from pg_catalog.pg_get_indexdef(tmp.CI_OID, tmp.ORDINAL_POSITION, false)) as COLUMN_NAME, case tmp.AM_NAME when 'btree' then case tmp.I_INDOPTION[tmp.ORDINAL_POSITION - 1] & 1::smallint when 1 then 'D' else 'A' end else null end as ASC_OR_DESC, tmp.CARDINALITY >= -1 as c, tmp.PAGES >= 0 as p, tmp.FILTER_CONDITION from (select n.nspname as TABLE_SCHEM, ct.relname as TABLE_NAME, not i.indisunique as NON_UNIQUE, null as INDEX_QUALIFIER, ci.relname as INDEX_NAME, case i.indisclustered when true then 1 else case am.amname when 'hash' then 2 else 3 end end as TYPE, (information_schema._pg_expandarray(i.indkey)).n as ORDINAL_POSITION, ci.reltuples as CARDINALITY, ci.relpages as PAGES, pg_catalog.pg_get_expr(i.indpred, i.indrelid) as FILTER_CONDITION, ci.oid as CI_OID, i.indoption as I_INDOPTION, am.amname as AM_NAME from pg_catalog.pg_class ct join pg_catalog.pg_namespace n on (ct.relnamespace = n.oid) join pg_catalog.pg_index i on (ct.oid = i.indrelid) join pg_catalog.pg_class ci on (ci.oid = i.indexrelid) join pg_catalog.pg_am am on (ci.relam = am.oid) where true and ct.relname = 't') as tmp order by NON_UNIQUE, TYPE, INDEX_NAME, ORDINAL_POSITION
select name, setting from pg_show_all_settings() where name in ('work_mem','max_index_keys') order by 1
select name, comment from pg_available_extensions() where name = 'plpgsql'
select count(*) > 0 from pg_available_extension_versions()
select aclexplode(relacl) from pg_class where relname = 't'
select pg_options_to_table('{a=b,c=d}'::text[])
select (pg_options_to_table('{a=b,c=d}'::text[])).*
select row(1,2)
select (row(1,2)).f1
select (x).f1 from (select row(1,2) as x) q
select jsonb_each_text('{"a":1}')
select x from jsonb_each_text('{"a":1}') x
select x::text from jsonb_each_text('{"a":1}') x
select (x).key from jsonb_each_text('{"a":1}') x
select jsonb_populate_record(null::u, '{"id":3}')
select (jsonb_populate_record(null::u, '{"id":3}')).*
select (jsonb_populate_record(null::u, '{"id":3}')).id
select * from jsonb_populate_record(null::u, '{"id":3}')
select jsonb_populate_recordset(null::u, '[{"id":3},{"id":4,"t_id":5}]')
select (json_populate_recordset(null::u, '[{"id":3},{"id":4,"t_id":5}]')).*
# current_setting() of a name that rows have.
select name, current_setting(name) = setting from pg_settings where name in ('max_index_keys','port_x') 
select current_setting(x) from (values ('datestyle'), ('integer_datetimes')) v(x)
select current_setting(x, true) from (values ('datestyle'), ('nope.x')) v(x)
select current_setting(x) from (values ('datestyle'), ('nope.x')) v(x)
select current_setting(x) from (values ('datestyle'), ('integer_datetimes')) v(x)
select current_setting(x, true) from (values ('datestyle'), ('nope.x')) v(x)
select current_setting(x) from (values ('datestyle'), ('nope.x')) v(x)
select current_setting(x) from (values ('a.b'), (null)) v(x)
set a.b = 'q'
select current_setting(x) from (values ('a.b'), (null)) v(x)
select current_setting(name) = setting, count(*) from pg_settings where name ~ 'enable_h' group by 1
select set_config('a.b', 'z', false), current_setting('a.b')
select current_setting(n.nspname || '.b', true) from pg_namespace n where nspname = 'public'
# meridian
select json_to_record('{"a":1}')
