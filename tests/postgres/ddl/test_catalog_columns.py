"""Every relation of pg_catalog and information_schema has PostgreSQL's columns, in its order.

`testdata/columns/relations.txt` is a recording of PostgreSQL 18, a line a relation: names of
columns and oids of their types, as RowDescription says them. Run as a program, this module records
it.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg

from tests.support.servers import postgres
from tests.support.stack import serving

RECORDED = Path(__file__).parent / "testdata" / "columns" / "relations.txt"
RELATIONS = """
select n.nspname || '.' || c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
where n.nspname in ('pg_catalog', 'information_schema') and c.relkind in ('r', 'v')
order by n.nspname desc, c.relname
"""

REFUSED = frozenset[str]()
"""An answer would be a guess, or nobody has written it: 0A000."""

OTHER_TYPES = {"pg_catalog.pg_statistic_ext_data": "stxdexpr"}
"""A column of an array of rows of a catalog, which have no type here."""


def columns(connection: "psycopg.Connection[tuple[object, ...]]", relation: str) -> str:
    """A line of the recording."""
    cursor = connection.execute(f"select * from {relation} limit 0".encode())
    assert cursor.description is not None
    found = [f"{column.name} {column.type_code}" for column in cursor.description]
    return f"{relation}: {', '.join(found)}"


def record() -> None:
    """Ask PostgreSQL."""
    with postgres() as dsn, psycopg.connect(dsn) as connection:
        names = [str(name) for (name,) in connection.execute(RELATIONS.encode())]
        lines = [f"{columns(connection, name)}\n" for name in names]
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_text("".join(lines))


def differing(recorded: str, found: str) -> Iterator[str]:
    """The columns that are not the same."""
    pairs = (line.partition(": ")[2].split(", ") for line in (recorded, found))
    for wanted, column in zip(*pairs, strict=True):
        if wanted != column:
            yield wanted.split(" ")[0]


def test_catalogs_have_postgresqls_columns() -> None:
    recorded = RECORDED.read_text().splitlines()
    refused, other = set[str](), dict[str, str]()
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        for line in recorded:
            relation = line.partition(":")[0]
            try:
                found = columns(connection, relation)
            except psycopg.errors.FeatureNotSupported:
                refused.add(relation)
                continue
            if found != line:
                other[relation] = ", ".join(differing(line, found))
    assert len(recorded) == 144 + 69
    assert refused == REFUSED
    assert other == OTHER_TYPES


def test_every_answering_catalog_gives_its_rows() -> None:
    tables = """
    create type mood as enum ('sad', 'ok');
    create domain small as int not null check (value < 10);
    create table every (id int generated always as identity primary key, m mood[], s small,
        t text unique check (t <> ''), twice int generated always as (s * 2) stored);
    create table other (id int references every (id), b int);
    create index on other (b);
    create view seen as select id, t from every;
    """
    with serving() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(tables.encode())
        names = [line.partition(":")[0] for line in RECORDED.read_text().splitlines()]
        for name in names:
            if name not in REFUSED:
                connection.execute(f"table {name}".encode()).fetchall()


if __name__ == "__main__":
    record()
