"""What a database holds, so that two servers say it alike.

INVARIANTS
  D1  shared: what PostgreSQL holds Meridian holds, too, and calls it the same, in the same order.
  D2  texts: what each of them has in words or numbers of its own; compared with itself only.

Not here: TOAST, which PostgreSQL makes for itself; names of NOT NULL constraints; the last values
of sequences, which no rollback takes back.
"""

import re
from dataclasses import dataclass
from difflib import unified_diff

import psycopg

from tests.support.alike import Alike

_DATA = re.compile(
    r"(insert|update|delete|merge|copy|truncate|with(?!.*select [^()]* into )\b)\b", re.I
)
_OURS = (
    "n.nspname not in ('pg_catalog', 'information_schema', 'pg_meridian')"
    " and n.nspname !~ '^pg_toast'"
)
_KIND = "case c.relkind when 'p' then 'r' else c.relkind end"
"""A partitioned table is an ordinary, clustered table (`docs/reference/definitions.md`)."""
_DEFINITIONS = (
    f"select n.nspname, c.relname, {_KIND}, pg_get_userbyid(c.relowner), c.relacl,"
    " a.attname, format_type(a.atttypid, a.atttypmod),"
    " a.attnotnull, a.attidentity, a.attgenerated, a.atthasdef, a.attacl"
    " from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_attribute a on"
    " a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped"
    " and c.relkind in ('r', 'p', 'v', 'm')"
    f" where {_OURS} and c.relkind in ('r', 'p', 'v', 'm', 'i', 'S')"
    " order by 1, 2, a.attnum",
    "select r.relname, c.conname, c.contype, c.condeferrable, c.condeferred, c.convalidated,"
    " case when c.contype <> 'c' then pg_get_constraintdef(c.oid) end"
    " from pg_constraint c left join pg_class r on r.oid = c.conrelid"
    f" join pg_namespace n on n.oid = c.connamespace where {_OURS}"
    " and contype <> 'n' order by 1, 2, 7",
    "select n.nspname, t.typname, t.typtype, t.typnotnull, t.typdefault is null, e.enumlabel,"
    " pg_get_userbyid(t.typowner), t.typacl from pg_type t"
    " join pg_namespace n on n.oid = t.typnamespace left join pg_enum e on e.enumtypid = t.oid"
    f" where {_OURS} and t.typtype in ('e', 'd') order by 1, 2, e.enumsortorder",
    "select n.nspname, pg_get_userbyid(n.nspowner), n.nspacl from pg_namespace n"
    f" where {_OURS} and n.nspname !~ '^pg_' order by 1",
    "select n.nspname, c.relname, s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmax,"
    " s.seqmin, s.seqcycle from pg_sequence s join pg_class c on c.oid = s.seqrelid"
    f" join pg_namespace n on n.oid = c.relnamespace where {_OURS} order by 1, 2",
    "select rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin,"
    " rolreplication, rolbypassrls, rolconnlimit, rolvaliduntil, rolpassword is null"
    " from pg_authid where rolname !~ '^pg_' order by 1",
    "select r.rolname, m.rolname, pg_get_userbyid(x.grantor), x.admin_option, x.inherit_option,"
    " x.set_option from pg_auth_members x join pg_roles r on r.oid = x.roleid"
    " join pg_roles m on m.oid = x.member where m.rolname !~ '^pg_' order by 1, 2, 3",
    "select pg_get_userbyid(defaclrole), defaclnamespace::regnamespace, defaclobjtype, defaclacl"
    " from pg_default_acl order by 1, 2, 3",
    "select pg_get_userbyid(datdba), coalesce(datacl, acldefault('d', datdba)) from pg_database"
    " where datname = current_database()",
)
_TEXTS = (
    "select r.relname, d.adnum, pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d"
    " join pg_class r on r.oid = d.adrelid order by 1, 2, 3",
    "select conname, pg_get_constraintdef(oid) from pg_constraint order by 1, 2",
    "select viewname, definition from pg_views n"
    f" where {_OURS.replace('nspname', 'schemaname')} order by 1, 2",
    "select indexname, indexdef from pg_indexes n"
    f" where {_OURS.replace('nspname', 'schemaname')} order by 1, 2",
    "select relname, reloptions from pg_class where reloptions is not null order by 1, 2",
    "select classoid::regclass, objoid, objsubid, description from pg_description"
    " where objoid >= 16384 order by 1, 2, 3",
)
"""Each server writes expressions in its own words, has options of its own and counts its oids."""
_TABLES = (
    "select quote_ident(n.nspname) || '.' || quote_ident(c.relname) from pg_class c"
    " join pg_namespace n on n.oid = c.relnamespace"
    f" where c.relkind in ('r', 'p', 'm') and c.relispopulated and {_OURS} order by 1"
)


@dataclass(frozen=True, slots=True)
class State:
    """What a database holds."""

    shared: list[str]
    """In words that both servers use."""
    texts: list[str]

    def difference(self, later: "State") -> str:
        """What has changed, for the reader; empty if nothing has."""
        lines = self.shared + self.texts, later.shared + later.texts
        return "\n".join(unified_diff(*lines, "before", "later", n=0, lineterm=""))


class Onlooker:
    """One connection, through which a database is looked at."""

    def __init__(self, connection: "psycopg.Connection[tuple[object, ...]]", alike: Alike) -> None:
        self._connection = connection
        self._alike = alike
        self._tables: list[str] = []
        self._shared: list[str] = []
        self._texts: list[str] = []

    def look(self, after: str = "") -> State:
        """All definitions and all rows; a statement that writes rows leaves definitions alone."""
        if not _DATA.match(after):
            self._tables = [str(table) for (table,) in self._rows(_TABLES)]
            self._shared = [self._told(query) for query in _DEFINITIONS]
            self._texts = [self._told(query) for query in _TEXTS]
        rows: list[str] = []
        for table in self._tables:
            found = self._rows(f"select * from {table}")
            rows.append(self._alike.told(f"{table}: {sorted(map(str, found))}"))
        return State(self._shared + rows, self._texts)

    def _told(self, query: str) -> str:
        return self._alike.told(str(self._rows(query)))

    def _rows(self, query: str) -> list[tuple[object, ...]]:
        return self._connection.execute(query.encode()).fetchall()
