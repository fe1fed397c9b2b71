"""Give each script an empty database on a server with one database."""

import contextlib
from collections.abc import Iterator

import psycopg

_ROLES = "select quote_ident(rolname) from pg_roles where rolname !~ '^pg_' and oid <> 10"
_LEFT = (
    (
        # Views first: Meridian drops no schema that another schema's views use.
        "select quote_ident(schemaname) || '.' || quote_ident(viewname) from pg_views"
        " where schemaname !~ '^pg_' and schemaname not in ('information_schema', 'meridian')",
        "drop view if exists {} cascade",
    ),
    (
        "select quote_ident(nspname) from pg_namespace"
        " where nspname !~ '^pg_' and nspname not in ('information_schema', 'meridian')",
        "drop schema {} cascade",
    ),
    (_ROLES, "reassign owned by {} to current_user"),
    (_ROLES, "drop owned by {}"),
    (_ROLES, "drop role {}"),
)
"""What there may be before a script, and how it goes."""
_TEMPORARY = (
    "select from pg_class c join pg_namespace n on n.oid = c.relnamespace"
    " where n.nspname ~ '^pg_temp_'"
)


@contextlib.contextmanager
def stage(dsn: str) -> "Iterator[psycopg.Connection[tuple[object, ...]]]":
    """A connection to a database that holds nothing, where user and database are called alike."""
    place = psycopg.conninfo.make_conninfo(dsn, user="postgres", dbname="postgres")
    with psycopg.connect(place, autocommit=True) as connection:
        # What is temporary goes a moment after its session.
        while connection.execute(_TEMPORARY).fetchall():
            pass
        for query, change in _LEFT:
            for (name,) in connection.execute(query).fetchall():
                connection.execute(change.format(name).encode())
        connection.execute("create schema public")
        yield connection
