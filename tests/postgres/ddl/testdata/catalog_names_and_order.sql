# A name beyond ASCII is matched like others, also by those who look for something else.
create table "müller" (b int, a int)
create table x (a int)
select relname from pg_class where relname ~ '^(x)$' collate pg_catalog.default
select relname from pg_class where relname ~ '^(x)$'
select relname from pg_class where relname ~ '^(müller)$' collate pg_catalog.default
select relname from pg_class where relname ~* '^(MÜLLER)$' collate pg_catalog.default
select relname from pg_class where relname ilike 'MÜLL%' collate pg_catalog.default
select relname from pg_class where relname ilike 'MüLL%'
select relname from pg_class where relname like 'm_ller'
# Rows come by oid and attnum, whatever was changed since.
create table c (z int, y int)
create table b (y int, x int default 1)
create table a (x int)
alter table c add w int
alter table b rename x to a
alter table c rename to d
create type mood as enum ('sad', 'ok')
alter type mood add value 'fine' before 'ok'
select attname from pg_attribute where attrelid in ('d'::regclass, 'b'::regclass) and attnum > 0
select attname from pg_attribute where attrelid = 'müller'::regclass and attnum > 0
select enumlabel from pg_enum where enumtypid = 'mood'::regtype order by enumsortorder
select table_name, column_name from information_schema.columns where table_name in ('b', 'müller')
# meridian
# PostgreSQL reads these by an index, or where ALTER has put them.
select relname from pg_class where relname in ('a', 'b', 'd', 'x', 'müller')
select typname from pg_type where typname in ('text', 'int4', 'mood', '_mood', 'bool')
