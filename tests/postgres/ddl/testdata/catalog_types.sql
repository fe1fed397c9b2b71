# Types that only catalogs have, and names of types.
select 'xid'::regtype, 'aclitem[]'::regtype, 'pg_catalog.int2vector'::regtype, '_tid'::regtype
select oid::int, typname, typlen, typbyval, typtype, typcategory, typalign, typstorage, typelem, typarray::int, typcollation, typinput, typoutput, typreceive, typsend from pg_type where typname in ('int2vector', 'oidvector', 'xid', 'xid8', 'cid', 'tid', 'aclitem', 'pg_node_tree', 'pg_lsn', '_xid', '_xid8', '_cid', '_tid', '_aclitem', '_pg_lsn', '_int2vector', '_oidvector', '_regclass', '_regtype', '_regproc', '_regrole') order by oid
select attname, format_type(atttypid, atttypmod), atttypid::int from pg_attribute where attrelid = 'pg_class'::regclass and attnum > 0 order by attnum
select attname, format_type(atttypid, atttypmod), attlen, attbyval, attalign, attstorage from pg_attribute where attrelid = 'pg_index'::regclass and attnum > 0 order by attnum
select column_name, data_type, udt_name from information_schema.columns where table_schema = 'pg_catalog' and table_name in ('pg_attribute', 'pg_attrdef', 'pg_database') and column_name <> 'attmissingval' order by table_name, ordinal_position
select t::regtype, t::regtype::oid::int from (values ('int4'), ('"char"'), ('char'), ('char[]'), ('_char'), ('"_int4"'), ('int4[]'), ('integer[]'), ('"int4"'), ('pg_catalog.int4'), ('pg_catalog."char"'), ('pg_catalog.char'), ('xid'), ('aclitem[]'), ('_aclitem'), ('double precision'), ('timestamp  with time zone[]')) v(t)
select '"integer"'::text::regtype
select 'nothing[]'::text::regtype
select array['int4', 'text']::regtype[], '{int4,"double precision"}'::regtype[], '{pg_class}'::regclass[]
select proargtypes::regtype[], proallargtypes::regtype[] from pg_proc where proname = 'format_type'
select array_agg(c.oid::regclass order by c.relname), array_to_string(array_agg(c.oid::regclass order by c.relname), ',') from pg_class c where relname in ('pg_class', 'pg_type')
select array(select t.oid from pg_type t where t.typname in ('int4', 'text') order by t.oid)::regtype[]::text[]
select array['int4', 'text']::regtype[]::text, array['int4', null]::regtype[]::oid[]
select array['pg_class']::text[]::regclass[], array['pg_class'::regclass]::oid[]::text
select 'pg_class'::regclass = any (array['pg_class', 'pg_type']::regclass[]), 1259 = any (array['pg_class']::regclass[]::oid[])
select to_json(array['int4']::regtype[])
select array['nope']::text[]::regclass[]
select typname::regtype::oid::int from pg_type where typname in ('char', 'int4', '_int4', 'text') and typnamespace = 'pg_catalog'::regnamespace order by 1
select (select relacl from pg_class where relname = 'pg_class') is null, relfrozenxid is null from pg_class where relname = 'pg_type'
select pg_typeof(relacl), pg_typeof(relfrozenxid), pg_typeof(reloptions) from pg_class limit 1
# meridian
create table regs (a regtype[])
create table regs as select array_agg(c.oid::regclass) a from pg_class c
select row(array['int4']::regtype[])
