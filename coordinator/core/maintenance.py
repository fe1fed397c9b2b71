"""Schedule compaction, vacuum and removal of dropped tables, one job at a time.

    flushed ──worth it──▶ RewriteFiles ──FilesRewritten──▶ rewritten ──next cut──▶ landed
    VACUUM, age ────────▶ VacuumShard ──────Vacuumed─────▶ suspects for the next one
    dropped ──since─────▶ ForgetShards ─────Forgotten────▶ nothing is left

INVARIANTS
  M5  at most one job is in flight: what a vacuum finds unused is not being written by a compaction.
  M6  rewritten files wait for a cut of their shard; until they have landed, vacuum knows them.
  M7  vacuum keeps what any version, commit, transaction or rewritten file names. A staged file that
      nobody names goes only if nobody named it at a vacuum before either, and every transaction
      and batch of a source that was open when that one ended is over: who might have named it
      cannot any more.
  M8  a fenced shard is left alone.
  M9  a dropped shard leaves the core when since has reached the drop, and no cut is in flight: then
      no view, no transaction and no flush knows it any more.

Not here: which files are worth rewriting (`storage/delta/compaction.py`), which may go
(`storage/delta/vacuum.py`).
"""

from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from coordinator.core.completions import CutFlushed, FilesRewritten, Forgotten, Vacuumed
from coordinator.core.cut_schedule import CutSchedule
from coordinator.core.effects import Effect, ForgetShards, Reply, RewriteFiles, VacuumShard
from coordinator.core.fences import fenced_table_refusal
from coordinator.core.messages.identities import RequestId, TransactionId
from coordinator.core.messages.replies import Maintained, Refused, RefusedReason
from coordinator.core.messages.requests import Optimize, Vacuum
from coordinator.core.settings import CoreSettings
from coordinator.core.transactions import Transaction
from sql.catalog.catalog import Table
from storage.delta.compaction_plan import choose_files
from storage.delta.vacuum_plan import Vacuuming, names_in_use
from storage.live_files import LiveFile
from storage.shard import ShardState
from storage.types import ShardId, Timestamp

FORGET_PAUSE_US: Final = 1_000_000
"""Between two looks whether a dropped table may go. Smaller: more work for an idle server."""


CATALOG_CHANGES_MAX: Final = 256
"""Changes after which the catalog's history in the stash is compacted, also if no table is dropped.
Larger: a longer history to read at start."""


class _Work(StrEnum):
    COMPACT = "compact"
    VACUUM = "vacuum"


_VERBS: Final = {_Work.COMPACT: "OPTIMIZE", _Work.VACUUM: "VACUUM"}


@dataclass(frozen=True, slots=True)
class _Job:
    """Something to do with a shard. `request`: who waits for it, if anybody. `flushed`: what was in
    memory when it was asked for is in files now. `table`: by which it was asked for.
    """

    work: _Work
    shard: ShardId
    request: RequestId | None = None
    flushed: bool = False
    table: Table | None = None


@dataclass(frozen=True, slots=True)
class _Suspects:
    """Files that nobody named, and the newest transaction and staging of a source that were open
    then (M7).
    """

    names: frozenset[str]
    newest: TransactionId
    newest_staging: int


class Maintenance:
    """See the module. The collaborators are the core's own."""

    def __init__(
        self,
        settings: CoreSettings,
        shards: dict[ShardId, ShardState],
        transactions: Mapping[TransactionId, Transaction],
        cutting: CutSchedule,
        read_ts: Callable[[], Timestamp],
        advance_since: Callable[[Timestamp], Timestamp],
        since_of: Callable[[ShardId], Timestamp],
        next_oid: Callable[[], int],
        stagings: Callable[[], Collection[int]],
        dropped: Mapping[ShardId, Timestamp],
    ) -> None:
        self._settings = settings
        self._shards = shards
        self._transactions = transactions
        self._cutting = cutting
        self._read_ts = read_ts
        self._advance_since = advance_since
        self._since_of = since_of
        self._next_oid = next_oid
        self._stagings = stagings
        self._queue: deque[_Job] = deque()
        self._in_flight: _Job | None = None
        self._rewritten: dict[ShardId, tuple[LiveFile, ...]] = {}
        # Jobs that wait for a flush of their shard, and requests with the jobs left of each.
        self._parked: dict[ShardId, list[_Job]] = {}
        self._left: dict[RequestId, int] = {}
        self._suspects: dict[ShardId, _Suspects] = {}
        self._vacuumed: dict[ShardId, Timestamp] = {}
        self._taken_over = {
            shard: state.versions[-1].number if state.versions else -1
            for shard, state in shards.items()
        }
        # Shards whose table is gone, since when; and those that are being forgotten.
        self._dropped: dict[ShardId, Timestamp] = dict(dropped)
        self._forgetting: frozenset[ShardId] = frozenset()
        self._compacting = False
        self._looked = Timestamp(0)
        self._changes = 0
        self._stopped = False

    # --- what is wanted ------------------------------------------------------------------------

    def asked(self, message: Optimize | Vacuum) -> list[Effect]:
        """Queue a request's jobs, ahead of those that nobody waits for."""
        match message:
            case Optimize(request=request, tables=tables):
                work = _Work.COMPACT
                named = tables
            case Vacuum(request=request, tables=some):
                work = _Work.VACUUM
                named = some or ()
        jobs = [_Job(work, ShardId(table.shard), request, table=table) for table in named]
        if isinstance(message, Vacuum) and message.tables is None:
            whole = [shard for shard, state in self._shards.items() if not state.fenced]
            jobs = [_Job(work, shard, request) for shard in whole]
        if not jobs:
            return [Reply(request, Maintained())]
        self._left[request] = len(jobs)
        self._queue.extendleft(reversed(jobs))
        return []

    def flushed(self, message: CutFlushed, now: Timestamp) -> list[Effect]:
        """A cut is over: rewritten files may have landed; what is worth doing next?"""
        effects: list[Effect] = []
        for shard, version in message.versions.items():
            if version.rewritten and self._rewritten.pop(shard, None) is not None:
                effects += self._unparked(shard, done=True)
            else:
                effects += self._unparked(shard, done=False)
            self._look(shard, now)
        for shard in message.failed:
            jobs = self._parked.pop(shard, [])
            effects += [effect for job in jobs for effect in self._failed(job)]
            if shard in message.fences:
                self._rewritten.pop(shard, None)
        return effects

    def fenced(self, shard: ShardId) -> list[Effect]:
        """The shard is left alone from now on (M8)."""
        self._rewritten.pop(shard, None)
        jobs = self._parked.pop(shard, [])
        return [effect for job in jobs for effect in self._failed(job)]

    def _unparked(self, shard: ShardId, *, done: bool) -> list[Effect]:
        """Go on with the jobs that waited for a flush; `done`: they are over with it."""
        jobs = self._parked.pop(shard, [])
        if done:
            return [effect for job in jobs for effect in self._ended(job)]
        self._queue.extendleft(replace(job, flushed=True) for job in jobs)
        return []

    def _look(self, shard: ShardId, now: Timestamp) -> None:
        """A shard has a new version: is it worth compacting, is it time to vacuum?"""
        state = self._shards[shard]
        queued = {job.work for job in self._queue if job.shard == shard}
        if _Work.COMPACT not in queued and self._sources(_Job(_Work.COMPACT, shard), state):
            self._queue.append(_Job(_Work.COMPACT, shard))
        last = self._vacuumed.setdefault(shard, now)
        # A clock that stepped back must not put it off.
        due = not 0 <= now - last < self._settings.vacuum_age_us
        if _Work.VACUUM not in queued and due:
            self._queue.append(_Job(_Work.VACUUM, shard))

    @property
    def job(self) -> tuple[str, ShardId] | None:
        """The statement and the shard of the job in flight; for observation."""
        job = self._in_flight
        return None if job is None else (_VERBS[job.work], job.shard)

    # --- one job after the other ---------------------------------------------------------------

    def advance(self, now: Timestamp) -> list[Effect]:
        """Begin the next job, if none is in flight (M5)."""
        effects = self._forget(now)
        while self._queue and self._in_flight is None and not self._stopped:
            job = self._queue.popleft()
            state = self._shards.get(job.shard)
            refused = None if job.table is None else fenced_table_refusal(job.table, self._shards)
            if refused is not None:
                effects += self._failed(job, refused)
            elif state is None or state.fenced:
                effects += self._ended(job)
            elif job.work is _Work.VACUUM:
                effects.append(self._vacuum(job, now))
            else:
                effects += self._compact(job, state, now)
        return effects

    def _compact(self, job: _Job, state: ShardState, now: Timestamp) -> list[Effect]:
        unflushed = state.dirty and not job.flushed
        if job.request is not None and (unflushed or job.shard in self._rewritten):
            # First what is in memory becomes files, and earlier work lands.
            self._parked.setdefault(job.shard, []).append(job)
            self._cutting.wanted(job.shard, now)
            return []
        sources = self._sources(job, state)
        if not sources:
            return self._ended(job)
        self._in_flight = job
        return [RewriteFiles(state, sources, self._settings.compaction)]

    def _sources(self, job: _Job, state: ShardState) -> tuple[LiveFile, ...]:
        limits = self._settings.compaction
        if state.fenced or not state.versions or job.shard in self._rewritten:
            return ()
        if job.request is not None:
            limits = limits.on_request()
        return choose_files([*state.versions[-1].files.live_files()], limits)

    def ended(self, message: FilesRewritten | Forgotten | Vacuumed, now: Timestamp) -> list[Effect]:
        """What was in flight is over, done or not."""
        match message:
            case FilesRewritten():
                return self._files_rewritten(message, now)
            case Forgotten():
                return self._forgotten(message)
            case Vacuumed():
                return self._shard_vacuumed(message, now)

    def _ended(self, job: _Job) -> list[Effect]:
        """A job is over; answer the request if that was the last one it waited for."""
        if job.request is None or job.request not in self._left:
            return []
        self._left[job.request] -= 1
        if self._left[job.request]:
            return []
        del self._left[job.request]
        return [Reply(job.request, Maintained())]

    def _failed(self, job: _Job, refused: Refused | None = None) -> list[Effect]:
        """A job has failed: refuse its request; the request's other jobs are dropped."""
        if job.request is None or job.request not in self._left:
            return []
        del self._left[job.request]
        self._queue = deque(other for other in self._queue if other.request != job.request)
        return [Reply(job.request, refused or _FAILED)]

    def stop(self) -> None:
        """Begin nothing more; what has not landed never will."""
        self._stopped = True
        self._queue.clear()
        for shard in self._rewritten:
            if not self._shards[shard].dirty:
                self._cutting.dirty_since.pop(shard, None)
        self._rewritten.clear()

    # --- compaction ----------------------------------------------------------------------------

    def _files_rewritten(self, message: FilesRewritten, now: Timestamp) -> list[Effect]:
        """Rewritten files are durable, or never will be; they land with the next cut (M6)."""
        job, self._in_flight = self._in_flight, None
        assert job is not None, "M5: a completion belongs to the job in flight"
        if message.files is None:
            return self._failed(job)
        if self._stopped or self._shards[job.shard].fenced or self._has_landed(job, message.files):
            return self._ended(job)
        self._rewritten[job.shard] = message.files
        if job.request is None:
            self._cutting.failed(job.shard, now)
            return []
        self._cutting.wanted(job.shard, now)
        if self._cutting.unit == 1:
            # A timeline without a clock does not move for it: it lands when time goes on.
            return self._ended(job)
        self._parked.setdefault(job.shard, []).append(job)
        return []

    def _has_landed(self, job: _Job, files: tuple[LiveFile, ...]) -> bool:
        """A deposed coordinator has rewritten the same meanwhile, and its version was adopted: the
        names are those of the rows (M4 of `compaction.py`), and nothing lands twice.
        """
        known = self._shards[job.shard].versions[-1].files
        return any(live.file.name in known for live in files)

    def awaits_cut(self, shard: ShardId) -> bool:
        """True if rewritten files of this shard have not landed yet (M6)."""
        return shard in self._rewritten

    def landing(self, shard: ShardId, cut: Timestamp) -> tuple[LiveFile, ...]:
        """The rewritten files that a flush of this shard at `cut` takes along."""
        reached = self._shards[shard].cut
        if reached is None or reached >= cut:
            return ()
        return self._rewritten.get(shard, ())

    # --- vacuum --------------------------------------------------------------------------------

    def _vacuum(self, job: _Job, now: Timestamp) -> Effect:
        self._advance_since(now)
        since = self._shards[job.shard].needed_since(self._since_of(job.shard))
        state = self._shards[job.shard] = self._shards[job.shard].pruned(since)
        self._in_flight = job
        staged = [
            name
            for txn in self._transactions.values()
            for shard, name in txn.staged_files()
            if shard == job.shard
        ]
        rewritten = self._rewritten.get(job.shard, ())
        vacuuming = Vacuuming(
            state.shard,
            number=state.versions[-1].number if state.versions else -1,
            cut=Timestamp(-1) if state.cut is None else state.cut,
            since=since,
            frontier=self._read_ts(),
            ticks_per_ms=state.ticks_per_ms,
            in_use=names_in_use(state, rewritten, staged),
            suspects=self._suspected(job.shard),
            taken_over=self._taken_over.get(job.shard),
        )
        return VacuumShard(vacuuming)

    def _suspected(self, shard: ShardId) -> frozenset[str]:
        """Unnamed files of the last vacuum that nobody open now can have written (M7)."""
        known = self._suspects.get(shard)
        if known is None or any(txn <= known.newest for txn in self._transactions):
            return frozenset()
        if any(staging <= known.newest_staging for staging in self._stagings()):
            return frozenset()
        return known.names

    def _shard_vacuumed(self, message: Vacuumed, now: Timestamp) -> list[Effect]:
        """A vacuum is over; what nobody names is looked at again the next time."""
        job, self._in_flight = self._in_flight, None
        assert job is not None, "M5: a completion belongs to the job in flight"
        self._vacuumed[job.shard] = now
        if message.unnamed is None:
            return self._failed(job)
        newest = max(self._transactions, default=TransactionId(0))
        staging = max(self._stagings(), default=0)
        self._suspects[job.shard] = _Suspects(message.unnamed, newest, staging)
        return self._ended(job)

    # --- forgetting ----------------------------------------------------------------------------

    def dropped(self, shard: ShardId, ts: Timestamp) -> None:
        """The shard's table is gone from `ts` on."""
        self._dropped[shard] = ts

    def catalog_changed(self, changes: int) -> None:
        """The catalog's history has grown."""
        self._changes += changes

    def _forget(self, now: Timestamp) -> list[Effect]:
        """Let dropped shards go that nobody can read any more (M9)."""
        busy = self._in_flight is not None or self._cutting.in_flight is not None or self._stopped
        long_history = self._changes >= CATALOG_CHANGES_MAX
        if busy or self._compacting or not (self._dropped or long_history):
            return []
        if 0 <= now - self._looked < FORGET_PAUSE_US:
            return []
        self._looked = now
        since = self._advance_since(now)
        over = [shard for shard, ts in self._dropped.items() if self._since_of(shard) >= ts]
        if not over and not long_history:
            return []
        self._changes = 0
        self._compacting = True
        self._forgetting = frozenset(over)
        for shard in over:
            self._shards.pop(shard, None)
            self._cutting.dirty_since.pop(shard, None)
            for known in (self._rewritten, self._suspects, self._vacuumed, self._taken_over):
                known.pop(shard, None)
        return [ForgetShards(self._forgetting, since, self._next_oid())]

    def _forgotten(self, message: Forgotten) -> list[Effect]:
        """They are gone, or it is tried again after a while."""
        if message.done:
            for shard in self._forgetting:
                del self._dropped[shard]
        self._forgetting = frozenset()
        self._compacting = False
        return []


_FAILED = Refused(RefusedReason.OTHER, "58030", "could not maintain the table: storage has failed")
