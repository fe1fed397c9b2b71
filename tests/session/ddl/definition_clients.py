"""Random definitions by clients at once: what they say, and what must be so when they are done.

    Speaker(seed) ─▶ statements over a few names ─▶ Client ─▶ done, or refused
                                                       ▼
    problems ─▶ every reference in pg_catalog leads somewhere, all relations can be read and written

INVARIANTS
  D1  no session ends, and nothing is XX000: what does not fit is refused with its SQLSTATE.
  D2  what is there in the end fits together, by `misfits` and by what pg_catalog shows.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import psycopg

Connection: TypeAlias = "psycopg.Connection[tuple[object, ...]]"

SCHEMAS: Final = ("public", "s1", "s2")
TABLES: Final = ("t1", "t2", "t3", "s1.t1", "s2.t3")
VIEWS: Final = ("v1", "v2", "s1.v1")
SEQUENCES: Final = ("q1", "q2", "s2.q1")
ENUMS: Final = ("e1", "s1.e2")
DOMAINS: Final = ("d1", "s2.d2")
ROLES: Final = ("r1", "r2")
COLUMNS: Final = ("a", "b", "c", "d")
INDEXES: Final = ("i1", "i2")
CONSTRAINTS: Final = ("n1", "n2")

SETUP: Final = (
    *(f"create schema {name}" for name in SCHEMAS[1:]),
    *(f"create role {name}" for name in ROLES),
    *(f"create sequence {name}" for name in SEQUENCES),
    *(f"create type {name} as enum ('x', 'y')" for name in ENUMS),
    *(f"create domain {name} as int check (value > 0)" for name in DOMAINS),
    *(f"create table {name} (a int primary key, b text, c int)" for name in TABLES),
    *(f"insert into {name} values (1, 'x', 1), (2, 'y', 2)" for name in TABLES),
    "create view v1 as select a, b from t1",
    "create view s1.v1 as select x.*, v1.b as other from s1.t1 x join v1 using (a)",
)

BROKEN: Final = ("XX000", "57P01", "58030", "58000")
"""What no statement may answer; nothing is wrong with the disk, and nobody stops the server."""


@dataclass(frozen=True, slots=True)
class Block:
    """Statements of a transaction of this level, or one that is alone."""

    level: str
    statements: Sequence[str]
    end: str = ""


class Speaker:
    """Random statements."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def block(self) -> "Block":
        """Some statements of one transaction, or one alone."""
        rng = self._random
        if rng.random() < 0.25:
            return Block("", (self.statement(),))
        level = rng.choice(("serializable", "repeatable read", "read committed"))
        said = tuple(self.statement() for _ in range(rng.randint(2, 6)))
        return Block(level, said, rng.choice(("commit", "commit", "commit", "rollback")))

    def statement(self) -> str:
        """One of any kind; more than half are definitions."""
        kinds = (
            *(self._table, self._column, self._column, self._constraint, self._rename),
            *(self._view, self._view, self._sequence, self._type, self._domain, self._schema),
            *(self._said, self._index, self._role, self._rows, self._rows, self._rows),
            *(self._again,) * 6,
        )
        return self._random.choice(kinds)()

    def _one(self, *texts: str) -> str:
        """One of the texts, with its names filled in."""
        pick = self._random.choice
        names = {
            "t": pick(TABLES), "t2": pick(TABLES), "v": pick(VIEWS), "q": pick(SEQUENCES),
            "e": pick(ENUMS), "d": pick(DOMAINS), "r": pick(ROLES), "r2": pick(ROLES),
            "c": pick(COLUMNS), "c2": pick(COLUMNS), "s": pick(SCHEMAS), "i": pick(INDEXES),
            "n": pick(CONSTRAINTS), "type": pick(("int", "bigint", "text", *ENUMS, *DOMAINS)),
            "cascade": pick(("", "", "cascade")), "any": pick((*TABLES, *VIEWS, *SEQUENCES)),
            "k": self._random.randint(1, 9), "bare": pick(("t1", "t2", "t3", "v2", "q2")),
        }  # fmt: skip
        return pick(texts).format(**names)

    def _table(self) -> str:
        return self._one(
            "create table {t} (a int primary key, b {type}, c int default nextval('{q}'))",
            "create table {t} (a serial, b text, c int references {t2} on delete cascade)",
            "create table {t} (a int generated always as identity, b {type} unique, c {d})",
            "create table {t} (a int, b int generated always as (a + {k}) stored, c text default"
            " 'v' || nextval('{q}'))",
            "create table {t} as select * from {t2}",
            "select a, b into {t} from {v}",
            "create table {t} (like {t2} including all)",
            "drop table {t} {cascade}",
            "drop table if exists {t}, {t2} cascade",
            "truncate {t} {cascade}",
        )

    def _column(self) -> str:
        return self._one(
            "alter table {t} add column {c} {type}",
            "alter table {t} add column {c} int default nextval('{q}')",
            "alter table {t} add column {c} int default {k}, drop column {c2}",
            "alter table {t} add column {c} bigserial",
            "alter table {t} drop column {c} {cascade}",
            "alter table {t} rename column {c} to {c2}",
            "alter table {t} alter column {c} type {type} using null",
            "alter table {t} alter column {c} type text",
            "alter table {t} alter column {c} set not null",
            "alter table {t} alter column {c} set default nextval('{q}')",
            "alter table {t} alter column {c} set default 'x'::{e}::text || {k}::{d}",
            "alter table {t} alter column {c} drop default, alter column {c2} drop not null",
            "alter table {t} alter column {c} add generated always as identity",
            "alter table {t} alter column {c} drop identity if exists",
        )

    def _constraint(self) -> str:
        return self._one(
            "alter table {t} add constraint {n} unique ({c})",
            "alter table {t} add primary key ({c})",
            "alter table {t} add constraint {n} check ({c} is distinct from {c2})",
            "alter table {t} add constraint {n} check ({c}::text <> 'x'::{e}::text)",
            "alter table {t} add constraint {n} check ({c} <> {k}::{d})",
            "alter table {t} add constraint {n} foreign key ({c}) references {t2}",
            "alter table {t} add constraint {n} foreign key ({c}) references {t2} ({c2}) not valid",
            "alter table {t} drop constraint {n} {cascade}",
            "alter table {t} rename constraint {n} to n2",
        )

    def _rename(self) -> str:
        return self._one(
            "alter table {t} rename to {bare}",
            "alter table {t} set schema {s}",
            "alter view {v} rename to {bare}",
            "alter sequence {q} rename to {bare}",
            "alter sequence {q} set schema {s}",
            "alter view {v} set schema {s}",
        )

    def _view(self) -> str:
        return self._one(
            "create view {v} as select * from {t}",
            "create or replace view {v} as select {c}, {c2} as other from {t}",
            "create view {v} as select x.{c}, y.{c2} from {t} x join {t2} y using (a)",
            "create view {v} as select '{q}'::regclass as which, {c}::text from {t}",
            "create view {v} as select null::{type} as a, 'x'::{e} as b",
            "create view {v} as select a, pg_typeof(b) = '{type}'::regtype as b from {any}",
            "create or replace view {v} as select a, b from {any} where b = 'x'",
            "create or replace view {v} as select count(*) as a, 1 as b from {any}",
            "alter view {v} alter column {c} set default {k}",
            "drop view {v} {cascade}",
            "drop view if exists {v}",
        )

    def _sequence(self) -> str:
        return self._one(
            "create sequence {q} owned by {t}.{c}",
            "create sequence {q}",
            "alter sequence {q} owned by {t}.{c}",
            "alter sequence {q} owned by none",
            "alter sequence {q} restart with {k}",
            "drop sequence {q} {cascade}",
            "select nextval('{q}')",
        )

    def _type(self) -> str:
        return self._one(
            "create type {e} as enum ('x', 'y')",
            "alter type {e} add value if not exists 'z{k}'",
            "alter type {e} rename value 'x' to 'w{k}'",
            "alter type {e} set schema {s}",
            "alter type {e} rename to e1",
            "drop type {e} {cascade}",
        )

    def _domain(self) -> str:
        return self._one(
            "create domain {d} as int default {k} check (value > 0)",
            "create domain {d} as text default {k} check (value <> 'x'::{e}::text)",
            "alter domain {d} add constraint {n} check (value < 100)",
            "alter domain {d} drop constraint {n}",
            "alter domain {d} set default {k}",
            "alter domain {d} set schema {s}",
            "drop domain {d} {cascade}",
        )

    def _again(self) -> str:
        """Something that was there in the beginning, and has perhaps gone."""
        return self._random.choice(SETUP)

    def _schema(self) -> str:
        return self._one(
            *("create schema {s}",) * 4,
            "drop schema if exists s1 {cascade}",
            "drop schema s2 {cascade}",
            "alter schema s1 rename to s3",
            "alter schema s3 rename to s1",
        )

    def _said(self) -> str:
        return self._one(
            "comment on table {t} is 'said'",
            "comment on column {t}.{c} is 'said'",
            "comment on view {v} is 'said'",
            "comment on constraint {n} on {t} is 'said'",
            "comment on type {e} is 'said'",
            "comment on schema {s} is 'said'",
        )

    def _index(self) -> str:
        return self._one(
            "create index {i} on {t} ({c})",
            "create unique index {i} on {t} ({c}, {c2})",
            "create index {i} on {t} (lower({c}::text)) where {c2} is not null",
            "create index {i} on {t} (({c} + {k}::{d})) where {c2} <> 'x'",
            "drop index {i}",
            "alter index {i} rename to i2",
        )

    def _role(self) -> str:
        return self._one(
            "create role {r}",
            "drop role {r}",
            "grant {r} to {r2}",
            "grant select on {t} to {r}",
            "grant update ({c}) on {t} to {r}",
            "grant usage on sequence {q} to {r} with grant option",
            "alter table {t} owner to {r}",
            "alter default privileges in schema {s} grant select on tables to {r}",
            "revoke all on {t} from {r} cascade",
            "reassign owned by {r} to {r2}",
        )

    def _rows(self) -> str:
        return self._one(
            "insert into {t} (a) values ({k})",
            "insert into {t} values ({k}, 'x', {k}) on conflict do nothing",
            "insert into {t} (a, c) select {k}, a from {t2}",
            "insert into {v} (a) values ({k})",
            "update {t} set {c} = null where a = {k}",
            "delete from {t} where a = {k}",
            "select * from {any}",
            "select {c} from {v}",
            "select count(*) from {t} natural join {t2}",
        )


def run(dsn: str, speaker: Speaker, blocks: int) -> int:
    """Say so many blocks; how many were done (D1)."""
    done = 0
    with psycopg.connect(dsn, autocommit=True) as connection:
        for _ in range(blocks):
            done += _is_done(connection, speaker.block())
    return done


def _is_done(connection: Connection, block: Block) -> bool:
    if not block.level:
        return _refused(connection, block.statements[0]) is None
    connection.execute(f"begin isolation level {block.level}".encode())
    done = 0
    for statement in block.statements:
        # What is refused is no reason to give the others up.
        connection.execute("savepoint p")
        done += _refused(connection, statement, "rollback to p") is None
    return _refused(connection, block.end) is None and done > 0


def _refused(
    connection: Connection, statement: str, back: str = "rollback"
) -> psycopg.Error | None:
    """Why it was refused, of which nothing is left (D1)."""
    try:
        connection.execute(statement.encode())
    except psycopg.Error as error:
        if connection.closed or error.sqlstate in (None, *BROKEN):
            raise AssertionError(f"{statement}: {error.sqlstate} {error}") from error
        connection.execute(back.encode())
        return error
    return None


REFERENCES: Final = {
    "pg_class": ("relnamespace pg_namespace", "relowner pg_roles", "reltype pg_type"),
    "pg_attribute": ("attrelid pg_class", "atttypid pg_type"),
    "pg_attrdef": ("adrelid pg_class",),
    "pg_constraint": (
        *("conrelid pg_class", "confrelid pg_class", "conindid pg_class", "contypid pg_type"),
        "connamespace pg_namespace",
    ),
    "pg_index": ("indexrelid pg_class", "indrelid pg_class"),
    "pg_type": (
        *("typnamespace pg_namespace", "typowner pg_roles", "typrelid pg_class"),
        *("typelem pg_type", "typarray pg_type", "typbasetype pg_type"),
    ),
    "pg_enum": ("enumtypid pg_type",),
    "pg_sequence": ("seqrelid pg_class", "seqtypid pg_type"),
    "pg_namespace": ("nspowner pg_roles",),
    "pg_auth_members": ("roleid pg_roles", "member pg_roles", "grantor pg_roles"),
}
"""Columns of catalogs, and where their oids lead if they are of things that users have made."""

_BY_CLASS: Final = ("pg_class", "pg_type", "pg_constraint", "pg_namespace", "pg_attrdef")

_QUERIES: Final = (
    # Columns by number.
    "select conname, conrelid, number from (select conname, conrelid, unnest(conkey) as number"
    " from pg_constraint) as k where conrelid <> 0 and not exists (select from pg_attribute a"
    " where a.attrelid = k.conrelid and a.attnum = k.number and not a.attisdropped)",
    "select conname, confrelid, number from (select conname, confrelid, unnest(confkey) as number"
    " from pg_constraint) as k where confrelid <> 0 and not exists (select from pg_attribute a"
    " where a.attrelid = k.confrelid and a.attnum = k.number and not a.attisdropped)",
    "select adrelid, adnum from pg_attrdef d where not exists (select from pg_attribute a"
    " where a.attrelid = d.adrelid and a.attnum = d.adnum and not a.attisdropped)",
    # What depends, and on what.
    *(
        f"select classid, objid, refobjid from pg_depend where {column} = '{name}'::regclass"
        f" and {of} >= 16384 and {of} not in (select oid from {name})"
        for name in _BY_CLASS
        for column, of in (("classid", "objid"), ("refclassid", "refobjid"))
    ),
    *(
        f"select objoid from pg_description where classoid = '{name}'::regclass"
        f" and objoid >= 16384 and objoid not in (select oid from {name})"
        for name in _BY_CLASS
    ),
    # Two of one name.
    "select relnamespace, relname from pg_class group by 1, 2 having count(*) > 1",
    "select typnamespace, typname from pg_type group by 1, 2 having count(*) > 1",
    "select oid from pg_class group by 1 having count(*) > 1",
)

_TEXTS: Final = (
    "select pg_get_viewdef(oid) from pg_class where relkind = 'v' and oid >= 16384",
    "select pg_get_constraintdef(oid) from pg_constraint",
    "select pg_get_indexdef(indexrelid) from pg_index",
    "select pg_get_expr(adbin, adrelid) from pg_attrdef",
)


def problems(connection: Connection) -> Iterator[str]:
    """What does not fit, of everything there is (D2)."""
    for query in _dangling():
        found = connection.execute(query.encode()).fetchall()
        if found:
            yield f"{query}: {found}"
    relations = connection.execute(
        "select quote_ident(nspname) || '.' || quote_ident(relname), relkind::text from pg_class c"
        " join pg_namespace n on n.oid = relnamespace where c.oid >= 16384"
    ).fetchall()
    asked = [f"select * from {name}" for name, kind in relations if str(kind) in "rvS"]
    for query in (*_TEXTS, *asked):
        refused = _refused(connection, query)
        if refused is not None:
            yield f"{query}: {refused}"
    for name in (name for name, kind in relations if kind == "r"):
        # It may be against the rules of the table, or beyond a sequence, and nothing else.
        refused = _refused(connection, f"insert into {name} default values")
        if refused is not None and str(refused.sqlstate)[:2] not in {"22", "23"}:
            yield f"a row of {name}: {refused}"


def _dangling() -> Iterator[str]:
    for table, columns in REFERENCES.items():
        for column, other in (text.split() for text in columns):
            yield (
                f"select {column} from {table} where {column} >= 16384"
                f" and {column} not in (select oid from {other})"
            )
    yield from _QUERIES
