"""Write `sql/data/postgresql.txt` and `argument_names.txt` there from a real PostgreSQL:
`python -m tests.unit.sql.postgresql_names`.

Functions that SQL cannot call (of type internal or cstring) are left out.
"""

from itertools import groupby
from pathlib import Path

import psycopg

from tests.support.servers import postgres

DATA = Path(__file__).parents[3] / "sql" / "data"
HEAD = (
    "# Functions, operators and casts of PostgreSQL {version}; "
    "see sql/binder/resolve/postgresql_functions.py.\n"
)
FUNCTIONS = """
select proname || case prokind when 'a' then ' +' else '' end,
  coalesce((select string_agg(t.typname || case
        when place = pronargs and provariadic <> 0 then '*'
        when place > pronargs - pronargdefaults then '?' else '' end, ',' order by place)
    from unnest(proargtypes) with ordinality a(type, place)
    join pg_type t on t.oid = case
      when place = pronargs and provariadic <> 0 then provariadic else a.type end), '')
from pg_proc
where pronamespace = 'pg_catalog'::regnamespace
  and prorettype::regtype::text not in ('internal', 'cstring', 'trigger', 'event_trigger')
  and not exists (select from unnest(proargtypes) type
    where type::regtype::text in ('internal', 'cstring'))
"""
OPERATORS = """
select oprname || ' $', concat_ws(',', l.typname, r.typname)
from pg_operator left join pg_type l on l.oid = oprleft join pg_type r on r.oid = oprright
"""

CASTS = """
select s.typname || ' =', t.typname
from pg_cast join pg_type s on s.oid = castsource join pg_type t on t.oid = casttarget
"""

# Names of a function's inputs, and the defaults of the last ones.
NAMES_HEAD = "# Functions of PostgreSQL {version} whose arguments have names; see sql/{module}.\n"
ARGUMENT_NAMES = """
select distinct proname,
  (select string_agg(proargnames[place]
      || case when place = pronargs and provariadic <> 0 then '*' else '' end
      || coalesce('=' || (string_to_array(pg_get_expr(proargdefaults, 0), ', '))
           [place - (pronargs - pronargdefaults)], ''), ',' order by place)
    from generate_series(1, pronargs) place)
from pg_proc
where pronamespace = 'pg_catalog'::regnamespace and pronargs > 0
  and '' <> all(proargnames[:pronargs])
  and coalesce(proargmodes[:pronargs] <@ '{i,v}', true)
  and prorettype::regtype::text not in ('internal', 'cstring', 'trigger', 'event_trigger')
order by 1, 2
"""


def main() -> None:
    """Write the files."""
    with postgres() as dsn, psycopg.connect(dsn) as connection:
        [(version,)] = connection.execute("show server_version").fetchall()
        rows = sorted(
            row for query in (FUNCTIONS, OPERATORS, CASTS) for row in connection.execute(query)
        )
        named = connection.execute(ARGUMENT_NAMES).fetchall()
    lines = [
        f"{head}: {';'.join(types for _, types in overloads)}\n"
        for head, overloads in groupby(rows, lambda row: row[0])
    ]
    names = [f"{name}: {arguments}\n" for name, arguments in named]
    head = NAMES_HEAD.format(version=version, module="named_arguments.py")
    _write("postgresql.txt", HEAD.format(version=version) + "".join(lines))
    _write("argument_names.txt", head + "".join(names))


def _write(name: str, text: str) -> None:
    (DATA / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
