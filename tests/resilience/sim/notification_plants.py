"""Bugs about notifications, to be planted into the production code (`test_planted.py`)."""

from typing import Any
from weakref import WeakKeyDictionary

import pytest

from coordinator.core import commits
from coordinator.core.completions import GroupCommitted
from coordinator.core.effects import Effect
from coordinator.core.messages.requests import CommitTransaction, Message
from coordinator.core.notifications.changes import Notification, NotificationChanges
from coordinator.core.notifications.queue import NotificationQueue
from coordinator.core.state import CoreState
from coordinator.core.transactions import Transaction
from coordinator.driver.commit_effects import CommitEffects
from coordinator.transaction.notifications import PendingNotifications
from storage.types import Timestamp


def sent_before_durable(patch: pytest.MonkeyPatch) -> None:
    launch, notify = commits._launch, commits._notify

    def early(core: CoreState, gathered: Any, now: Timestamp) -> list[Effect]:
        effects = launch(core, gathered, now)
        group = core.groups.in_flight
        if group is None or not group.notifying:
            return effects
        return effects + notify(core, group.notifying)

    patch.setattr(commits, "_launch", early)
    patch.setattr(commits, "_notify", lambda *_: [])


def sent_in_the_order_of_requests(patch: pytest.MonkeyPatch) -> None:
    """Who has asked to commit later waits for who has asked before, though it may be refused."""
    commit, notify, end = commits.commit, commits._notify, commits.end_transaction
    line: WeakKeyDictionary[CoreState, list[Transaction]] = WeakKeyDictionary()
    done: WeakKeyDictionary[CoreState, set[int]] = WeakKeyDictionary()

    def enqueue(core: CoreState, message: CommitTransaction, now: Timestamp) -> list[Effect]:
        if message.notifying is not None:
            line.setdefault(core, []).append(core.transactions[message.txn])
        return commit(core, message, now)

    def in_line(core: CoreState, members: Any) -> list[Effect]:
        over = done.setdefault(core, set())
        over.update(txn.id for txn in members)
        ready: list[Transaction] = []
        mine = line.get(core, [])
        while mine and mine[0].id in over:
            ready.append(mine.pop(0))
        return notify(core, ready)

    def forget(core: CoreState, txn: Transaction, *rest: Any) -> list[Effect]:
        if txn.id not in done.get(core, ()) and core in line:
            line[core] = [other for other in line[core] if other is not txn]
        return end(core, txn, *rest)

    patch.setattr(commits, "commit", enqueue)
    patch.setattr(commits, "_notify", in_line)
    patch.setattr(commits, "end_transaction", forget)


def duplicates_not_folded(patch: pytest.MonkeyPatch) -> None:
    notify, changes = PendingNotifications.notify, PendingNotifications.changes
    said: dict[int, list[Notification]] = {}

    def every(self: PendingNotifications, channel: str, payload: str) -> None:
        notify(self, channel, payload)
        said.setdefault(id(self), []).append(Notification(channel, payload))

    def unfolded(self: PendingNotifications) -> NotificationChanges | None:
        folded, mine = changes(self), said.pop(id(self), [])
        if folded is None:
            return None
        # What was undone stays undone.
        sent = tuple(each for each in mine if each in folded.notifications)
        return NotificationChanges(folded.actions, sent, folded.nbytes)

    patch.setattr(PendingNotifications, "notify", every)
    patch.setattr(PendingNotifications, "changes", unfolded)


def undone_notifications_sent(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PendingNotifications, "rewind", lambda *_: None)


def only_one_session_woken(patch: pytest.MonkeyPatch) -> None:
    fall_behind = NotificationQueue._fall_behind
    patch.setattr(NotificationQueue, "_fall_behind", lambda *some: fall_behind(*some)[:1])


def notifications_of_the_deposed(patch: pytest.MonkeyPatch) -> None:
    """Nobody asks whether another coordinator leads, for a group that has no rows."""

    async def certainly(self: CommitEffects, token: Any) -> Message:
        return GroupCommitted(token)

    patch.setattr(CommitEffects, "confirm_group", certainly)
