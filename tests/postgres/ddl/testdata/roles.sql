create role a
create role a
create user b with password 'secret' valid until '2030-01-01 00:00:00+00' connection limit 5
create group g role a, b admin b
create role c in role g createdb createrole noinherit
create role pg_x
create role public
create role current_user
create role d superuser superuser
create role d connection limit -2
select rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolconnlimit, rolpassword, extract(epoch from rolvaliduntil), rolbypassrls from pg_roles where rolname in ('a', 'b', 'c', 'g') order by 1
select rolname, rolpassword is not null from pg_authid where rolname in ('a', 'b', 'c', 'g') order by 1
select usename, usesuper, usecreatedb, passwd from pg_user where usename in ('a', 'b') order by 1
select groname from pg_group where groname in ('a', 'b', 'c', 'g') order by 1
select r.rolname, m.rolname, admin_option, inherit_option, set_option from pg_auth_members x join pg_roles r on r.oid = x.roleid join pg_roles m on m.oid = x.member where r.rolname !~ '^pg_' order by 1, 2
grant g to a
grant g to a with admin option
grant g to a with inherit false, set false
grant a to g
grant a to a
grant nosuch to a
grant a to nosuch
grant a to public
grant a, g to c with admin true granted by b
grant g to c granted by b
grant g to c granted by c
select r.rolname, m.rolname, g.rolname = current_user, admin_option, inherit_option, set_option from pg_auth_members x join pg_roles r on r.oid = x.roleid join pg_roles m on m.oid = x.member join pg_roles g on g.oid = x.grantor where r.rolname !~ '^pg_' order by 1, 2, 3
revoke g from b
revoke g from b cascade
revoke g from b
revoke admin option for g from a
revoke inherit option for g from a
select r.rolname, m.rolname, admin_option, inherit_option, set_option from pg_auth_members x join pg_roles r on r.oid = x.roleid join pg_roles m on m.oid = x.member where r.rolname !~ '^pg_' order by 1, 2
alter role a createdb login
alter role a nosuch
alter role nosuch createdb
alter user a with superuser connection limit 3
alter role b password null
alter group g add user c
alter group g add user b, c
alter group g drop user c
alter role pg_monitor login
alter role a rename to c
alter role a rename to pg_a
alter role a rename to "A b"
alter role nosuch rename to x
select rolname, rolsuper, rolcanlogin, rolconnlimit from pg_roles where rolname in ('A b', 'c') order by 1
select oid::regrole = '"A b"'::regrole, 'c'::regrole from pg_roles where rolname = 'A b'
select 'nosuch'::regrole
select to_regrole('nosuch'), to_regrole('c')
alter role "A b" password ''
drop role a
drop role if exists a
drop role if exists a, b, "A b"
drop user c
drop group g, c
drop group g
drop role pg_monitor
drop role current_user
create role x1
create role x2 role x1
grant pg_read_all_data to x1
select m.rolname from pg_auth_members x join pg_roles r on r.oid = x.roleid join pg_roles m on m.oid = x.member where r.rolname = 'pg_read_all_data'
drop role x1
drop role x2
select count(*) from pg_auth_members x join pg_roles r on r.oid = x.roleid where r.rolname = 'pg_read_all_data'
select rolname from pg_roles where rolname ~ '^pg_' order by 1
create role y1
create role y2
create role y3
create role y4
grant y1 to y2 with admin option
grant y1 to y3 granted by y2
drop role y2
revoke y1 from y2
revoke admin option for y1 from y2
drop role y1
drop role y2, y3, y4
begin
create role z1
grant z1 to current_user
rollback
select count(*) from pg_roles where rolname = 'z1'
# meridian
create role m password 'md5aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'
create role m valid until 'infinity'
alter role postgres rename to other
