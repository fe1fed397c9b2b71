create role a
create role b login in role a
create role c noinherit in role a
create role boss superuser
create table t (x int, y int)
create sequence s
create type mood as enum ('ok')
create schema n
grant select on t to a
grant update (x) on t to b with grant option
grant insert on t to c with grant option
grant usage on s to a
grant create on schema n to public
select has_table_privilege('t', 'select'), has_table_privilege('a', 't', 'select'), has_table_privilege('b', 't', 'select'), has_table_privilege('c', 't', 'select'), has_table_privilege('boss', 't', 'delete')
select has_table_privilege('b', 't', 'update'), has_table_privilege('b', 't', 'delete, SELECT'), has_table_privilege('c', 't', 'insert with grant option'), has_table_privilege('a', 't', 'select with grant option')
select has_table_privilege('public', 't', 'select'), has_table_privilege('b', 'pg_class', 'select'), has_table_privilege('b', 'pg_authid', 'select'), has_table_privilege('b', 's', 'usage')
select has_table_privilege('a', 't', 'nonsense')
select has_table_privilege('a', 999999::oid, 'select'), has_table_privilege(r.oid, 't', 'insert') from pg_roles r where rolname in ('a', 'c') order by 2
select has_any_column_privilege('b', 't', 'update'), has_any_column_privilege('a', 't', 'update'), has_any_column_privilege('a', 't', 'select')
select has_schema_privilege('b', 'n', 'create'), has_schema_privilege('b', 'n', 'usage'), has_schema_privilege('b', 'pg_catalog', 'usage'), has_schema_privilege('b', 'information_schema', 'create')
select has_type_privilege('b', 'mood', 'usage'), has_type_privilege('b', 'int4', 'usage')
revoke usage on type mood from public
select has_type_privilege('b', 'mood', 'usage'), has_type_privilege('mood', 'usage')
select pg_has_role('b', 'a', 'usage'), pg_has_role('b', 'a', 'member'), pg_has_role('c', 'a', 'usage'), pg_has_role('c', 'a', 'member'), pg_has_role('c', 'a', 'set'), pg_has_role('a', 'b', 'member'), pg_has_role('a', 'member'), pg_has_role('boss', 'a', 'usage')
grant a to b with admin option
select pg_has_role('b', 'a', 'member with admin option'), pg_has_role('c', 'a', 'usage with grant option'), pg_has_role('b', 'b', 'usage'), pg_has_role('b', 'b', 'usage with admin option')
select relname, has_table_privilege('b', oid, 'select') from pg_class where relname in ('t', 's') order by 1
select acldefault('r', oid), acldefault('d', oid), acldefault('s', oid), acldefault('T', oid), acldefault('n', oid), acldefault('c', oid) from pg_roles where rolname = 'a'
comment on type mood is 'feelings'
comment on role a is 'readers'
comment on domain mood is 'x'
comment on type nosuch is 'x'
comment on role nosuch is 'x'
create domain d as int
comment on domain d is 'numbers'
select obj_description('mood'::regtype, 'pg_type'), obj_description('d'::regtype, 'pg_type'), shobj_description(oid, 'pg_authid') from pg_roles where rolname = 'a'
comment on role a is null
select shobj_description(oid, 'pg_authid') from pg_roles where rolname = 'a'
comment on role b is 'b'
drop type mood
drop role boss
select count(*) from pg_description where description = 'feelings'
# meridian
grant usage on language sql to a
grant execute on function lower(text) to a
grant select on all tables in schema pg_catalog to a
alter table t owner to b
drop owned by b
alter function lower(text) owner to a
