"""Who follows which tables: positions, frontiers, holds, and whom to wake.

                    position                     frontier
    since ─────────────┬────────────────────────────┬───────── in flight ─▶
                       │ what it may be told next   │ nobody may know of it yet
                       └ held

INVARIANTS
  S1  nobody is told a change past the frontier, the oracle's read_ts: what is told is durable and
      applied, and a strict read that begins now sees it. No commit will ever be at or below the
      frontier, so that what was told up to there is all there is.
  S2  the position only advances, and is held readable: from the step that accepts the subscription,
      while its transaction still holds the timestamp, to the step that ends it. It moves when the
      subscriber says that it has told everything up to there, or when there was nothing to tell.
  S3  no step passes the end of the subscription: changes at or after UP TO, or from the commit on
      that changes the table's definition or drops it, are never told.
  S4  a subscriber that has been given everything is named among those to wake in the step in which
      there is more, and not again before it has asked. How far time has come alone is told within
      LOOKS-ths of `subscribe_progress_us`. A step costs nothing for shards that it does not change.
  S5  while somebody wants to know how far time has come, timestamps are closed once in
      `subscribe_progress_us`, never at or past a commit that is on its way. In a timeline without a
      clock only commits and ADVANCE close them.
  S6  a subscription ends with its connection.
  S7  one that is further behind the frontier than `subscription_lag_us` is ended, and told where to
      resume. Its hold stays until it has let go of what it reads.
  S8  all tables of a subscription are read at one timestamp. A paced one gets no step with changes
      within `subscribe_compare_us` of the last such step, but for the one that ends it.
  S9  one that asks for values has changes only with the commits that name it (`value_dispatch.py`).
      Other commits do not wake it, its steps begin just before the next that does and end with the
      last, and only now and then it hears how far time has come. Its snapshot is told before its
      position moves.
  S10 of a view with `refresh = 'on commit'` nothing is told, progress included, but at timestamps
      at which it is exact. While it is behind the subscription stands still, and the attach is one
      step. What it would end with behind the last of them, it ends with there.

Not here: the changes themselves (`storage/changes.py`), waiting (`driver/change_streams.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from coordinator.core.catalog import VersionedCatalog
from coordinator.core.change_streams.followed_views import gap_end, gaps, last_exact
from coordinator.core.change_streams.steps import (
    ChangeStep,
    FollowedShard,
    StreamEnd,
    SubscriptionId,
    SubscriptionRequest,
)
from coordinator.core.change_streams.value_dispatch import ValueDispatch
from coordinator.core.messages.identities import ConnectionId
from coordinator.core.read_holds import ReadHolds
from coordinator.core.recent_writes import CommittedWrites
from coordinator.core.settings import CoreSettings
from sql.catalog.catalog import Table
from storage.shard import ShardState
from storage.types import ShardId, Timestamp

LOOKS: Final = 8
"""In `subscribe_progress_us`, so often all who sleep are looked at. Larger: work for nothing while
many sleep. Smaller: progress comes less evenly, and holds of who hears nothing move less often."""


@dataclass(slots=True)
class Subscription:
    """One of them. `stop`: the first timestamp that it may not tell, and `end`, why (S3). `asleep`:
    it has been given everything (S4). `told_at`: when it was last given something, and
    `changed_at`, when there were changes in it. `given`: the end of the last step.

    Of one that asks for values (S9), `concerned_at` is the last commit that may matter to it, and
    `next_concern` the first that was not given; None: there is none.
    """

    id: SubscriptionId
    owner: ConnectionId
    request: SubscriptionRequest
    position: Timestamp
    stop: Timestamp | None
    end: StreamEnd
    told_at: Timestamp
    changed_at: Timestamp
    schemas: tuple[pa.Schema, ...]
    given: Timestamp
    concerned_at: Timestamp
    views: frozenset[int] = frozenset()
    """Of what it follows, the oids of those views of S10."""
    next_concern: Timestamp | None = None
    asleep: bool = False
    is_fresh: bool = True
    """Nothing was taken yet: the first step is for the snapshot."""

    @property
    def asks(self) -> bool:
        """Whether it asks for values (S9)."""
        return bool(self.request.asked)

    def stops_by(self, frontier: Timestamp) -> bool:
        """Whether its end is decided: what it may be told (S1) reaches to there (S3)."""
        return self.stop is not None and self.stop - 1 <= frontier

    def stop_at(self, ts: Timestamp, end: StreamEnd) -> None:
        """End it before `ts`, if it does not end sooner."""
        if self.stop is None or ts < self.stop:
            self.stop, self.end = ts, end


class Subscriptions:
    """See the module; `frontier` is the oracle's read_ts (S1)."""

    def __init__(
        self,
        shards: Mapping[ShardId, ShardState],
        holds: ReadHolds,
        frontier: Callable[[], Timestamp],
        schema_of: Callable[[Table], pa.Schema],
        catalogs: VersionedCatalog,
        settings: CoreSettings,
    ) -> None:
        self._shards = shards
        self._holds = holds
        self._frontier = frontier
        self._schema_of = schema_of
        self._catalogs = catalogs
        self._progress_us = settings.subscribe_progress_us
        self._compare_us = settings.subscribe_compare_us
        self._lag_us = settings.subscription_lag_us
        self._known: dict[SubscriptionId, Subscription] = {}
        self._ending: dict[SubscriptionId, Subscription] = {}
        self._asleep: dict[tuple[ShardId, bool], dict[SubscriptionId, Subscription]] = {}
        """By shard, and by whether they ask for values."""
        self._asked = ValueDispatch()
        self._concerned: list[Subscription] = []
        """Sleepers that a commit of this step names (S9)."""
        self._looked_at = Timestamp(0)
        """When all who sleep were looked at."""
        self._seen = Timestamp(0)
        """The frontier of the last look."""
        self._last = 0
        self._closed_at = Timestamp(0)

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Subscription]:
        return iter(self._known.values())

    def accept(
        self, owner: ConnectionId, request: SubscriptionRequest, now: Timestamp
    ) -> Subscription:
        """A new one. Somebody holds its timestamp, which must be readable in its shards (S2)."""
        self._last += 1
        id_ = SubscriptionId(self._last)
        # Nobody has looked at the values of the commits before.
        before = max(request.as_of, *(self._shards[shard].last_write for shard in request.shards))
        made = Subscription(
            id_,
            owner,
            request,
            request.as_of,
            request.up_to,
            StreamEnd(),
            told_at=now,
            changed_at=Timestamp(0),
            schemas=tuple(map(self._schema_of, request.tables)),
            given=before,
            concerned_at=before,
            views=frozenset([table.oid for table in request.exact_tables]),
        )
        self._known[id_] = made
        self._asked.add(id_, request)
        if made.stop is not None:
            self._ending[id_] = made
        self._holds.follow(id_, request.as_of)
        return made

    def end_at(self, known: Subscription, ts: Timestamp, end: StreamEnd) -> None:
        """End one before `ts`, if it does not end sooner (S3)."""
        known.stop_at(ts, end)
        self._ending[known.id] = known

    def attached(self, known: Subscription) -> None:
        """A view of one is exact again: there may be something to tell (S10)."""
        if known.asleep:
            self._concerned.append(known)

    def find(self, id_: SubscriptionId) -> Subscription | None:
        """One that is not over."""
        return self._known.get(id_)

    def take(self, id_: SubscriptionId, now: Timestamp) -> ChangeStep:
        """What it may be told next; nothing: it sleeps until it is woken (S4)."""
        known = self._known[id_]
        limit = self._limit(known)
        changed = self._has_changes(known)
        upto = self._end_of_step(known, limit) if known.asks and changed else limit
        over = upto == limit and known.stops_by(self._frontier())
        if not over and (self._must_pause(known, now) if changed else self._may_rest(known, now)):
            if not changed and not known.request.closes:
                self._move(known, limit)
            upto = known.position
        known.asleep = upto == known.position and not over and not known.is_fresh
        if known.asleep:
            for shard in known.request.shards:
                self._asleep.setdefault((shard, known.asks), {})[id_] = known
        elif not known.is_fresh:
            known.given = max(known.given, upto)
            if known.concerned_at <= known.given:
                known.next_concern = None
            known.told_at = now
            if changed:
                known.changed_at = now
        known.is_fresh = False
        shards = [
            FollowedShard(self._shards[shard], schema)
            for shard, schema in zip(known.request.shards, known.schemas, strict=True)
        ]
        end = self._end_behind(known, upto) if over else None
        found = gaps(self._catalogs, known.views, known.position, upto)
        return ChangeStep(tuple(shards), known.position, upto, end, not changed, found)

    def _limit(self, known: Subscription) -> Timestamp:
        """The last timestamp that it may be told now (S1, S3, S10)."""
        limit = self._frontier()
        if known.stop is not None:
            limit = Timestamp(min(limit, known.stop - 1))
        return self._exact_by(known, limit)

    def _exact_by(self, known: Subscription, ts: Timestamp) -> Timestamp:
        """S10: `ts`, or the last timestamp before at which its views are exact."""
        if ts <= known.position or not known.views:
            return max(known.position, ts)
        return last_exact(self._catalogs, known.views, known.position, ts)

    def _is_over(self, known: Subscription) -> bool:
        """Whether nothing but its end is left to tell behind its position."""
        return known.stops_by(self._frontier()) and self._limit(known) == known.position

    def _end_behind(self, known: Subscription, upto: Timestamp) -> StreamEnd:
        """How it ends when it was told everything up to `upto`."""
        assert known.stop is not None, "S3: it has an end"
        in_gap = upto < known.stop - 1 and known.end.sqlstate is None
        return gap_end(known.request, upto) if in_gap else known.end

    def _end_of_step(self, known: Subscription, limit: Timestamp) -> Timestamp:
        """Of one that asks for values; it moves to where they begin (S9)."""
        begin = known.next_concern
        if known.is_fresh or (begin is not None and begin > limit):
            return limit
        if begin is not None and known.position >= known.given:
            self._move(known, self._exact_by(known, Timestamp(begin - 1)))
        upto = min(limit, known.concerned_at)
        # What is in a gap is told with its end.
        return upto if self._exact_by(known, upto) == upto else limit

    def _may_rest(self, known: Subscription, now: Timestamp) -> bool:
        """Whether one without changes is spared how far time has come (S9)."""
        if not known.asks or known.is_fresh:
            return False
        return not known.request.closes or now - known.told_at < self._progress_us

    def wrote(self, shard: ShardId, ts: Timestamp, writes: Iterable[CommittedWrites]) -> None:
        """A commit is applied: those whose values it has have something to hear (S9)."""
        for id_ in self._asked.concerned(shard, writes):
            known = self._known[id_]
            known.concerned_at = ts
            if known.next_concern is None:
                known.next_concern = ts
            if known.asleep:
                self._concerned.append(known)

    def _has_changes(self, known: Subscription) -> bool:
        """Whether there may be some behind its position."""
        return known.concerned_at > known.position if known.asks else self._wrote_after(known)

    def _wrote_after(self, known: Subscription) -> bool:
        """Whether a table was written to behind its position, perhaps behind the frontier."""
        shards = known.request.shards
        return any(self._shards[shard].last_write > known.position for shard in shards)

    def _must_pause(self, known: Subscription, now: Timestamp) -> bool:
        """S8."""
        return known.request.paced and now - known.changed_at < self._compare_us

    def move(self, id_: SubscriptionId, ts: Timestamp) -> None:
        """It has told everything up to `ts` (S2)."""
        known = self._known.get(id_)
        if known is None:
            return  # its connection is gone (S6)
        assert known.position <= ts <= self._frontier(), "S1, S2: it tells what it was given"
        self._move(known, ts)

    def _move(self, known: Subscription, ts: Timestamp) -> None:
        known.position = ts
        self._holds.follow(known.id, ts)

    def forget(self, id_: SubscriptionId) -> None:
        """It is over; it may have ended before, with its connection."""
        known = self._known.pop(id_, None)
        if known is not None:
            self._holds.unfollow(id_)
            self._asked.remove(id_, known.request)
            self._ending.pop(id_, None)
            self._wake(known)

    def forget_owner(self, owner: ConnectionId) -> None:
        """A connection is gone (S6)."""
        for known in [known for known in self if known.owner == owner]:
            self.forget(known.id)

    def wants_time(self, now: Timestamp) -> Timestamp | None:
        """Up to where timestamps should be closed now, if anywhere (S5); the caller says how far it
        can.
        """
        frontier = self._frontier()
        due = now - self._closed_at >= self._progress_us
        wanted = [now for known in self if due and known.request.closes]
        # Who waits for UP TO would otherwise wait for somebody to write.
        wanted += [
            Timestamp(known.stop - 1)
            for known in self
            if known.stop is not None and frontier < known.stop - 1 <= now
        ]
        if not wanted or max(wanted) <= frontier:
            return None
        return max(wanted)

    def closed(self, now: Timestamp) -> None:
        """Timestamps were closed."""
        self._closed_at = now

    def end_late(self) -> Iterable[SubscriptionId]:
        """End those who are too far behind (S7)."""
        frontier = self._frontier()
        late: list[SubscriptionId] = []
        for known in self:
            lag_max = self._lag_us
            if lag_max is None:
                lag_max = min(map(self._holds.history_of, known.request.shards))
            if frontier - known.position > lag_max and not self._is_over(known):
                self.end_at(known, Timestamp(known.position + 1), _too_late(known.position))
                late.append(known.id)
        return late

    def wake(self, now: Timestamp) -> Iterable[SubscriptionId]:
        """Those who have something to hear (S4); the others move on (S2), but not at every step:
        most steps concern nobody, and most commits those of one shard.
        """
        frontier = self._frontier()
        looks = now - self._looked_at >= self._progress_us // LOOKS
        if looks:
            self._looked_at = now
        looked_at = [known for known in self._ending.values() if known.asleep]
        looked_at += self._concerned
        self._concerned.clear()
        for (shard, asks), asleep in self._asleep.items():
            state = self._shards[shard]
            if looks or state.fenced or (not asks and state.last_write > self._seen):
                looked_at += asleep.values()
        self._seen = frontier
        woken: list[SubscriptionId] = []
        for known in looked_at:
            if known.asleep and self._has_news(known, now):
                self._wake(known)
                woken.append(known.id)
        return woken

    def _wake(self, known: Subscription) -> None:
        known.asleep = False
        for shard in known.request.shards:
            place = shard, known.asks
            asleep = self._asleep.get(place, {})
            asleep.pop(known.id, None)
            if not asleep:
                self._asleep.pop(place, None)

    def _has_news(self, known: Subscription, now: Timestamp) -> bool:
        shards = known.request.shards
        if self._is_over(known) or any(self._shards[shard].fenced for shard in shards):
            return True
        limit = self._limit(known)
        if limit <= known.position:
            return False
        if self._has_changes(known):
            return not self._must_pause(known, now)
        if known.request.closes and now - known.told_at >= self._progress_us:
            return True
        if not known.request.closes:
            self._move(known, limit)
        return self._is_over(known)


def _too_late(position: Timestamp) -> StreamEnd:
    hint = f"Resume with SNAPSHOT = false AS OF {position}, as long as history reaches back to it."
    return StreamEnd("53400", "the subscription is too far behind", hint)
