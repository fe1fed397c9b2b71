"""The queue of notifications, and what a transaction collects, beside models that are plain."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.core.messages.identities import ConnectionId
from coordinator.core.notifications.changes import (
    ListenAction,
    Notification,
    NotificationChanges,
    SentNotification,
)
from coordinator.core.notifications.queue import TAKEN_BYTES_MAX, NotificationQueue
from coordinator.transaction.notifications import PendingNotifications
from sql.errors import SqlError

ROOM = 1 << 40
CHANNELS = st.sampled_from("abc")
OWNERS = st.sampled_from([ConnectionId(number) for number in (1, 2, 3)])
ACTIONS = st.builds(ListenAction, CHANNELS, st.booleans()) | st.just(ListenAction(None, False))
SAID = st.builds(Notification, CHANNELS, st.sampled_from(["", "1", "2", "ä" * 9_000]))


@dataclass
class Model:
    """Every session has a list of what it will hear."""

    channels: dict[ConnectionId, list[str]] = field(default_factory=dict)
    waiting: dict[ConnectionId, list[SentNotification]] = field(default_factory=dict)

    def apply(self, owner: ConnectionId, changes: NotificationChanges) -> None:
        before = self.channels.get(owner, [])
        after = list(before)
        for action in changes.actions:
            if action.channel is None:
                after = []
            elif action.listens:
                after += [] if action.channel in after else [action.channel]
            else:
                after = [channel for channel in after if channel != action.channel]
        self.channels[owner] = after
        kept = [each for each in self.waiting.get(owner, []) if each.notification.channel in after]
        self.waiting[owner] = kept
        for said in changes.notifications:
            for listener, listened in self.channels.items():
                if said.channel in listened:
                    self.waiting.setdefault(listener, []).append(SentNotification(owner, said))


def taken(queue: NotificationQueue, owner: ConnectionId) -> list[SentNotification]:
    found: list[SentNotification] = []
    while True:
        part = queue.take(owner)
        found += part.sent
        if not part.more:
            return found


STEPS = st.tuples(OWNERS, st.lists(ACTIONS, max_size=3), st.lists(SAID, max_size=4))


@settings(max_examples=150)
@given(st.lists(STEPS | OWNERS | OWNERS.map(lambda owner: (owner,)), max_size=40))
def test_everybody_hears_what_the_model_says(steps: list[object]) -> None:
    queue, model, behind = NotificationQueue(ROOM), Model(), set[ConnectionId]()
    for step in steps:
        match step:
            case (owner, actions, said):
                changes = NotificationChanges(tuple(actions), tuple(said))
                woken = queue.apply(owner, changes)
                model.apply(owner, changes)
                if not model.channels[owner]:
                    behind.discard(owner)
                spoken = {each.channel for each in said}
                reached = {each for each, known in model.channels.items() if spoken & {*known}}
                # Who was woken before and has not come is not woken again.
                assert sorted(woken) == sorted(reached - behind)
                behind |= reached
            case (owner,):
                queue.forget(owner)
                behind.discard(owner)
                model.channels.pop(owner, None)
                model.waiting.pop(owner, None)
            case owner:
                assert isinstance(owner, int)
                found = taken(queue, ConnectionId(owner))
                behind.discard(ConnectionId(owner))
                assert found == model.waiting.pop(ConnectionId(owner), [])
        for owner, channels in model.channels.items():
            assert queue.channels(owner) == tuple(channels)
    for owner in list(model.channels):
        assert taken(queue, owner) == model.waiting.get(owner, [])
    assert queue.usage == 0


def test_one_who_sits_in_a_transaction_holds_the_queue_and_nobody_else() -> None:
    queue, said = NotificationQueue(10_000), Notification("a", "x" * 1_000)
    idle, busy, deaf = map(ConnectionId, (1, 2, 3))
    for owner, channel in ((idle, "a"), (busy, "a"), (deaf, "b")):
        queue.apply(owner, NotificationChanges((ListenAction(channel, True),)))
    for _ in range(3):
        queue.apply(idle, NotificationChanges((), (said,)))
        assert len(queue.take(idle).sent) == 1
    assert queue.usage == 3 * said.nbytes / 10_000
    assert not queue.reserve(10_000 - 3 * said.nbytes + 1)
    assert queue.reserve(10_000 - 3 * said.nbytes)
    assert not queue.reserve(1)
    queue.release(10_000 - 3 * said.nbytes)
    queue.forget(busy)
    assert queue.usage == 0


def test_much_is_taken_in_parts() -> None:
    queue, said = NotificationQueue(ROOM), Notification("a", "x" * 7_000)
    owner = ConnectionId(1)
    queue.apply(owner, NotificationChanges((ListenAction("a", True),), (said,) * 30))
    parts: list[int] = []
    more = True
    while more:
        part = queue.take(owner)
        parts.append(sum(each.notification.nbytes for each in part.sent))
        more = part.more
    assert len(parts) == 4
    assert sum(parts) == 30 * said.nbytes
    assert max(parts) < TAKEN_BYTES_MAX + said.nbytes


PENDING = st.lists(
    SAID | st.sampled_from(["savepoint", "rollback", "release"]) | CHANNELS, max_size=30
)


@given(PENDING)
def test_a_transaction_sends_what_was_not_undone_once(steps: list[Notification | str]) -> None:
    """PostgreSQL has a list for each subtransaction, and joins it to that of its parent."""
    pending = PendingNotifications(ROOM)
    marks = [pending.mark()]
    levels: list[list[Notification | str]] = [[]]
    for step in steps:
        match step:
            case Notification():
                pending.notify(step.channel, step.payload[:3_900])
                levels[-1].append(Notification(step.channel, step.payload[:3_900]))
            case "savepoint":
                marks.append(pending.mark())
                levels.append([])
            case "rollback":
                pending.rewind(marks[-1])
                levels[-1].clear()
            case "release" if len(levels) > 1:
                marks.pop()
                top = levels.pop()
                levels[-1] += top
            case "release":
                pass
            case channel:
                pending.listen(channel)
                levels[-1].append(channel)
    left = [each for level in levels for each in level]
    said = tuple(dict.fromkeys(each for each in left if isinstance(each, Notification)))
    listens = tuple(ListenAction(each, True) for each in left if isinstance(each, str))
    nbytes = sum(each.nbytes for each in said)
    expected = NotificationChanges(listens, said, nbytes) if left else None
    assert pending.changes() == expected
    pending.forget()
    assert pending.changes() is None


@pytest.mark.parametrize(
    ("channel", "payload", "message"),
    [
        ("", "", "channel name cannot be empty"),
        ("x" * 64, "", "channel name too long"),
        ("ä" * 32, "", "channel name too long"),
        ("x", "y" * 8_000, "payload string too long"),
        ("x", "ä" * 4_000, "payload string too long"),
    ],
)
def test_limits(channel: str, payload: str, message: str) -> None:
    pending = PendingNotifications(ROOM)
    with pytest.raises(SqlError) as raised:
        pending.notify(channel, payload)
    assert (raised.value.sqlstate, raised.value.message) == ("22023", message)
    pending.notify(channel[: len(channel) // 2] or "c", payload[:-1])


def test_a_transaction_holds_no_more_than_the_queue_could_take() -> None:
    pending = PendingNotifications(2 * Notification("c", "1").nbytes)
    mark = pending.mark()
    pending.notify("c", "1")
    pending.notify("c", "2")
    pending.notify("c", "1")
    with pytest.raises(SqlError, match="too many notifications in the NOTIFY queue") as raised:
        pending.notify("c", "3")
    assert raised.value.sqlstate == "54000"
    pending.rewind(mark)
    pending.notify("c", "3")


def test_unlisten_of_one_who_has_never_listened_costs_no_commit() -> None:
    pending = PendingNotifications(ROOM)
    pending.unlisten(None)
    assert not pending
    pending.listen("c")
    pending.forget()
    pending.unlisten(None)
    assert pending
