# Options of memberships.
create role m1
create role m2
grant m1 to m2 with nope true
grant nosuch to m2 with nope true
revoke nope option for m1 from m2
grant m1 to m2
revoke nope option for m1 from m2
grant m1 to m2 with admin true, inherit false, set false
revoke admin option for m1 from m2
revoke inherit option for m1 from m2
select admin_option, inherit_option, set_option from pg_auth_members m join pg_roles r on r.oid = m.member where rolname = 'm2'
