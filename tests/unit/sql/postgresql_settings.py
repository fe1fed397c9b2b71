"""Write `sql/data/settings.txt` from a real PostgreSQL.

    python -m tests.unit.sql.postgresql_settings

What depends on the machine (paths, ports, sizes that are computed at the start) is written with
the value that PostgreSQL is built with.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg

from tests.support.servers import postgres

FILE = Path(__file__).parents[3] / "sql" / "data" / "settings.txt"
HEAD = (
    "# Settings of PostgreSQL {version}; see sql/functions/postgresql_settings.py.\n"
    "# name, shown, unit, context, type, least, greatest, values, flags, aliases,"
    " boot, category, description, more\n"
)
ROLE = "settings_reader"
ROWS = """
select name, case when machine then coalesce(boot_val, '') else current_setting(name) end,
  unit, context, vartype, min_val, max_val, array_to_string(enumvals, ','), boot_val,
  category, short_desc, extra_desc
from (select *, setting is distinct from boot_val
    and (source in ('command line', 'override') and context <> 'user'
      or vartype <> 'integer' and 'RUNTIME_COMPUTED' = any (pg_settings_get_flags(name))
      or name ~ '^(num_os|shared_memory)_') as machine from pg_settings) s
order by lower(name) collate "C"
"""
WORDS = ("true", "false", "yes", "no", "1", "0", "on", "off", "debug", "info", "fatal", "panic")
"""Values that PostgreSQL may take without listing them."""


def main() -> None:
    """Write the file."""
    with postgres() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        [(version,)] = connection.execute("show server_version").fetchall()
        rows = connection.execute(ROWS).fetchall()
        connection.execute(f"create role {ROLE} login")
        hidden = _hidden(dsn)
        lines = [
            "\t".join(
                _field(item)
                for item in (
                    *row[:8],
                    "superuser" if row[0] in hidden else None,
                    ",".join(_aliases(connection, row[0], row[3], row[7])) or None,
                    *row[8:],
                )
            )
            for row in rows
        ]
    text = HEAD.format(version=version) + "".join(f"{line}\n" for line in lines)
    FILE.write_text(text, encoding="utf-8")


def _hidden(dsn: str) -> frozenset[str]:
    """The settings that only superusers see."""
    query = "select name from pg_settings"
    with psycopg.connect(dsn) as all_, psycopg.connect(dsn, user=ROLE) as ordinary:
        seen = {row[0] for row in ordinary.execute(query)}
        return frozenset(row[0] for row in all_.execute(query) if row[0] not in seen)


def _aliases(
    connection: psycopg.Connection[tuple[str, ...]], name: str, context: str, values: str | None
) -> Iterator[str]:
    """`word=value` of each word that is taken for one of an enum's values."""
    if values is None or context not in ("user", "superuser"):
        return
    for word in WORDS:
        if word in values.split(","):
            continue
        try:
            query = "select set_config(%s, %s, true)"
            [(shown,)] = connection.execute(query, (name, word)).fetchall()
        except psycopg.errors.InvalidParameterValue:
            continue
        yield f"{word}={shown}"


def _field(value: str | None) -> str:
    if value is None:
        return "-"
    assert "\t" not in value, "tabs separate the fields"
    assert "\n" not in value, "a setting is a line"
    return value


if __name__ == "__main__":
    main()
