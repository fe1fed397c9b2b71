"""Random statements of an upstream, and whether the reader's batches are its tables.

    python -m tests.ingest.postgres.random_statements --seeds 20 --transactions 300

Three tables: with a primary key and a large column, with an index as its replica identity, and
without a key. Transactions insert, update, change keys, change large values twice, delete,
truncate, alter columns that are not ours, and roll back to savepoints.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable
from dataclasses import dataclass

from ingest.postgres.reader import PostgresReader
from ingest.postgres.upstream_types import chosen_columns
from ingest.reader import ReadLimits, UpstreamTable
from tests.ingest.postgres.table_model import TableModels, upstream_content
from tests.ingest.upstream_database import UpstreamDatabase, run

TABLES = (
    "CREATE TABLE a (id int PRIMARY KEY, n numeric(12,3), big text, f float8, at timestamptz)",
    "ALTER TABLE a ALTER COLUMN big SET STORAGE EXTERNAL",
    "CREATE TABLE b (code text NOT NULL UNIQUE, day date, big text, span interval)",
    "ALTER TABLE b ALTER COLUMN big SET STORAGE EXTERNAL",
    "ALTER TABLE b REPLICA IDENTITY USING INDEX b_code_key",
    "CREATE TABLE c (x float8, words text[], big text)",
    "ALTER TABLE c ALTER COLUMN big SET STORAGE EXTERNAL",
    "ALTER TABLE c REPLICA IDENTITY FULL",
    "CREATE PUBLICATION p FOR TABLE a, b, c",
)
KEYS = 12
"""Few, so that rows of one transaction meet."""


@dataclass(frozen=True)
class CommittedState:
    """All tables behind a commit that began after `before`."""

    before: int
    content: dict[str, list[str]]


class RandomUpstream:
    """Random transactions on a database; remembers the state behind each."""

    def __init__(self, database: UpstreamDatabase, seed: int) -> None:
        self.database = database
        self.random = random.Random(seed)
        self.tables: list[UpstreamTable] = []
        self.states: list[CommittedState] = []
        self._extra = 0
        self._log: list[str] = []
        database.execute(*TABLES)

    def note(self) -> None:
        """Remember the state, as of a commit whose log began before now."""
        before = self.states[-1].before if self.states else 0
        self.states.append(CommittedState(before, self._content()))

    def _content(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for table in self.tables:
            names = ", ".join(column.name for column in table.columns)
            lines = self.database.copied(f"SELECT {names} FROM {table.reference}")
            found[table.reference] = upstream_content(table, lines)
        return found

    def transaction(self) -> None:
        """One that commits, or rolls back."""
        self.database.execute("BEGIN")
        for _ in range(self.random.choice((1, 1, 2, 3, 6))):
            self._statement()
        if self.random.random() < 0.1:
            self.database.execute("ROLLBACK")
            return
        ((before,),) = self.database.rows("SELECT (pg_current_wal_insert_lsn() - '0/0')::int8")
        self.database.execute("COMMIT")
        self.states.append(CommittedState(before, self._content()))

    def _statement(self) -> None:
        makers: list[tuple[int, Callable[[], str]]] = [
            (6, self._insert),
            (6, self._update),
            (4, self._move_key),
            (4, self._change_large),
            (3, self._delete),
            (1, self._truncate),
            (1, self._alter),
            (1, self._many),
            (2, self._rolled_back),
        ]
        weights = [weight for weight, _ in makers]
        (chosen,) = self.random.choices([maker for _, maker in makers], weights)
        text = chosen()
        self._log.append(text)
        self.database.execute("SAVEPOINT s", text, "RELEASE s")

    def _key(self) -> int:
        return self.random.randrange(KEYS)

    def _large(self) -> str:
        """Sometimes beyond what is held in the row."""
        size = self.random.choice((3, 3, 3000))
        return f"repeat(chr({97 + self.random.randrange(26)}), {size})"

    def _float(self) -> str:
        return self.random.choice(("0", "'-0'", "1.5", "'NaN'", "'Infinity'", "1e-300", "NULL"))

    def _insert(self) -> str:
        key, large = self._key(), self._large()
        return self.random.choice(
            (
                f"INSERT INTO a (id, n, big, f, at) VALUES ({key}, {key}.125, {large}, "
                f"{self._float()}, '2024-02-29 12:00:00.000001+00') ON CONFLICT DO NOTHING",
                f"INSERT INTO b (code, day, big, span) VALUES ('k{key}', DATE '2020-01-01' + {key},"
                f" {large}, '1 mon -2 days 03:00:00.5') ON CONFLICT DO NOTHING",
                f"INSERT INTO c (x, words, big) VALUES ({self._float()}, "
                f"ARRAY['a\\', NULL, '{key}', E'tab\\t'], {large})",
            )
        )

    def _update(self) -> str:
        key = self._key()
        return self.random.choice(
            (
                f"UPDATE a SET n = coalesce(n, 0) + 1 WHERE id <= {key}",
                f"UPDATE a SET f = {self._float()} WHERE id = {key}",
                f"UPDATE b SET day = day + 1 WHERE code = 'k{key}'",
                f"UPDATE c SET x = {self._float()} WHERE words[3] = '{key}'",
                f"UPDATE c SET big = {self._large()} WHERE words[3] = '{key}'",
            )
        )

    def _move_key(self) -> str:
        old, new = self._key(), self._key()
        return self.random.choice(
            (
                f"UPDATE a SET id = {new} WHERE id = {old} "
                f"AND NOT EXISTS (SELECT FROM a WHERE id = {new})",
                f"UPDATE b SET code = 'k{new}' WHERE code = 'k{old}' "
                f"AND NOT EXISTS (SELECT FROM b WHERE code = 'k{new}')",
                f"UPDATE a SET id = {new}, big = {self._large()} WHERE id = {old} "
                f"AND NOT EXISTS (SELECT FROM a WHERE id = {new})",
            )
        )

    def _change_large(self) -> str:
        """The second update says `unchanged` for what the first one set."""
        key = self._key()
        return (
            f"UPDATE a SET big = {self._large()} WHERE id = {key}; "
            f"UPDATE a SET n = 0 WHERE id = {key}; "
            f"UPDATE b SET big = {self._large()} WHERE code = 'k{key}'; "
            f"UPDATE b SET span = '1 day' WHERE code = 'k{key}'"
        )

    def _delete(self) -> str:
        key = self._key()
        return self.random.choice(
            (
                f"DELETE FROM a WHERE id = {key}",
                f"DELETE FROM b WHERE code = 'k{key}'",
                f"DELETE FROM c WHERE ctid = (SELECT min(ctid) FROM c WHERE words[3] = '{key}')",
            )
        )

    def _truncate(self) -> str:
        return self.random.choice(("TRUNCATE a", "TRUNCATE a, b", "TRUNCATE c"))

    def _alter(self) -> str:
        """Columns that we do not have come, change and go; ours stay."""
        table = self.random.choice("abc")
        if self._extra and self.random.random() < 0.5:
            return f"ALTER TABLE {table} DROP COLUMN IF EXISTS extra{self._extra}"
        self._extra += 1
        return f"ALTER TABLE {table} ADD COLUMN extra{self._extra} int DEFAULT {self._extra}"

    def _many(self) -> str:
        large = "repeat(md5(g::text), 100)"
        return (
            f"INSERT INTO c (x, words, big) SELECT g, ARRAY['many'], {large} "
            "FROM generate_series(1, 200) g; DELETE FROM c WHERE words = ARRAY['many']"
        )

    def _rolled_back(self) -> str:
        return f"SAVEPOINT t; {self._insert()}; {self._delete()}; ROLLBACK TO t; {self._update()}"

    def story(self) -> str:
        """The last statements, for a failure."""
        return "\n".join(self._log[-20:])


async def check_reader(upstream: RandomUpstream, reader: PostgresReader, transactions: int) -> int:
    """Raises AssertionError where batches and tables differ. Returns the number of batches."""
    for _ in range(10):
        upstream.transaction()
    upstream.tables = [
        chosen_columns(
            table, (), [one.name for one in table.columns if one.name.startswith("extra")]
        )
        for table in (await reader.inspect()).tables
    ]
    upstream.states.clear()
    upstream.note()
    progress = await reader.prepare(upstream.tables)
    loaded = TableModels(upstream.tables)
    async for part in reader.snapshot():
        loaded.load(part)
    assert loaded.content() == upstream.states[0].content, "the snapshot differs"
    for _ in range(transactions):
        upstream.transaction()
    batches = 0
    for size in (1, 1000, 1 << 20):
        models = TableModels(upstream.tables)
        for name, model in loaded.models.items():
            models.models[name].rows = list(model.rows)
        await reader.start(progress, upstream.tables)
        newest = (await reader.newest())["lsn"]
        upto = progress.position["lsn"]
        while upto < newest:
            batch = await reader.read(ReadLimits(size, wait_ms=1000))
            upto = batch.upto["lsn"]
            models.apply(batch)
            batches += 1
            state = [one for one in upstream.states if one.before < upto][-1]
            assert models.content() == state.content, (
                f"differs at {upto}, batches of {size} bytes\n{upstream.story()}"
            )
        assert models.content() == upstream.states[-1].content, "the end differs"
        assert not models.errors, "upstream's values are all good"
    await reader.release()
    return batches


def main() -> None:
    from tests.ingest.conftest import SETTINGS
    from tests.support.servers import postgres_server

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--transactions", type=int, default=300)
    arguments = parser.parse_args()
    with postgres_server(SETTINGS) as server:
        database = UpstreamDatabase(server)
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            upstream = RandomUpstream(database, seed)
            batches = run(check_reader(upstream, database.reader(), arguments.transactions))
            print(f"seed {seed}: {len(upstream.states)} commits, {batches} batches", flush=True)
            database.empty()
        database.close()


if __name__ == "__main__":
    main()
