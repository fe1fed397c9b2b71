# pg_describe_object(), and the indexes and constraints of system catalogs.
create schema shop
create type shop.mood as enum ('sad', 'happy')
create domain positive as int constraint pos check (value > 0)
create table shop.item (id int generated always as identity primary key, "a b" text default 'x', m shop.mood, constraint long check (length("a b") > 0))
create table sale (item int references shop.item, n positive)
create index on sale (n)
create view v as select id from shop.item
create statistics st on item, n from sale
create sequence s owned by sale.n
select pg_describe_object(classid, objid, objsubid), pg_describe_object(refclassid, refobjid, refobjsubid), deptype from pg_depend where classid in (1259, 2604, 2606, 2618, 3381) and refclassid in (1259, 2606, 2615) and objid >= 16384 and objid not in (select oid from pg_class where relkind = 't') and objid not in (select indexrelid from pg_index join pg_class c on c.oid = indrelid where relkind = 't') order by 1, 2, 3
select pg_describe_object('pg_type'::regclass, 'shop.mood'::regtype, 0), pg_describe_object('pg_type'::regclass, 'positive'::regtype, 0), pg_describe_object(1247, 16, 0), pg_describe_object(1247, 23, 0)
select pg_describe_object('pg_constraint'::regclass, oid, 0) from pg_constraint where conname = 'pos'
select pg_describe_object('pg_proc'::regclass, 'lower(text)'::regprocedure, 0), pg_describe_object('pg_am'::regclass, 403, 0), pg_describe_object('pg_namespace'::regclass, 11, 0), pg_describe_object(2612, 14, 0)
select pg_describe_object('pg_class'::regclass, 'shop.item'::regclass, 2), pg_describe_object('pg_class'::regclass, 'pg_class'::regclass, 0), pg_describe_object('pg_class'::regclass, 's'::regclass, 0), pg_describe_object('pg_class'::regclass, 'v'::regclass, 1)
select pg_describe_object('pg_class'::regclass, 1, 0), pg_describe_object('pg_type'::regclass, 1, 0), pg_describe_object(null, 1, 0), pg_describe_object(1247, null, 0), pg_describe_object(1247, 16, null)
select pg_describe_object(classid, objid, objsubid) from pg_depend where deptype = 'e' order by 1
select 'pg_class_oid_index'::regclass, 'pg_catalog.pg_type_typname_nsp_index'::regclass::oid, 2662::regclass, to_regclass('pg_proc_oid_index')
select 'public.pg_class_oid_index'::regclass
select x.relname, x.relkind, x.relam, x.relnatts, x.relisshared, x.reltablespace, i.indisunique, i.indisprimary, i.indkey, i.indclass, i.indcollation, i.indoption from pg_index i join pg_class x on x.oid = i.indexrelid where i.indrelid in (1255, 1259, 1260, 1262) order by 1
select relname, relhasindex, relisshared, reltablespace from pg_class where relname in ('pg_class', 'pg_authid', 'pg_database', 'pg_tables') order by 1
select attrelid::regclass, attname, atttypid::regtype, attnum, attcollation from pg_attribute where attrelid in ('pg_class_relname_nsp_index'::regclass, 'pg_authid_rolname_index'::regclass) order by 1, attnum
select conname, contype, conrelid::regclass, conindid::regclass, conkey, pg_get_constraintdef(oid), pg_get_constraintdef(oid, true) from pg_constraint where conrelid in ('pg_class'::regclass, 'pg_type'::regclass) order by 3, 1
select pg_get_indexdef('pg_class_relname_nsp_index'::regclass), pg_get_indexdef('pg_class_relname_nsp_index'::regclass, 0, true), pg_get_indexdef('pg_class_relname_nsp_index'::regclass, 2, false)
select * from pg_indexes where tablename in ('pg_class', 'pg_authid') order by 3
select tablename, tablespace, hasindexes from pg_tables where tablename in ('pg_class', 'pg_authid', 'pg_largeobject') order by 1
select count(*) from pg_index where indrelid < 12000 and indrelid in (select oid from pg_class where relkind = 'r')
# meridian
select pg_describe_object(1, 1, 0)
select * from ts_token_type(1)
select null::int4range
select to_tsvector('a')
