"""Verify offline that a shard's files, log and the txns shard agree, for `meridian check`.

    log entries ──▶ versions      every file of every one: there, whole, bounded; vectors fit
    checkpoints ──▶ the same files as the log entries up to them
    txns shard  ──▶ what was acknowledged is in the log, or still in the stash

Nothing is written. What cannot be read is a finding, not an exception.

INVARIANTS
  Q1  without a finding of severity `error`, every version reads back what was committed, as far
      back as the table promises; what was removed before that may be gone, log entries too.
  Q2  an orphan is a file that no version names: the rest of an attempt that failed. It costs space
      and nothing else.
"""

import math
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, TypeVar

import pyarrow as pa

from storage.batch import DataFile, WriteBatch
from storage.delta.actions import Action, AddFile, ChangeDataFile, CommitInfo, RemoveFile
from storage.delta.checkpoint import LogState
from storage.delta.file_check import file_problems
from storage.delta.layout import (
    checkpoint_path,
    commit_path,
    data_path,
    last_checkpoint_path,
    log_directory,
    parse_log_path,
)
from storage.delta.recovery import (
    checkpoint_version,
    list_log,
    read_checkpoint,
    read_commit,
    read_vectors,
)
from storage.delta.schema import reported_definition
from storage.delta.snapshot import next_version
from storage.delta.table import FILE_RETENTION, LOG_RETENTION, declared_metadata, promised_ms
from storage.delta.vacuum import named_files, removed_files
from storage.delta.writes import Write, batch_writes, version_writes
from storage.errors import StorageError
from storage.live_files import FileMap
from storage.object_store import ObjectStore
from storage.shard import TICKS_PER_MS, Definition, ShardState, Version
from storage.types import FIRST_TIMESTAMP, ShardId, Source, Timestamp

Severity: TypeAlias = Literal["error", "orphan"]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be. `place` is an object's name, or the shard's."""

    severity: Severity
    shard: ShardId
    place: str
    problem: str


@dataclass(frozen=True, slots=True)
class ShardRecord:
    """What the stash says of a shard: its registration, the applied cut, the untidied batches,
    and the cut that its log has reached.
    """

    shard: ShardId
    schema: pa.Schema
    registered: Timestamp
    applied: Timestamp
    batches: Sequence[tuple[Timestamp, WriteBatch]] = ()
    flushed: Timestamp | None = None
    ticks_per_ms: int = TICKS_PER_MS
    definitions: tuple[Definition, ...] = ()
    """As far back as the catalog knows; empty: there were never other columns."""
    present: Timestamp | None = None
    """Not before any timestamp handed out. None: unknown, all that was removed may be gone."""


async def check_shard(store: ObjectStore, record: ShardRecord) -> list[Finding]:
    """All findings about one shard (Q1, Q2). Raises Determinate if the store cannot be listed."""
    check = _Check(store, record)
    await check.run()
    return check.findings


@dataclass(slots=True)
class _Check:
    """One shard's check: what it has read so far, and what it has found."""

    store: ObjectStore
    record: ShardRecord
    findings: list[Finding] = field(default_factory=list[Finding])
    named: set[str] = field(default_factory=set[str])
    writes: set[Write] = field(default_factory=set[Write])
    # Files that vacuum has deleted, as it may, and the cut at which the log begins now.
    vacuumed: frozenset[str] = frozenset()
    begins: Timestamp = FIRST_TIMESTAMP

    async def run(self) -> None:
        commits, checkpoints = await list_log(self.store, self.record.shard)
        version = await self._check_log(commits, checkpoints)
        reached = self.record.flushed
        if reached is not None and (version is None or version.cut < reached):
            self._error(log_directory(self.record.shard), "the newest log entries are missing (T8)")
        await self._check_batches(version)
        await self._list_orphans()

    async def _check_log(
        self, commits: Sequence[int], checkpoints: Sequence[int]
    ) -> Version | None:
        """Replay every version from the first; the newest one that could be read."""
        shard = self.record.shard
        if not commits and self.record.registered <= self.record.applied:
            self._error(log_directory(shard), "the table has no log, but a cut has been applied")
        first = commits[0] if commits else 0
        if [*commits] != [*range(first, first + len(commits))] or (checkpoints and not commits):
            self._error(log_directory(shard), "log entries are missing")
        if commits and checkpoints and checkpoints[-1] > commits[-1]:
            self._error(log_directory(shard), "a checkpoint is newer than every log entry")
        version, state = await self._beginning(commits, checkpoints)
        if commits and version is None and first > 0:
            return None
        await self._find_vacuumed(commits, version, state)
        await self._check_feed(commits)
        if version is not None:
            for live in version.files.live_files():
                await self._check_file(live.file)
        for number in commits:
            if version is not None and number <= version.number:
                continue
            place = commit_path(shard, number)
            actions = await self._reading(place, read_commit(self.store, shard, number))
            replayed = None if actions is None else self._replay(version, number, actions)
            if actions is None or replayed is None:
                return version
            await self._check_version(version, replayed, actions)
            version, state = replayed, state.after([actions])
            if number in checkpoints:
                await self._check_checkpoint(number, state)
        return version

    async def _beginning(
        self, commits: Sequence[int], checkpoints: Sequence[int]
    ) -> tuple[Version | None, LogState]:
        """Where a log that was cleaned begins: the oldest checkpoint."""
        shard = self.record.shard
        if not commits or commits[0] == 0:
            return None, LogState()
        number = next((c for c in checkpoints if c >= commits[0]), None)
        if number is None:
            self._error(log_directory(shard), "log entries are missing")
            return None, LogState()
        place = checkpoint_path(shard, number)
        state = await self._reading(place, read_checkpoint(self.store, shard, number))
        if state is None:
            return None, LogState()
        version = await self._reading(place, checkpoint_version(self.store, shard, number, state))
        if version is not None:
            if version.cut // self.record.ticks_per_ms > self._horizon_ms(state, LOG_RETENTION):
                self._error(log_directory(shard), "log entries are missing that it should have")
            self.begins = version.cut
            self.named |= {data_path(shard, name) for name in named_files(state)}
        return version, state

    async def _find_vacuumed(
        self, commits: Sequence[int], version: Version | None, state: LogState
    ) -> None:
        """Which files were removed so long ago that they may be gone, and are."""
        shard = self.record.shard
        for number in commits:
            if version is None or number > version.number:
                try:
                    state = state.after([await read_commit(self.store, shard, number)])
                except StorageError:
                    break  # said where the entry is checked
        horizon_ms = self._horizon_ms(state, FILE_RETENTION)
        there = {*await self.store.list(shard)}
        live = named_files(state)
        self.vacuumed = frozenset(
            name
            for name, ms in removed_files(state).items()
            if data_path(shard, name) not in there and name not in live and ms <= horizon_ms
        )

    def _horizon_ms(self, state: LogState, retention: str) -> float:
        """What was removed later is still promised to readers."""
        if self.record.present is None:
            return math.inf
        configuration = {} if state.metadata is None else state.metadata.configuration
        present_ms = self.record.present // self.record.ticks_per_ms
        return present_ms - promised_ms(configuration, retention)

    def _replay(
        self, previous: Version | None, number: int, actions: tuple[Action, ...]
    ) -> Version | None:
        place = commit_path(self.record.shard, number)
        try:
            version = next_version(self.record.shard, previous, number, actions)
        except StorageError as error:
            self._error(place, str(error))
            return None
        if (number == 0 or declared_metadata(actions) is not None) and not self._is_defined(
            version
        ):
            self._error(place, "the table has another schema than the catalog")
        if previous is not None and version.cut <= previous.cut:
            self._error(place, "the cut is not later than the one before")
        for action in actions:
            in_commit = isinstance(action, CommitInfo) and action.in_commit_timestamp
            if in_commit is not False and in_commit * self.record.ticks_per_ms != version.cut:
                self._error(place, "the in-commit timestamp is not the cut (C1)")
        return version

    def _is_defined(self, version: Version) -> bool:
        """Whether the log tells the columns that the catalog knows for that time."""
        record = self.record
        state = ShardState(
            record.shard, record.schema, record.registered, definitions=record.definitions
        )
        if record.definitions and version.cut < record.definitions[0].since:
            return True
        return version.schema_text == reported_definition(state.schema_at(version.cut))

    async def _check_version(
        self, previous: Version | None, version: Version, actions: tuple[Action, ...]
    ) -> None:
        """The files that came with this version, and the deletion vectors that it changed."""
        self.writes |= version_writes(version)
        for name in (*version.added, *version.rewritten):
            await self._check_file(version.files[name].file)
        before = previous.files if previous is not None else FileMap()
        for action in actions:
            if isinstance(action, AddFile):
                await self._check_vector(version, action)
            if isinstance(action, RemoveFile):
                live = before.get(Source(action.path))
                if live is None or live.vector != action.vector:
                    place = commit_path(self.record.shard, version.number)
                    self._error(place, f"removes {action.path}, which was not there like this")

    async def _check_feed(self, commits: Sequence[int]) -> None:
        """The files of the change data feed are there (Y6 of `vacuum.py`)."""
        for number in commits:
            try:
                actions = await read_commit(self.store, self.record.shard, number)
            except StorageError:
                continue  # said where the entry is checked
            for action in actions:
                if not isinstance(action, ChangeDataFile):
                    continue
                place = data_path(self.record.shard, action.path)
                self.named.add(place)
                content = await self._reading(place, self.store.read(place))
                if content is not None and len(content) != action.size:
                    self._error(place, f"has {len(content)} bytes instead of {action.size}")

    async def _check_vector(self, version: Version, add: AddFile) -> None:
        if add.vector is None:
            return
        shard = self.record.shard
        if add.vector.storage_type == "u":
            if add.vector.file_name in self.vacuumed:
                return
            self.named.add(data_path(shard, add.vector.file_name))
        place = data_path(shard, add.path)
        bitmaps = await self._reading(place, read_vectors(self.store, shard, [add]))
        if bitmaps is not None and bitmaps[add.path] != version.files[Source(add.path)].deleted:
            self._error(place, f"version {version.number}: the deletion vector has other rows")

    async def _check_checkpoint(self, number: int, expected: LogState) -> None:
        shard = self.record.shard
        place = checkpoint_path(shard, number)
        found = await self._reading(place, read_checkpoint(self.store, shard, number))
        if found is not None and _essence(found) != _essence(expected):
            self._error(place, "the checkpoint says something else than the log")

    async def _check_batches(self, version: Version | None) -> None:
        """Flushed batches are in the log; the staged files of the others are there (T1)."""
        flushed = version.cut if version is not None else Timestamp(-1)
        for ts, batch in self.record.batches:
            if flushed < ts <= self.record.applied:
                self._error(self.record.shard, f"the commit at {ts} counts as applied, but is not")
            if ts > flushed:
                for file in batch.staged:
                    await self._check_file(file)
            elif ts > self.begins and not batch_writes(ts, batch) <= self.writes:
                self._error(self.record.shard, f"the commit at {ts} is not in the log")

    async def _check_file(self, file: DataFile) -> None:
        place = data_path(self.record.shard, file.name)
        if file.name in self.vacuumed:
            return
        self.named.add(place)
        content = await self._reading(place, self.store.read(place))
        if content is not None:
            for problem in file_problems(file, content, self.record.schema):
                self._error(place, problem)

    async def _list_orphans(self) -> None:
        shard = self.record.shard
        for name in await self.store.list(shard):
            in_log = name.startswith(f"{log_directory(shard)}/")
            expected = name in self.named or (in_log and parse_log_path(name) is not None)
            if not expected and name != last_checkpoint_path(shard):
                self.findings.append(Finding("orphan", shard, name, "no version names this file"))

    async def _reading(self, place: str, read: Awaitable[_T]) -> _T | None:
        """What was read, or None and a finding."""
        try:
            return await read
        except StorageError as error:
            self._error(place, f"cannot be read: {error!r}")
            return None

    def _error(self, place: str, problem: str) -> None:
        self.findings.append(Finding("error", self.record.shard, place, problem))


def _essence(state: LogState) -> object:
    """What a checkpoint must keep: the table, and every live file with vector and tags."""
    adds = {
        path: (add.size, add.stats, add.vector, dict(add.tags)) for path, add in state.adds.items()
    }
    return state.protocol, state.metadata, state.txn, state.row_count, adds
