"""Plays a script so that every statement is taken back in each way before it is kept.

    BEGIN, statement, ROLLBACK                                 nothing is left of it
    BEGIN, SAVEPOINT, statement, ROLLBACK TO, RELEASE, statement, COMMIT
    SAVEPOINT, statement, ROLLBACK TO, RELEASE, statement      in a block of the script's own

INVARIANTS
  P1  everything is told: the answer each time, and what the database holds after it was kept.
  P2  what was taken back left nothing: definitions and rows are what they were.

Not here: what must be the same on both servers is what is told; P2 is asserted on each by itself.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from hashlib import blake2b
from pathlib import Path

import psycopg
from psycopg.pq import TransactionStatus

from tests.writing.playing import Player

ROOT = Path(__file__).parent.parent
DEFINITIONS = (
    "comments",
    "deferrable",
    "dependencies",
    "domains",
    "enums",
    "foreign_keys",
    "indexes",
    "like",
    "not_valid",
    "owned_sequences",
    "sequences",
    "view_updates",
    "views",
)
LEFT_OUT = ("alter_rows", "temporary")
"""TODO(writing): these two, and of the definitions alter_table, clustering, defaults_and_checks,
privileges, roles, system_catalogs and temporary: they show moments of the day, names that are made
up or warnings of ours, which are told as they are.
"""
_CONTROL = re.compile(
    r"(begin|start|commit|end|abort|rollback|savepoint|release|prepare transaction)\b", re.I
)
_DATA = re.compile(
    r"(insert|update|delete|merge|copy|truncate|with(?!.*select [^()]* into )\b)\b", re.I
)
_READS = re.compile(r"(select|values|table|show)\b(?!.* into )", re.I)
_OURS = "not in ('pg_catalog', 'information_schema', 'meridian', 'pg_toast')"
_DEFINITIONS = (
    "select n.nspname, c.relname, c.relkind, a.attname, format_type(a.atttypid, a.atttypmod),"
    " a.attnotnull, a.attidentity, a.attgenerated, a.atthasdef"
    " from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_attribute a"
    " on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and c.relkind in ('r', 'v')"
    f" where n.nspname {_OURS} and c.relkind in ('r', 'v', 'i', 'S')"
    " order by 1, 2, a.attnum",
    "select r.relname, c.conname, c.contype, c.condeferrable, c.condeferred, c.convalidated,"
    " case when c.contype <> 'c' then pg_get_constraintdef(c.oid) end"
    " from pg_constraint c left join pg_class r on r.oid = c.conrelid"
    f" join pg_namespace n on n.oid = c.connamespace where n.nspname {_OURS}"
    " and contype <> 'n' order by 1, 2, 7",
    "select n.nspname, t.typname, t.typtype, t.typnotnull, t.typdefault is null, e.enumlabel"
    " from pg_type t join pg_namespace n on n.oid = t.typnamespace"
    " left join pg_enum e on e.enumtypid = t.oid"
    f" where n.nspname {_OURS} and t.typtype in ('e', 'd') order by 1, 2, e.enumsortorder",
    f"select nspname from pg_namespace where nspname {_OURS} and nspname !~ '^pg_' order by 1",
)
_TEXTS = (
    "select r.relname, d.adnum, pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d"
    " join pg_class r on r.oid = d.adrelid order by 1, 2, 3",
    "select conname, pg_get_constraintdef(oid) from pg_constraint order by 1, 2",
    f"select viewname, definition from pg_views where schemaname {_OURS} order by 1, 2",
    f"select indexname, indexdef from pg_indexes where schemaname {_OURS} order by 1, 2",
)
"""Each server writes expressions in its own words."""
_TABLES = (
    "select quote_ident(n.nspname) || '.' || quote_ident(c.relname) from pg_class c"
    " join pg_namespace n on n.oid = c.relnamespace"
    f" where c.relkind = 'r' and n.nspname {_OURS} order by 1"
)
_TEMPORARY = re.compile(r"pg_(toast_)?temp_\d+(_[0-9a-f]+)?")


def scripts() -> dict[str, Path]:
    """The scripts by area and name."""
    return {
        f"{area}-{path.stem}": path
        for area in ("writing", "definitions")
        for path in sorted((ROOT / area / "testdata").glob("*.sql"))
        if (path.stem in DEFINITIONS if area == "definitions" else path.stem not in LEFT_OUT)
    }


def recorded_path(name: str) -> Path:
    """Where PostgreSQL's answers to a script are kept."""
    return Path(__file__).parent / "testdata" / f"{name}.out"


def statements(path: Path) -> list[str]:
    """Those of a script that PostgreSQL is asked, too."""
    both, _, _ = path.read_text().partition("# meridian\n")
    return [line for line in both.splitlines() if line.strip() and not line.startswith("#")]


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


class Blocks:
    """One connection that plays a script."""

    def __init__(self, connection: "psycopg.Connection[tuple[object, ...]]") -> None:
        self._connection = connection
        # Definitions change below it: what was prepared would have other columns.
        connection.prepare_threshold = None
        self._player = Player(connection, ())
        self.state = self._look()
        """What the database held when the last transaction had ended."""

    def play(self, line: str) -> str:
        """One statement in all ways (P1)."""
        if not _CONTROL.match(line) and self._status == TransactionStatus.IDLE:
            told = self._in_blocks(line)
        elif not _CONTROL.match(line) and self._status == TransactionStatus.INTRANS:
            told = _told(self._behind_savepoint(line, self._look()))
        else:
            told = self._player.answer(line)
        if self._status == TransactionStatus.IDLE and not _READS.match(line):
            self.state = self._look(line)
            told = [*told, f"then {_digest(self.state.shared)}"]
        return "\n".join([f"> {line}", *told])

    @property
    def _status(self) -> TransactionStatus:
        return self._connection.info.transaction_status

    def _in_blocks(self, line: str) -> list[str]:
        self._connection.execute("begin")
        ways = {"first": self._player.answer(line)}
        self._connection.execute("rollback")
        if not _READS.match(line):
            self._expect(self.state, line, "rolled back")
        self._connection.execute("begin")
        ways |= self._behind_savepoint(line, self.state)
        end = self._player.answer("commit")
        expected = ["ROLLBACK" if ways["kept"][-1].startswith("E ") else "COMMIT"]
        return _told(ways) + ([] if end == expected else ["at commit", *end])

    def _behind_savepoint(self, line: str, before: State) -> dict[str, list[str]]:
        self._connection.execute("savepoint before")
        answer = self._player.answer(line)
        self._connection.execute("rollback to before")
        self._connection.execute("release before")
        if not _READS.match(line):
            self._expect(before, line, "behind a savepoint")
        return {"taken back": answer, "kept": self._player.answer(line)}

    def _expect(self, before: State, line: str, why: str) -> None:
        """Nothing is left (P2)."""
        left = before.difference(self._look(line))
        assert not left, f"P2, {why}: {line}\n{left}"

    def _look(self, after: str = "") -> State:
        """All definitions and all rows; a statement that writes rows leaves definitions alone."""
        if not _DATA.match(after):
            self._tables = [str(table) for (table,) in self._rows(_TABLES)]
            self._shared = [self._told(query) for query in _DEFINITIONS]
            self._texts = [self._told(query) for query in _TEXTS]
        rows: list[str] = []
        for table in self._tables:
            found = self._rows(f"select * from {table}")
            rows.append(_TEMPORARY.sub("pg_temp", f"{table}: {sorted(map(str, found))}"))
        return State(self._shared + rows, self._texts)

    def _told(self, query: str) -> str:
        return _TEMPORARY.sub("pg_temp", str(self._rows(query)))

    def _rows(self, query: str) -> list[tuple[object, ...]]:
        return self._connection.execute(query.encode()).fetchall()


def _told(ways: Mapping[str, list[str]]) -> list[str]:
    """The answer; those that are others follow under their names."""
    (_, first), *others = ways.items()
    return first + [text for way, told in others if told != first for text in (way, *told)]


def _digest(state: Sequence[str]) -> str:
    return blake2b("\n".join(state).encode(), digest_size=8).hexdigest()
