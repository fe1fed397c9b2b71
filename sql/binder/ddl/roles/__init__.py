"""Roles and privileges: CREATE ROLE, GRANT, REVOKE, ALTER .. OWNER TO, REASSIGN and DROP OWNED.

Every statement becomes a `ChangePrivileges`: new versions of roles, owners and access control
lists. Privileges are stored and shown, but not enforced yet.

    `roles`                    CREATE, ALTER and DROP ROLE
    `membership`               GRANT role TO role
    `grant`, `grant_targets`   GRANT and REVOKE of privileges on objects
    `owners`                   OWNER TO, REASSIGN OWNED, DROP OWNED
    `dependents`               why a role cannot be dropped

Imports `resolve`, `stored` and the catalog's access control lists; `ddl.alter` and `bind` import
it.
"""
