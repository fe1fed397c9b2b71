"""What the queries of a transaction do; their answers are remembered (`memory.py`).

    rows                 SELECT, now and then FOR UPDATE or with an advisory lock beside
    required, claimed    what constraints look for
    look_back            AS OF
    locked, next_free, lock_table, advisory     what workloads about locks ask for

INVARIANTS
  H6  a block locks tables before it reads or writes them, and rows before it changes them (L1 of
      `coordinator/execution/lock_table.py`, W5 of `coordinator/execution/dml/changed_rows.py`).

When statements begin again, and how a transaction ends: `transaction.py`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from compute.access.foreign_key_probe import ForeignKeyProbe
from compute.access.key_predicates import KeyPredicate
from coordinator.core.locking.modes import LockMode
from coordinator.core.messages.identities import Isolation
from coordinator.core.messages.replies import Snapshot
from coordinator.core.predicates import ReadPredicate
from sql.catalog.catalog import Key as TableKey
from sql.catalog.catalog import Table
from sql.errors import SqlError
from storage.batch import ShardView
from storage.errors import NotFound
from storage.types import Timestamp
from tests.resilience.history.events import Key
from tests.resilience.sim.rows import (
    COLUMNS,
    KEYED,
    KeyRead,
    Row,
    number_of,
    primary_key,
    table_of,
    timeline_of,
)
from tests.resilience.sim.transaction import AGAIN_MAX, STRICT, Transaction
from tests.resilience.sim.world import Broken

EXPLICIT = 0.3
"""Share of the blocks whose queries lock what they read, now and then."""

CANDIDATES = 2
"""Rows that a query with SKIP LOCKED and LIMIT looks at beyond its limit; the server has more."""

FOR = (
    LockMode.ROW_UPDATE,
    LockMode.ROW_UPDATE,
    LockMode.ROW_NO_KEY_UPDATE,
    LockMode.ROW_SHARED,
    LockMode.ROW_KEY_SHARE,
)
"""SELECT FOR UPDATE and its kin."""


class Queries(Transaction):
    """See the module."""

    def _renew(self) -> None:
        super()._renew()
        self._explicit = not self._plain and self.random.random() < EXPLICIT
        self._session_locks: list[tuple[int, bool]] = []

    async def rows(self, *keys: Key) -> list[list[Row]]:
        """The rows of some keys, read in one scan, in the order of their positions."""
        self._steps += 1
        return await self.statement(partial(self._read, keys))

    async def _read(self, keys: Sequence[Key]) -> list[list[Row]]:
        rng = self.random
        if self._single or not self._explicit or rng.random() < 0.5:
            return await self._rows_at(self.snapshot, keys)
        if rng.random() < 0.2:
            return await self._read_and_lock_something(keys)
        return await self.locked(*keys, mode=rng.choice(FOR), wait=rng.random() < 0.9)

    async def _read_and_lock_something(self, keys: Sequence[Key]) -> list[list[Row]]:
        """SELECT .., pg_advisory_xact_lock(..): the next statement may read at a new timestamp."""
        rng = self.random
        found = await self._rows_at(self.snapshot, keys)
        shared, wait = rng.random() < 0.5, rng.random() < 0.8
        await self.locks.advisory(rng.randrange(3), shared=shared, wait=wait)
        return found

    async def advisory(
        self, number: int, *, shared: bool = False, wait: bool = True, by_session: bool = False
    ) -> bool:
        """pg_advisory_lock and its kin, counted; False: it is not free."""
        self._steps += 1
        times = 2 if by_session and self.random.random() < 0.3 else 1
        for _ in range(times):
            if not await self.locks.advisory(
                number, shared=shared, wait=wait, by_session=by_session
            ):
                return False
            if by_session:
                self._session_locks.append((number, shared))
        return True

    async def locked(
        self, *keys: Key, mode: LockMode = LockMode.ROW_UPDATE, wait: bool = True
    ) -> list[list[Row]]:
        """SELECT FOR ..: the rows of some keys, held until the transaction ends. 55P03 with NOWAIT.

        To be called in a statement.
        """
        self._steps += 1
        if self._single:
            self._driver.begin_statement(self._txn)
        names = list(dict.fromkeys(map(table_of, keys)))
        for name in names:
            await self.locks.table(self.table(name), LockMode.ROW_SHARE, wait=wait)
        answers = await self._rows_at(self.snapshot, keys)
        for name in names:
            found = [
                row
                for key, rows in zip(keys, answers, strict=True)
                for row in rows
                if table_of(key) == name
            ]
            if found and not await self.locks.rows(self.table(name), found, mode, wait=wait):
                raise SqlError("55P03", f'could not obtain lock on row in relation "{name}"')
        return answers

    async def next_free(
        self, name: str, wanted: Callable[[Row], bool], count: int, *, skip: bool = True
    ) -> list[Row]:
        """SELECT .. FOR UPDATE [SKIP LOCKED] LIMIT ..: to be called in a statement."""
        self._steps += 1
        self._used.add(name)
        table, mode = self.table(name), LockMode.ROW_UPDATE
        if self._single:
            self._driver.begin_statement(self._txn)
        await self.locks.table(table, LockMode.ROW_SHARE)
        limited = skip and self.random.random() < 0.6
        for _ in range(AGAIN_MAX):
            skipped = {table.oid: mode} if skip else {}
            views = await self._driver.scan(self._txn, self.snapshot.ts, [table], skipped=skipped)
            found = await self._rows_of({name: views[0]})
            rows = sorted(filter(wanted, found[name]), key=lambda row: row.key)
            if limited:
                rows = rows[: count + CANDIDATES]
                taken = await self.locks.first_free(table, rows, mode, count) if rows else []
                if len(taken) == count or len(rows) < count + CANDIDATES:
                    return taken
            else:
                rows = rows[:count]
                if not rows or await self.locks.rows(table, rows, mode, wait=not skip):
                    return rows
        self.world.found("skip", f"p{self._owner} is shown rows of {name} that are not free")
        raise Broken

    async def lock_table(self, name: str, mode: LockMode, *, wait: bool = True) -> None:
        """LOCK TABLE; in SHARE and stronger modes all its rows are in the read set."""
        self._steps += 1

        async def work() -> None:
            await self.locks.table(self.table(name), mode, wait=wait)
            await self._driver.confirm_locks(self._txn)
            if mode >= LockMode.SHARE:
                table = self.table(name)
                oids = frozenset({table.oid})
                await self._driver.scan(self._txn, self.snapshot.ts, [table], (), oids)

        await self.statement(work)

    async def required(self, position: int, *keys: Key) -> list[list[Row]]:
        """Rows of some keys of one table, as foreign keys look for them: whether there are some
        with this position is looked at again by the commit, at every level.
        """
        self._steps += 1

        async def work() -> list[list[Row]]:
            predicate = ForeignKeyProbe(self._keys(keys[0], 1, position))
            return await self._rows_at(self.snapshot, keys, by=predicate)

        return await self.statement(work)

    async def claimed(self, key: Key) -> bool:
        """Whether a key that is to be unique is taken; the commit looks again, at every level."""
        self._steps += 1

        async def work() -> bool:
            predicate = self._keys(key, 0, number_of(key))
            (rows,) = await self._rows_at(self.snapshot, [key], by=predicate)
            return bool(rows)

        return await self.statement(work)

    def _keys(self, key: Key, column: int, value: int) -> KeyPredicate:
        constraint = TableKey("looked_for", (column,))
        return KeyPredicate(self.table(table_of(key)), constraint, frozenset({(value,)}))

    async def look_back(self, ts: Timestamp, *keys: Key) -> None:
        """Read at another timestamp, as far as the tables were there; without own writes."""
        self._steps += 1
        snapshot = await self._driver.snapshot(self._txn, as_of=ts, timeline=self._timeline)
        known = [key for key in keys if ("public", table_of(key)) in snapshot.catalog.tables]
        await self._rows_at(snapshot, known, past=True)
        for key in known:
            self._memory.travelled(ts, key)
        self.world.tally.asked_again += len(known)

    # --- views -------------------------------------------------------------------------------

    async def through_view(self, name: str, *keys: Key) -> list[list[Row]]:
        """The rows of some keys of a view's inputs, as a query over the view shows them: stored
        rows where they are exact, and nothing is written (V4 of `coordinator/core/views`).
        """
        self._steps += 1

        async def work() -> list[list[Row]]:
            catalog, view = self.snapshot.catalog, self.table(name)
            if view.oid not in catalog.exact_views or self._written:
                return await self._rows_at(self.snapshot, keys)
            self.world.tally.read_stored += 1
            return await self._stored(self.snapshot, name, keys)

        return await self.statement(work)

    async def compare_past(self, name: str, keys: Sequence[Key]) -> None:
        """The same AS OF a timestamp that somebody has been told of, beside the inputs."""
        chosen = self._memory.choose()
        if chosen is None:
            return
        self._steps += 1
        snapshot = await self._driver.snapshot(self._txn, as_of=chosen[0])
        view = snapshot.catalog.tables.get(("public", name))
        if view is not None and view.oid in snapshot.catalog.exact_views:
            await self._stored(snapshot, name, keys, past=True)
            await self._rows_at(snapshot, keys, past=True)
            self.world.tally.read_stored += 1

    async def _stored(
        self, snapshot: Snapshot, name: str, keys: Sequence[Key], *, past: bool = False
    ) -> list[list[Row]]:
        """Of an exact view; what is told is compared with what the inputs say (H1)."""
        self._used.add(name)
        view = snapshot.catalog.tables["public", name]
        numbers = frozenset(map(number_of, keys))
        predicate = KeyRead(numbers) if self.world.is_precise else None
        views = await self._driver.scan(self._txn, snapshot.ts, [view], [predicate])
        found = (await self._rows_of({name: views[0]}))[name]
        answers = [sorted(row for row in found if row.key == number_of(key)) for key in keys]
        for key, rows in zip(keys, answers, strict=True):
            answer = tuple((row.position, row.value) for row in rows)
            self._memory.keep(snapshot.ts, key, answer)
            if past or self._isolation is not STRICT:
                self._memory.travelled(snapshot.ts, key)
            if not past:
                self._telling[key] = answer
        return answers

    # --- reading -----------------------------------------------------------------------------

    async def _rows_at(
        self,
        snapshot: Snapshot,
        keys: Sequence[Key],
        *,
        past: bool = False,
        by: ReadPredicate | None = None,
    ) -> list[list[Row]]:
        names = list(dict.fromkeys(table_of(key) for key in keys))
        self._used.update(names)
        tables = [snapshot.catalog.tables["public", name] for name in names]
        predicates = [by or self._predicate(name, keys) for name in names]
        views = await self._driver.scan(self._txn, snapshot.ts, tables, predicates)
        found = await self._rows_of(dict(zip(names, views, strict=True)))
        answers: list[list[Row]] = []
        for key in keys:
            name, number = table_of(key), number_of(key)
            rows = sorted(row for row in found[name] if row.key == number)
            answers.append(rows)
            self._remember(snapshot.ts, key, rows, past=past, told=by is None)
        return answers

    def _remember(
        self, ts: Timestamp, key: Key, rows: Sequence[Row], *, past: bool = False, told: bool = True
    ) -> None:
        """What a key was at a timestamp; of tables that it has written to nobody knows that.
        `told`: the client hears of it, unlike of what a constraint looks for.
        """
        if not past and table_of(key) in self._written:
            return
        answer = tuple((row.position, row.value) for row in rows)
        self._memory.keep(ts, key, answer)
        if not past and told and self._isolation is not Isolation.READ_COMMITTED:
            self._telling[key] = answer
        if self._isolation is not STRICT:
            self._memory.travelled(ts, key)

    async def _rows_of(self, views: Mapping[str, ShardView]) -> dict[str, list[Row]]:
        """As an engine reads them: whoever lacks a file asks whether it was deposed (E1)."""
        try:
            read, store = self.world.reader.rows, self.world.store
            return {name: read(view, store) for name, view in views.items()}
        except NotFound:
            await self._driver.examine(views.values())
            raise

    def _predicate(self, name: str, keys: Sequence[Key]) -> KeyRead | None:
        """What the scan of a table depends on; None: on all of it."""
        if not self.world.is_precise:
            return None
        return KeyRead(frozenset(number_of(key) for key in keys if table_of(key) == name))

    async def new_table(self, name: str) -> Table:
        """A definition that nobody has used."""
        oid, shard = await self._driver.new_table_id()
        is_keyed = self.world.is_keyed or name[0] in KEYED
        keys = (primary_key(name),) if is_keyed else ()
        line = timeline_of(name).name
        return Table(oid, "public", name, shard, COLUMNS, timeline=line, keys=keys)
