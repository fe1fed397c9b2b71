"""A PostgreSQL whose COMMIT waits for those whom `synchronous_standby_names` names."""

from typing import Final

import psycopg

LOOKS_MAX: Final = 10_000
"""Each is a connection, some milliseconds."""


def commits_wait_for(dsn: str, names: str) -> None:
    """From now on; for nobody if `names` is empty. Needs a superuser.

    `pg_reload_conf()` only asks the postmaster. The checkpointer then tells all whether COMMIT
    waits (`SyncRepUpdateSyncStandbysDefined`); before it has read its settings, COMMIT returns at
    once. A connection made by a postmaster that has read them shows that all others are signalled.
    The checkpointer does what its signals ask for before it begins the second checkpoint.
    """
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SET synchronous_commit = local")
        if names:
            connection.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{names}'".encode())
        else:
            connection.execute("ALTER SYSTEM RESET synchronous_standby_names")
        connection.execute("SELECT pg_reload_conf()")
    assert any(_shown(dsn) == names for _ in range(LOOKS_MAX)), "the postmaster reads its settings"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        connection.execute("CHECKPOINT")


def _shown(dsn: str) -> str:
    with psycopg.connect(dsn, autocommit=True) as connection:
        (value,) = connection.execute("SHOW synchronous_standby_names").fetchone() or ("",)
    return str(value)
