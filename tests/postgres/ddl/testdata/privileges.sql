create role a
create role b login
create role c
create table t (x int primary key, y text, id serial)
create view v as select x from t
create sequence s
create type mood as enum ('sad', 'ok')
create domain d as int
create schema n
grant select on t to a
grant select, insert on table t to a, b with grant option
grant update (x, y), references (y) on t to public
grant all on t to c
grant all (y) on t to c
grant select on s, t, v to b
grant usage on s to b
grant usage on t to b
grant usage on sequence s to public
grant usage on sequence t to public
grant truncate on sequence s to public
grant delete on s to a
grant execute on table t to a
grant nothing on t to a
grant select (nosuch) on t to a
grant delete (x) on t to a
grant select (x) on schema n to a
grant create, usage on schema n to a with grant option
grant select on schema n to a
grant create on schema nosuch to a
grant create on schema pg_catalog, information_schema to a
select nspname, nspacl from pg_namespace where nspname in ('pg_catalog', 'information_schema') order by 1
revoke create on schema pg_catalog, information_schema from a
grant usage on type mood to a
grant usage on type d to a
grant usage on domain d to b
grant usage on domain mood to b
grant select on type mood to a
grant usage on type nosuch to a
grant connect, temp on database postgres to a
grant all on database nosuch to a
grant all on nosuch to a
grant all on t to nosuch
grant all on n.nosuch to a
grant all on nosuch.t to a
grant select on t_pkey to a
grant select on t to public with grant option
grant select on t to a granted by b
grant select on t to a granted by current_user
select relname, relacl from pg_class where relname in ('t', 'v', 's', 't_id_seq', 't_pkey') order by 1
select attname, attacl from pg_attribute where attrelid = 't'::regclass and attnum > 0 order by attnum
select nspname, nspacl from pg_namespace where nspname = 'n'
select typname, typacl from pg_type where typname in ('mood', 'd') order by 1
select datacl from pg_database where datname = 'postgres'
revoke grant option for select on t from a
revoke insert on t from b
revoke update on t from public
revoke all on t from c
revoke all on s from public, b
revoke usage on type mood from public
revoke all on schema n from a
revoke all on t from nosuch
select relname, relacl from pg_class where relname in ('t', 'v', 's') order by 1
select attname, attacl from pg_attribute where attrelid = 't'::regclass and attnum > 0 order by attnum
select nspname, nspacl from pg_namespace where nspname = 'n'
select typname, typacl from pg_type where typname in ('mood', 'd') order by 1
create table n.one (k int)
create table n.two (k serial)
create view n.three as select 1 as q
grant select on all tables in schema n to a, public
grant usage on all sequences in schema n to b
grant execute on all functions in schema n to b
grant select on all tables in schema nosuch to a
revoke select on all tables in schema n from public
select relname, relacl from pg_class where relnamespace = 'n'::regnamespace and relkind in ('r', 'v', 'S') order by 1
drop role a
alter table t owner to b
alter table n.two owner to b
alter view v owner to b
alter sequence s owner to c
alter type mood owner to c
alter domain d owner to b
alter type d owner to c
alter domain mood owner to b
alter schema n owner to c
alter table v owner to a
alter table s owner to a
alter table t_pkey owner to a
alter index t_pkey owner to a
alter view t owner to a
alter sequence t owner to a
alter sequence t_id_seq owner to a
alter table nosuch owner to a
alter table if exists nosuch owner to a
alter table t owner to nosuch
alter schema nosuch owner to a
alter type nosuch owner to a
select relname, pg_get_userbyid(relowner), relacl from pg_class where relname in ('t', 'v', 's', 't_id_seq', 't_pkey', 'two', 'two_k_seq') order by 1
select attname, attacl from pg_attribute where attrelid = 't'::regclass and attnum > 0 order by attnum
select nspname, pg_get_userbyid(nspowner), nspacl from pg_namespace where nspname = 'n'
select typname, pg_get_userbyid(typowner), typacl from pg_type where typname in ('mood', 'd', '_mood') order by 1
select tablename, tableowner from pg_tables where schemaname in ('public', 'n') order by 1
select viewname, viewowner from pg_views where schemaname in ('public', 'n') order by 1
drop role c
reassign owned by b, c to a
reassign owned by current_user to a
reassign owned by nosuch to a
select relname, pg_get_userbyid(relowner), relacl from pg_class where relname in ('t', 'v', 's', 't_id_seq', 't_pkey', 'two', 'two_k_seq') order by 1
drop owned by b
drop owned by c
drop role c
create role g1
create role g2
create role g3
create table u (x int, y int)
grant select, update (x) on u to g1 with grant option
alter table u owner to a
revoke all on u from a
grant all on u to a
select relacl from pg_class where relname = 'u'
alter default privileges grant select on tables to g1
alter default privileges in schema n grant insert, update on tables to g2 with grant option
alter default privileges for role a grant usage on sequences to public
alter default privileges revoke execute on functions from public
alter default privileges revoke usage on types from public
alter default privileges grant all on schemas to g3
alter default privileges in schema n grant all on schemas to g3
alter default privileges in schema nosuch grant all on tables to g3
alter default privileges grant execute on tables to g3
alter default privileges grant usage on tables to g3
select pg_get_userbyid(defaclrole), defaclnamespace::regnamespace, defaclobjtype, defaclacl from pg_default_acl where defaclnamespace = 0 or defaclnamespace = 'n'::regnamespace order by 1, 2, 3
create table w (x int, z serial)
create table n.w (x int)
create view vw as select x from w
create sequence sw
create type tw as enum ('x')
create schema nw
select relname, relnamespace::regnamespace, relacl from pg_class where relname in ('w', 'vw', 'sw', 'w_z_seq') order by 1, 2
select typacl from pg_type where typname = 'tw'
select nspacl from pg_namespace where nspname = 'nw'
drop role g2
drop role g3
alter default privileges revoke select on tables from g1
alter default privileges grant execute on functions to public
alter default privileges in schema n revoke all on tables from g2
select pg_get_userbyid(defaclrole), defaclnamespace::regnamespace, defaclobjtype, defaclacl from pg_default_acl where defaclnamespace = 0 or defaclnamespace = 'n'::regnamespace order by 1, 2, 3
create schema authorization g1
create schema mine authorization g2
create schema if not exists mine authorization g2
create schema other authorization nosuch
select nspname, pg_get_userbyid(nspowner) from pg_namespace where nspname in ('g1', 'mine', 'nw') order by 1
alter schema mine rename to yours
select nspname, pg_get_userbyid(nspowner) from pg_namespace where nspname in ('yours', 'mine') order by 1
drop schema yours
begin
grant all on w to public
alter table w owner to g3
select pg_get_userbyid(relowner), relacl from pg_class where relname = 'w'
rollback
select pg_get_userbyid(relowner), relacl from pg_class where relname = 'w' and relnamespace = 'public'::regnamespace
alter table w rename to w2
alter table w2 add column more int
select pg_get_userbyid(relowner), relacl from pg_class where relname = 'w2'
drop table w2
create table w2 (x int)
select pg_get_userbyid(relowner), relacl from pg_class where relname = 'w2'
select grantee, privilege_type, is_grantable, with_hierarchy from information_schema.table_privileges where table_name = 'u' order by 1, 2
select grantee, privilege_type, is_grantable from information_schema.role_table_grants where table_name in ('u', 'v') order by 1, 2, table_name
select grantee, column_name, privilege_type, is_grantable from information_schema.column_privileges where table_name = 'u' order by 1, 2, 3
select grantee, object_name, object_type, privilege_type, is_grantable from information_schema.usage_privileges where object_schema in ('public', 'n') order by 1, 2
select count(*) from information_schema.enabled_roles where role_name in ('a', 'g1')
select grantee, role_name, is_grantable from information_schema.applicable_roles where role_name !~ '^pg_' order by 1, 2
# Other scripts are played where this one was, and types are everybody's there.
alter default privileges grant usage on types to public
select pg_get_userbyid(defaclrole), defaclnamespace::regnamespace, defaclobjtype, defaclacl from pg_default_acl order by 1, 2, 3
