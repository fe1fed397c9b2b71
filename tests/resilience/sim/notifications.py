"""Transactions that notify, with rows and without, of two timelines; and sessions that listen.

    tell     Add a value to a set, and say it on some channels; now and then twice, or undone
    say      the same without a row
    count    tell, in the timeline that counts commits
    race     replace a register, and tell: conflicts, so that some of it does not happen, or in
             another order than it was asked for
    listen   a session begins to listen (`listener.py`)

INVARIANTS
  J1  what an acknowledged transaction has said reaches each session of its server that listened
      before it began, once, if the session has taken everything after it had ended.
  J2  sessions hear in the order of the commits: by timestamp, by real time, and all the same.
  J3  nobody hears what was undone, refused or lost, nor what was over before LISTEN was begun, nor
      what has begun after UNLISTEN was acknowledged.
  J4  nothing is acknowledged by a coordinator at whose successor somebody listened already.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from coordinator.core.messages.identities import Isolation
from tests.resilience.history.events import (
    Add,
    Finding,
    History,
    Key,
    Kind,
    Operation,
    Read,
    ReadSet,
    Transaction,
    Write,
)
from tests.resilience.sim.listener import Heard, Listener, epoch_of
from tests.resilience.sim.rows import number_of, table_of, timeline_of
from tests.resilience.sim.session import Session
from tests.resilience.sim.transaction import STRICT
from tests.resilience.sim.workload import Draw, Plan, Usual, one_by_one, perform

CHANNELS = ("a", "b", "c")
SAID = "s2"
"""The table of keys that stand for what was said without a row; it stays empty."""
TOLD: Mapping[str, Key] = {"system": "s0_1", "counted": "sm0_1"}
REGISTER = "r0_1"
FULL = "54000"


@dataclass(slots=True)
class Saying:
    """What a transaction says: under which epoch it ran (servers are numbered by when they start,
    not by who took over last), whom sessions hear as its sender, on which channels in which order.
    """

    epoch: int = 0
    sender: int = 0
    channels: tuple[str, ...] = ()


class Notifications(Usual):
    """See the module."""

    tables = ("r0", "s0", SAID, "sm0")

    def __init__(self, draw: Draw) -> None:
        super().__init__(draw)
        self._sayings: dict[int, Saying] = {}
        self._undone: set[int] = set()
        self._keys: dict[int, Key] = {}
        self._listeners: list[Listener] = []

    def plan(self) -> Plan:
        value = self._draw.values.next()
        match self._draw.random.randrange(12):
            case 0:
                return self.read_all()
            case 1 | 2:
                return self._listen()
            case 3 | 4 | 5:
                # At the weaker level nothing but the commit asks whether the coordinator leads.
                level = self._draw.random.choice((STRICT, Isolation.SERIALIZABLE))
                return replace(self._tell((ReadSet(f"{SAID}_{value}"),), value), isolation=level)
            case 6 | 7:
                return self._tell((Add(TOLD["counted"], value),), value)
            case 8 | 9:
                race = (Read(REGISTER), Write(REGISTER, value), Add(TOLD["system"], value))
                alone = self._draw.random.random() < 0.5
                return replace(self._tell(race, value), alone=alone)
            case _:
                return self._tell((Add(TOLD["system"], value),), value)

    def first(self) -> Sequence[Plan]:
        """Somebody listens from the beginning."""
        return (self._listen(), self._listen())

    def read_all(self) -> Plan:
        return one_by_one([ReadSet(TOLD["system"]), Read(REGISTER)])

    def _listen(self) -> Plan:
        read = Read(REGISTER)
        rng = self._draw.random
        channels = rng.sample(CHANNELS, rng.randint(1, len(CHANNELS)))
        owner = self._draw.values.process()

        async def body(session: Session) -> tuple[Operation, ...]:
            server = session.server
            listener = Listener(session.world, server, session.memory, owner, channels)
            self._listeners.append(listener)
            server.process.start(listener.run(self._keys))
            return (await perform(session, read),)

        return Plan((read,), body)

    def _tell(self, operations: tuple[Operation, ...], value: int) -> Plan:
        rng = self._draw.random
        channels = tuple(rng.sample(CHANNELS, rng.choice((1, 1, 2, 3))))
        undone = self._draw.values.next()
        again, regrets = rng.random() < 0.3, rng.random() < 0.4
        self._sayings[value] = saying = Saying(channels=channels)
        self._undone.add(undone)
        last = operations[-1]
        if isinstance(last, Add) and timeline_of(last.key).name == "system":
            self._keys[value] = last.key

        async def body(session: Session) -> tuple[Operation, ...]:
            saying.epoch, saying.sender = epoch_of(session.server), session.owner
            told: list[Operation] = []
            for operation in operations:
                told.append(await perform(session, operation))
                await session.think()
            for channel in channels:
                session.notify(channel, value)
                if regrets:
                    session.notify_and_regret(channel, undone)
                if again:
                    session.notify(channel, value)
            return tuple(told)

        line = timeline_of(last.key).name
        return Plan(operations, body, timeline=line, refusals=(FULL,))

    def judge(self, history: History) -> Sequence[Finding]:
        return [*_Judge(history, self._sayings, self._undone, self._listeners).findings()]


@dataclass(slots=True)
class _Judge:
    """J1 to J4."""

    history: History
    sayings: Mapping[int, Saying]
    undone: set[int]
    listeners: Sequence[Listener]
    fates: dict[int, Transaction] = field(default_factory=dict[int, Transaction])

    def findings(self) -> Iterator[Finding]:
        for transaction in self.history.transactions():
            for value in _values(transaction):
                self.fates[value] = transaction
        for listener in self.listeners:
            yield from self._missing(listener)
            yield from self._unwanted(listener)
            yield from self._disorder(listener)
        for one, other in combinations(self.listeners, 2):
            yield from self._disagreement(one, other)

    def _began(self, transaction: Transaction) -> int:
        return self.history.events[transaction.began].at

    def _ended(self, transaction: Transaction) -> int | None:
        return None if transaction.ended is None else self.history.events[transaction.ended].at

    def _missing(self, listener: Listener) -> Iterator[Finding]:
        """J1, J4."""
        heard = [(each.channel, each.value) for each in listener.heard]
        for value, saying in self.sayings.items():
            transaction = self.fates.get(value)
            if transaction is None or not transaction.is_ok or listener.listens_at is None:
                continue
            ended = self._ended(transaction)
            if ended is None or self._began(transaction) <= listener.listens_at:
                continue
            if saying.epoch < listener.epoch:
                why = f"epoch {saying.epoch} has said {value}: {listener.epoch} had begun"
                yield Finding("deposed", why, (transaction,))
            if saying.epoch != listener.epoch or ended >= listener.drained_at:
                continue
            for channel in set(saying.channels) & set(listener.channels):
                # What was not taken when UNLISTEN came is never taken.
                kept = channel not in listener.dropping
                if kept and heard.count((channel, value)) != 1:
                    count = heard.count((channel, value))
                    why = f"{value} on {channel} was heard {count} times"
                    yield Finding("missing" if count == 0 else "twice", why, (transaction,))

    def _unwanted(self, listener: Listener) -> Iterator[Finding]:
        """J3; and once each, also of unknown outcome."""
        for each in listener.heard:
            transaction = self.fates.get(each.value)
            shown = () if transaction is None else (transaction,)
            why = self._complaint(listener, each, transaction)
            if listener.heard.count(each) > 1:
                why = "it was heard twice"
            if why is not None:
                yield Finding("heard", f"{each.value} on {each.channel}: {why}", shown)

    def _complaint(
        self, listener: Listener, each: Heard, transaction: Transaction | None
    ) -> str | None:
        if each.value in self.undone:
            return "it was undone"
        if transaction is None or transaction.status is Kind.FAIL:
            return "it has not happened"
        saying = self.sayings[each.value]
        if each.channel not in saying.channels or each.sender != saying.sender:
            return f"it was {saying}"
        ended, dropped = self._ended(transaction), listener.dropped.get(each.channel)
        if ended is not None and ended < listener.asked_at:
            return "it was over before LISTEN"
        if dropped is not None and self._began(transaction) > dropped:
            return "it has begun after UNLISTEN"
        return "it was lost" if self._is_lost(each.value, transaction) else None

    def _is_lost(self, value: int, transaction: Transaction) -> bool:
        """Whether the last reader, who came after everything, has not found its row."""
        reads = [t for t in self.history.transactions() if t.is_ok and _read_set(t) is not None]
        last = max(reads, key=lambda t: t.began, default=None)
        told = any(
            isinstance(op, Add) and op.key == TOLD["system"] for op in transaction.operations
        )
        if last is None or not told or transaction.began > last.began:
            return False
        return value not in (_read_set(last) or ())

    def _disorder(self, listener: Listener) -> Iterator[Finding]:
        """J2, of one listener."""
        for one, other in combinations(listener.heard, 2):
            first, second = self.fates.get(one.value), self.fates.get(other.value)
            if first is None or second is None:
                continue
            if one.value == other.value:
                order = self.sayings[one.value].channels
                wrong = order.index(one.channel) > order.index(other.channel)
            else:
                wrong = second.ended_before(first) or _later(first, second)
            if wrong:
                why = f"{one.value} on {one.channel} before {other.value} on {other.channel}"
                yield Finding("order", why, (first, second))

    def _disagreement(self, one: Listener, other: Listener) -> Iterator[Finding]:
        """J2, of two."""
        if one.epoch != other.epoch:
            return
        theirs = {(each.channel, each.value) for each in other.heard}
        ours = [p for each in one.heard if (p := (each.channel, each.value)) in theirs]
        shared = set(ours)
        if [p for each in other.heard if (p := (each.channel, each.value)) in shared] != ours:
            yield Finding("order", f"two listeners of epoch {one.epoch} disagree about {ours}")


def _values(transaction: Transaction) -> Iterator[int]:
    """What the transaction says, if it says something."""
    for operation in transaction.operations:
        if isinstance(operation, Add):
            yield operation.value
        elif table_of(operation.key) == SAID:
            yield number_of(operation.key)


def _read_set(transaction: Transaction) -> Sequence[int] | None:
    found = [op for op in transaction.operations if isinstance(op, ReadSet)]
    return found[0].values if found and found[0].key == TOLD["system"] else None


def _later(first: Transaction, second: Transaction) -> bool:
    """Whether the first one has a later timestamp of the same timeline."""
    lines = {timeline_of(t.operations[-1].key).name for t in (first, second)}
    durable = first.writes and second.writes and len(lines) == 1
    if not durable or first.ts is None or second.ts is None:
        return False
    return first.ts > second.ts
