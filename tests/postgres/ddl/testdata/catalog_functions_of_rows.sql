# System functions that give rows, and those of information_schema.
create table bt (id int primary key, v varchar(7), c char(3), x text, n numeric(6,2), m numeric, ts timestamp(3), t time, iv interval(2), d date, i int2, s serial)
create role "odd ""role"
grant select (v), update on bt to "odd ""role" with grant option
select count(*), count(distinct catcode) from pg_get_keywords()
select word, catcode, barelabel, catdesc, baredesc from pg_get_keywords() where word in ('select', 'int', 'left', 'abort') order by word
select (information_schema._pg_expandarray(i.indkey)).n, (information_schema._pg_expandarray(i.indkey)).x from pg_index i where indrelid = 'bt'::regclass
select x, n from information_schema._pg_expandarray(array[5, 6]::int2[])
select e.* from information_schema._pg_expandarray('{a,b}'::text[]) as e(element, place) order by place desc
select attname, information_schema._pg_char_max_length(information_schema._pg_truetypid(a.*, t.*), information_schema._pg_truetypmod(a.*, t.*)) as l, information_schema._pg_char_octet_length(atttypid, atttypmod) as o, information_schema._pg_numeric_precision(atttypid, atttypmod) as p, information_schema._pg_numeric_precision_radix(atttypid, atttypmod) as r, information_schema._pg_numeric_scale(atttypid, atttypmod) as s, information_schema._pg_datetime_precision(atttypid, atttypmod) as d from pg_attribute a join pg_type t on t.oid = a.atttypid where attrelid = 'bt'::regclass and attnum > 0 order by attnum
select information_schema._pg_index_position('bt_pkey'::regclass, 1::int2), information_schema._pg_index_position('bt_pkey'::regclass, 2::int2)
select * from pg_options_to_table(array['a=b', 'c=d=e', 'f'])
select last_value, is_called from pg_get_sequence_data('bt_s_seq'::regclass)
select nextval('bt_s_seq')
select last_value, is_called from pg_get_sequence_data('bt_s_seq'::regclass)
select * from pg_partition_tree('bt'::regclass)
select r.rolname, a.privilege_type, a.is_grantable from pg_class c, aclexplode(c.relacl) a join pg_roles r on r.oid = a.grantee where c.relname = 'bt' and r.rolname like 'odd%'
select a.attname, (aclexplode(a.attacl)).privilege_type, (aclexplode(a.attacl)).is_grantable from pg_attribute a where attrelid = 'bt'::regclass and attacl is not null
select privilege_type from aclexplode(acldefault('r', 10))
select grantee::int, privilege_type, is_grantable from aclexplode(acldefault('f', 10)) order by 1
select count(*) from aclexplode(null)
select pg_stat_get_vacuum_count('bt'::regclass), pg_stat_get_last_vacuum_time('bt'::regclass)
select information_schema._pg_nothing(1)
drop table bt
drop role "odd ""role"
select (information_schema._pg_expandarray(array[7, 8])).*, 1 as one
select information_schema._pg_expandarray(array[7, 8])
select aclexplode(acldefault('r', 10))
