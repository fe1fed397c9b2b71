# Casts to types that only catalogs have, and parameters that are arrays of reg types.
select '5'::xid
select '5'::xid, 5::xid::text
select '16'::xid8
select '7'::cid
select '{1,2}'::xid[]
select '{postgres=r/postgres}'::aclitem[]
select 'postgres=r/postgres'::aclitem
select '1 2'::int2vector
select '1 2'::oidvector
select 'pg_class'::regclass::oid::regclass
select 'int4'::regtype::oid
select '{int4,text}'::regtype[]
select array['int4','text']::regtype[]
select array['pg_class','pg_type']::regclass[]
select '{pg_class,pg_type}'::regclass[]
select '{pg_class}'::text[]::regclass[]
select 'x'::"char"
select '{a,b}'::"char"[]
select '5'::xid = '5'::xid, '5'::xid <> '6'::xid, '5'::xid = 5
select relfrozenxid::text ~ '^\d+$' from pg_class where relname = 'pg_class'
select relfrozenxid::xid = relfrozenxid from pg_class where relname = 'pg_class'
select proargtypes::oid[] from pg_proc where proname = 'upper' order by oid limit 1
select proargtypes::regtype[] from pg_proc where proname = 'upper' order by oid limit 1
select proargtypes[0]::regtype from pg_proc where proname = 'upper' order by oid limit 1
select proallargtypes::regtype[] from pg_proc where proname = 'pg_get_keywords'
select array_agg(atttypid::regtype order by attnum) from pg_attribute where attrelid = 'pg_am'::regclass and attnum > 0
select array(select atttypid::regtype from pg_attribute where attrelid = 'pg_am'::regclass and attnum > 0 order by attnum)
select typname::regtype from pg_type where typname in ('int4','_int4') order by 1
select oid::regtype::text from pg_type where typname in ('int4','_int4') order by 1
select 'int4'::text::regtype
select x::regtype from (values ('int4'), ('text[]')) v(x)
select x::regclass from (values ('pg_class'), ('pg_type')) v(x)
select 'pg_catalog'::regnamespace, 'postgres'::regrole
select 'pg_catalog'::regnamespace::text, 'postgres'::regrole::oid
select 'now()'::regprocedure, 'now'::regproc
select 'regclass'::regtype, 'aclitem[]'::regtype, 'xid'::regtype, 'pg_lsn'::regtype
select pg_typeof('5'::xid), pg_typeof('{}'::aclitem[])
select relacl::text[] from pg_class where relname = 'pg_am'
select relacl::text from pg_class where relname = 'pg_am'
select unnest(relacl)::text from pg_class where relname = 'pg_am'
select array_to_string(relacl, ',') from pg_class where relname = 'pg_am'
prepare a(regtype) as select $1
execute a('int4')
prepare b(regtype[]) as select $1
execute b('{int4,text}')
prepare c(regclass) as select $1::oid = 'pg_class'::regclass
execute c('pg_class')
prepare e(regclass[]) as select relname from pg_class where oid = any($1) order by 1
execute e('{pg_class,pg_type}')
prepare f as select relname from pg_class where oid = any($1::regclass[]) order by 1
execute f('{pg_class,pg_type}')
prepare g as select $1::regtype[]
execute g('{int4,text}')
prepare h as select $1::regclass
execute h('pg_class')
select relname from pg_class where oid = any('{pg_class,pg_type}'::regclass[]) order by 1
select relname from pg_class where oid = any(array['pg_class'::regclass, 'pg_type'::regclass]) order by 1
select atttypid::regtype = 'name'::regtype from pg_attribute where attrelid = 'pg_am'::regclass and attname = 'amname'
select 1::oid::xid
select cast('a' as pg_catalog.name), 'a'::pg_catalog.text
select '1'::pg_catalog.int4, 1::pg_catalog."char"
# meridian
select '(0,1)'::tid
select '0/16B3748'::pg_lsn
select xmin is not null from pg_class limit 1
select null::xid, null::aclitem[], null::pg_node_tree, null::pg_lsn
prepare d(xid) as select $1
select '0/10'::pg_lsn < '0/20'::pg_lsn
select '0/20'::pg_lsn - '0/10'::pg_lsn
select pg_current_wal_lsn() is not null
select '(0,1)'::tid = '(0,1)'::tid
