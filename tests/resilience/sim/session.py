"""What the statements of a transaction write, and its commit.

    insert     INSERT, UPDATE or DELETE, now and then behind a savepoint, or by a staged file
    define     DDL
    notify     NOTIFY, sent with the commit

INVARIANTS
  H5  a transaction that was nothing but one insert may go as an insert alone, at its end.
  H6  of `queries.py`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import cast

from coordinator.core.locking.modes import LockMode
from coordinator.core.messages.catalog_changes import (
    AttachView,
    CatalogChange,
    PutReadHold,
    PutTable,
    RemoveTable,
)
from coordinator.core.messages.identities import Isolation
from coordinator.core.messages.replies import Committed, RefusedReason
from coordinator.core.messages.requests import Insertion
from coordinator.core.short_writes.by_key import RowValues
from coordinator.core.transactions import VALIDATING
from coordinator.core.views.deltas import ComputedRows
from coordinator.driver.coordination import LockBlocks, RequestRefused
from coordinator.transaction.notifications import PendingNotifications
from sql.catalog.catalog import SYSTEM_TIMELINE, NameDependency, ReadHold, Table
from sql.catalog.objects import ExactView
from sql.errors import SqlError
from storage.batch import DataFile
from storage.delta.files import encode_file
from storage.types import Source, Timestamp
from tests.resilience.history.events import Key, Operation
from tests.resilience.sim.heard_replies import HeardReplies, committed
from tests.resilience.sim.key_changes import KeyChange, Make, add_rows, key_index, look_at
from tests.resilience.sim.queries import Queries
from tests.resilience.sim.rows import (
    COLUMNS,
    KEYED,
    REGISTERS,
    Content,
    ContentEncoder,
    Row,
    arrow,
    insertion,
    number_of,
    old_rows,
    table_of,
)
from tests.resilience.sim.transaction import Result
from tests.resilience.sim.view_maintenance import PROGRAM

NOBODYS = -1
"""A value that no transaction ever commits."""

WAITS_IN_VAIN = ("55P03", "40P01")
"""SQLSTATEs of statements that did not get a lock."""

Body = Callable[["Session"], Awaitable[tuple[Operation, ...]]]


class Session(Queries):
    """See the module."""

    _staged: Sequence[DataFile] = ()
    _refused_shortly = False

    def _renew(self) -> None:
        super()._renew()
        self._savepoints = 0
        self._computed: tuple[int, ExactView] | None = None
        self._insert: tuple[Table, Sequence[Content]] | None = None
        self._change: KeyChange | None = None
        self._heard = HeardReplies()
        self._affected: int | None = None
        self.promised_rows: int | None = None
        """How many rows a short write changes; None: that depends."""
        self.if_nothing: tuple[Operation, ...] = ()
        """What is told of a short write that changes no row."""
        self._names: tuple[NameDependency, ...] = ()
        self._pending = PendingNotifications(self._driver.notifications.queue.bytes_max)

    async def run(self, body: Body, *, alone: bool = False) -> Result:
        """The whole transaction."""
        work = partial(body, self)
        try:
            result = await (self.run_alone(work) if alone else self.run_once(work))
            await self._unlock()
            return result
        finally:
            self.disconnect()

    async def _unlock(self) -> None:
        """Locks of the session are its own after the transaction; some are left to its end."""
        for number, shared in self._session_locks:
            if self.random.random() < 0.6:
                held = await self.locks.unlock(number, shared=shared)
                self.expect(held, "unlock", f"advisory lock {number} was not held any more")

    def change(self, key: Key, make: Make) -> bool:
        """A short write, as the whole transaction; False: the general way has to be taken."""
        table = self.table(table_of(key))
        refused, self._refused_shortly = self._refused_shortly, False
        if refused or not table.keys or table.columns != COLUMNS:
            return False
        assert self._steps == 0, "it is the whole transaction"
        self._written.add(table.name)
        self._used.add(table.name)
        self._change = self._key_change(table, make)
        return True

    def _key_change(self, table: Table, make: Make) -> KeyChange:
        server = self.server
        if server.key_index is None:
            server.key_index = key_index(self.world.store)
        return KeyChange(table, self._names, server.key_index, self.random, make)

    async def _change_by_key(self, change: KeyChange) -> Timestamp:
        self._driver.abort(self._txn)
        self.world.tally.changed_by_key += 1
        try:
            done = await self._write_alone(change)
        except LockBlocks:
            if self._single:
                # It has no transaction to wait in: then the long way.
                self._begin()
            self._refused_shortly = True
            raise
        except RequestRefused as refused:
            self._refused_shortly = refused.reason is RefusedReason.STALE
            if self._refused_shortly:
                self.world.tally.not_by_key += 1
            raise
        self._affected = done.affected
        self._expect_rows(change, done.returned)
        if self.promised_rows is not None:
            count = self.promised_rows
            self.expect(done.affected == count, "affected", f"{done.affected} and not {count}")
        return done.ts

    def _expect_rows(self, change: KeyChange, returned: tuple[RowValues, ...]) -> None:
        """The rows of RETURNING are those of the evaluation that has counted (E3)."""
        last = change.shown[-1]
        self.expect(returned == last, "returning", f"{returned} and not {last}")

    async def change_inside(self, key: Key, make: Make) -> bool:
        """A short write as a statement of the block; False: the general way has to be taken."""
        table = self.table(table_of(key))
        if not table.keys or table.columns != COLUMNS or not self.world.is_keyed:
            return False  # the core locks by primary key, as the sessions of a run do or do not
        self._driver.begin_statement(self._txn)
        change = self._key_change(table, make)
        done = self._driver.change_in_block(self._txn, change)
        if done.affected is None:
            return False
        self._expect_rows(change, done.returned)
        self._written.add(table.name)
        self._used.add(table.name)
        self._steps += 1
        self._insert = None
        self.world.tally.changed_inside += 1
        return True

    async def locked(
        self, *keys: Key, mode: LockMode = LockMode.ROW_UPDATE, wait: bool = True
    ) -> list[list[Row]]:
        """A row by its key now and then in one step, if that can be had."""
        shortly = len(keys) == 1 and not self._single and self.random.random() < 0.5
        if shortly and (rows := self._locked_shortly(keys[0], mode)) is not None:
            await self._driver.confirm_locks(self._txn)
            return [rows]
        return await super().locked(*keys, mode=mode, wait=wait)

    def _locked_shortly(self, key: Key, mode: LockMode) -> list[Row] | None:
        table = self.table(table_of(key))
        if not table.keys or table.columns != COLUMNS or not self.world.is_keyed:
            return None
        if table.keys[0].columns != (0,):
            return None  # a key of a list has many rows
        change = replace(self._key_change(table, look_at(number_of(key))), locks=mode)
        done = self._driver.change_in_block(self._txn, change)
        if done.affected is None:
            return None
        self._expect_rows(change, done.returned)
        self._used.add(table.name)
        self._steps += 1
        self.world.tally.changed_inside += 1
        rows = [
            Row(cast("int", row[2]), cast("int", row[3]), cast("int", row[1]), *base)
            for row, (base, _) in zip(done.returned, change.touched, strict=True)
        ]
        self._remember(self.snapshot.ts, key, rows)
        return rows

    def _really(self, told: tuple[Operation, ...]) -> tuple[Operation, ...]:
        return self.if_nothing if self._affected == 0 and self.if_nothing else told

    async def change_both(
        self, *changes: tuple[Key, Make], failed: Callable[[SqlError], None]
    ) -> None:
        """Short writes that are sent at once: transactions of their own, in this order. `failed`
        is told at once of each that fails: the answers to those behind it may never come.
        """
        self._driver.abort(self._txn)
        self.asked_to_commit = True
        self.world.tally.changed_by_key += len(changes)
        self._heard = HeardReplies()
        sent: list[asyncio.Task[SqlError | LockBlocks | None]] = []
        async with asyncio.TaskGroup() as tasks:
            for key, make in changes:
                change = self._key_change(self.table(table_of(key)), make)
                sent.append(tasks.create_task(self._failure_of(change, failed)))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
        for one in sent:
            failure = one.result()
            if isinstance(failure, LockBlocks):
                failure = RequestRefused("40001", "the client does not wait")
                failure.reason = RefusedReason.STALE
            if failure is not None:
                raise failure
        self._begin()
        self._snapshot = await self._driver.snapshot(self._txn)

    async def _failure_of(
        self, change: KeyChange, failed: Callable[[SqlError], None]
    ) -> SqlError | LockBlocks | None:
        if self._heard.count:
            return None  # what comes next is sent only if nothing has been answered yet
        try:
            await self._write_alone(change)
        except LockBlocks as waits:
            return waits
        except SqlError as failure:
            failed(failure)
            return failure
        return None

    async def _commit(self) -> Timestamp:
        if self._computed is not None:
            return await self._commit_computed(*self._computed)
        if self._change is not None:
            return await self._change_by_key(self._change)
        pending = self._pending.changes()
        bare = self._steps == 1 and self._timeline == SYSTEM_TIMELINE.name and pending is None
        bare = bare and not self._single
        if bare and self._insert is not None and self.random.random() < 0.5:
            return await self._insert_alone(*self._insert)
        if not self._single and pending is None and self._txn % 2:
            # As a session begins it where its bytes come.
            hear, heard = self._heard.next()
            if self._driver.begin_commit(self._txn, hear):
                return committed(await heard).ts
        single = self._single and bool(self._written)
        return await self._driver.commit(self._txn, pending, single=single)

    async def _commit_computed(self, oid: int, exact: ExactView) -> Timestamp:
        """The rows of a view as of a timestamp that is held until a unit has attached it."""
        driver = self._driver
        hold = driver.begin(self._owner, read_only=True)
        try:
            await driver.snapshot(hold, as_of=Timestamp(exact.computed_at))
            ts = await driver.commit(self._txn)
            await self.think()
            with suppress(RequestRefused, LockBlocks):
                await driver.followed_views.attach(oid, ComputedRows(exact, ts))
                self.world.tally.attached_by_units += 1
            return ts
        finally:
            driver.abort(hold)

    async def _insert_alone(self, table: Table, content: Sequence[Content]) -> Timestamp:
        """As a session does with an INSERT that it has bound before (H5)."""
        # Other workloads have no long way for one that cannot be evaluated.
        if table.name[0] in KEYED and table.columns == COLUMNS:
            return await self._change_by_key(self._key_change(table, add_rows(content)))
        self._driver.abort(self._txn)
        self.world.tally.inserted_alone += 1
        insertion = Insertion(table, content, 24, ContentEncoder(table), self._names)
        return (await self._write_alone(insertion)).ts

    async def _write_alone(self, write: Insertion | KeyChange) -> Committed:
        """A write that is its whole transaction."""
        hear, heard = self._heard.next()
        self._driver.begin_write(self._owner, write, hear)
        return committed(await heard)

    def advance(self, by: int) -> None:
        """The commit moves a timeline without a clock so far ahead."""
        self._steps += 1
        self._least = Timestamp(self.snapshot.ts + by)
        self._driver.advance(self._txn, self._timeline, self._least)

    async def hold(self, name: str, ts: Timestamp | None) -> None:
        """CREATE READ HOLD, at the present if it is not said otherwise."""
        held = await self._driver.hold(self._txn, self._timeline, ts)
        await self.define(PutReadHold(ReadHold(name, self._timeline, held)))

    async def insert(
        self, key: Key, *rows: tuple[int, int], instead_of: Sequence[Row] = ()
    ) -> None:
        """Write rows (position, value) of a key, and delete others."""
        if not (self._in_statement or self._single) and self.random.random() < 0.08:
            await self._change_your_mind(key, instead_of)
        content = [(number_of(key), position, value) for position, value in rows]
        staged = bool(content) and self.random.random() < 0.08
        await self._writing(key, content, instead_of, staged=staged)

    async def _writing(
        self,
        key: Key,
        content: Sequence[Content],
        instead_of: Sequence[Row],
        *,
        staged: bool = False,
    ) -> None:
        """INSERT, UPDATE or DELETE: its locks first (H6)."""
        name = table_of(key)
        keeps_keys = sorted(row.key for row in instead_of) == sorted(row[0] for row in content)
        keeps_keys = keeps_keys and name[0] in REGISTERS
        mode = LockMode.ROW_NO_KEY_UPDATE if keeps_keys else LockMode.ROW_UPDATE
        bound, tried = self.table(name), False

        async def work() -> None:
            nonlocal tried
            found, again, tried = instead_of, tried, True
            if self.table(name) != bound:
                raise SqlError("40001", "the client has made its rows for another definition")
            if not self._single:
                await self.locks.table(bound, LockMode.ROW_EXCLUSIVE)
                if found and again:
                    found = await self._same(name, found)
                if found:
                    await self.locks.rows(self.table(name), found, mode, implicit=True)
            if staged:
                await self._write_staged(key, content, found, keeps_keys=keeps_keys)
            else:
                self._write(key, content, found, keeps_keys=keeps_keys)

        await self.statement(work)

    async def _same(self, name: str, rows: Sequence[Row]) -> list[Row]:
        """The rows again, at a newer timestamp; at read committed they may have changed."""
        keys = [f"{name}_{number}" for number in sorted({row.key for row in rows})]
        answers = await self._rows_at(self.snapshot, keys)
        there = {(row.key, row.value): row for answer in answers for row in answer}
        found = [there.get((row.key, row.value)) for row in rows]
        same = [row for row in found if row is not None]
        if len(same) < len(rows):
            lost = self._isolation is not Isolation.READ_COMMITTED
            self.expect(not lost, "refresh", f"{rows} are {there} at the new timestamp")
            raise SqlError("40001", "the client thinks better of it")
        return same

    async def _write_staged(
        self,
        key: Key,
        content: Sequence[Content],
        instead_of: Sequence[Row],
        *,
        keeps_keys: bool,
    ) -> None:
        """As a large INSERT does: a file of its own, made durable before the commit names it."""
        name = table_of(key)
        self._steps += 1
        encoded = encode_file(arrow(self.table(name), content), "part")
        # Named as engines name theirs, so that vacuum takes it for one (Y3).
        number = Source(f"part-{self._owner:024x}-{len(self._staged):05d}.parquet")
        file = replace(encoded.file, name=number)
        self._staged = (*self._staged, file)
        place = f"{self.table(name).shard}/{file.name}"
        self._written.add(name)
        self._used.add(name)
        self.world.store.write_unsynced(place, encoded.content)
        await asyncio.sleep(self.random.random() * 0.01)
        await self.world.store.sync([place])
        batch = replace(insertion(self.table(name), [], instead_of), staged=(file,))
        self._driver.write(self._txn, self.table(name), batch, keeps_keys=keeps_keys)

    def _write(
        self,
        key: Key,
        content: Sequence[Content],
        instead_of: Sequence[Row],
        *,
        keeps_keys: bool,
    ) -> None:
        name = table_of(key)
        self._written.add(name)
        self._steps += 1
        self._insert = None if instead_of or not content else (self.table(name), content)
        self._used.add(name)
        # What an UPDATE has read of the rows that it replaces: everything, less, or nothing.
        known = self.random.choice(((0, 1, 2), (0,), (1,), ()))
        old = old_rows(instead_of, known) if instead_of and known else None
        batch = insertion(self.table(name), content, instead_of)
        self._driver.write(self._txn, self.table(name), batch, old, keeps_keys=keeps_keys)

    async def _change_your_mind(self, key: Key, instead_of: Sequence[Row]) -> None:
        """Write something, and ROLLBACK TO a savepoint."""
        await self.undone(self._writing(key, [(number_of(key), 0, NOBODYS)], instead_of))

    async def undone(self, work: Awaitable[object]) -> None:
        """Do something behind a savepoint, and ROLLBACK TO it, also if it fails: locks are given
        back, and what was seen stays seen.
        """
        self._savepoints += 1
        number = self.locks.savepoint = self._savepoints
        self._driver.savepoint(self._txn, number)
        try:
            await work
        except SqlError as error:
            if error.sqlstate not in WAITS_IN_VAIN:
                raise
        self.locks.rolled_back(number)
        self._driver.rollback_to(self._txn, number)

    def notify(self, channel: str, value: int) -> None:
        """NOTIFY."""
        self._pending.notify(channel, str(value))

    def notify_and_regret(self, channel: str, value: int) -> None:
        """NOTIFY behind a savepoint, and ROLLBACK TO it."""
        mark = self._pending.mark()
        self.notify(channel, value)
        self._pending.rewind(mark)

    async def define(self, *changes: CatalogChange) -> None:
        """DDL: it takes the tables that it changes for itself, those of `system`."""
        self._steps += 1
        tables = [
            known
            for change in changes
            if isinstance(change, PutTable | RemoveTable)
            for known in self.snapshot.catalog.tables.values()
            if known.oid == change.table.oid and known.timeline == SYSTEM_TIMELINE.name
        ]

        async def work() -> None:
            for table in () if self._single else tables:
                await self.locks.table(table, LockMode.ACCESS_EXCLUSIVE)
            current = self.snapshot.catalog.tables.values()
            if any(table not in current for table in tables):
                raise SqlError("40001", "the client has made its definition from another one")
            self._driver.change_catalog(self._txn, changes)

        await self.statement(work)
        self._written |= {
            change.table.name for change in changes if isinstance(change, PutTable | RemoveTable)
        }
        await self.look()

    async def attach(self, name: str, inputs: Sequence[str], keys: Sequence[Key]) -> None:
        """Catch-up: the rows of a view that is behind are computed anew, and said to be exact. At a
        level that proves nothing, a unit of its lane does that, behind the commit.
        """

        async def work() -> None:
            view, followed = self.table(name), self._driver.followed_views
            exact = self.snapshot.catalog.exact_views.get(view.oid)
            if exact is not None:
                # As after a start: how to maintain it is in no record.
                followed.put_program(view.oid, exact.computed_at, PROGRAM)
                return
            await self.locks.table(view, LockMode.ROW_EXCLUSIVE)
            shown = await self._rows_at(self.snapshot, keys)
            content = [(row.key, row.position, row.value) for rows in shown for row in rows]
            ts, oids = self.snapshot.ts, frozenset({view.oid})
            views = await self._driver.scan(self._txn, ts, [view], (), oids)
            old = (await self._rows_of({name: views[0]}))[name]
            if content or old:
                self._write(f"{name}_0", content, old, keeps_keys=False)
            below = frozenset(self.table(one).oid for one in inputs)
            self._written.add(name)
            self._insert = None
            exact = ExactView(below, below, ts)
            followed.put_program(view.oid, ts, PROGRAM)
            if self._isolation not in VALIDATING:
                self._computed = view.oid, exact
                return
            self._driver.change_catalog(self._txn, [AttachView(view.oid, exact)])
            self.world.tally.attached += 1

        self._steps += 1
        await self.statement(work)
        await self.look()

    def rest_on(self, *names: NameDependency) -> None:
        """What the transaction computes rows by (A6 of `coordinator/core/validation.py`)."""
        self._names += names
        self._driver.looked_up(self._txn, names)
