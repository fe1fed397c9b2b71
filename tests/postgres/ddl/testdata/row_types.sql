# Every table and view has a row type: programs take a table without one for empty.
create table t (a int, b text)
create schema s
create table s.u (a int)
create view v as select a from t
create table "Odd" (a int)
create sequence q
select relname, reltype > 0 from pg_class where relname in ('t', 'u', 'v', 'Odd', 'q', 't_pkey') order by 1
select c.relname, y.typname, y.typtype, y.typcategory, y.typlen, y.typbyval, y.typalign, y.typstorage, y.typrelid = c.oid, y.typnamespace = c.relnamespace, y.typinput, y.typoutput, y.typowner = c.relowner, y.typisdefined, y.typelem from pg_class c join pg_type y on y.oid = c.reltype where c.relname in ('t', 'u', 'v', 'Odd') order by 1
select e.typname, a.typname, a.typtype, a.typcategory, a.typrelid, a.typelem = e.oid, a.typinput, a.typalign from pg_type e join pg_type a on a.oid = e.typarray where e.typname in ('t', 'u', 'v', 'Odd') order by 1
select format_type(reltype, null), reltype::regtype from pg_class where relname in ('t', 'u', 'v', 'Odd') order by relname
select format_type(typarray, null) from pg_type where typname in ('t', 'u', 'Odd') order by typname
select n::regtype::oid = (select reltype from pg_class where oid = n::regclass) from (values ('t'), ('s.u'), ('"Odd"'), ('v')) x(n)
select pg_type_is_visible(reltype) from pg_class where relname in ('t', 'u') order by relname
drop table "Odd"
select count(*) from pg_type where typname in ('Odd', '_Odd')
