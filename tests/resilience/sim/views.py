"""A materialized view that follows its inputs: exact or behind, whatever happens to its servers.

    write     replace registers, add to sets: the inputs, which the view shows row by row
    through   read keys through the view, and write others by what was read
    catch up  compute the view anew, and attach it; or write it, and have a unit attach it
    compare   stored rows beside those of the inputs, also AS OF
    follow    a client subscribes to the view, or goes on where it has stopped

INVARIANTS
  L1  where the catalog calls the view exact, its stored rows are those of the inputs (V1, V2).
  L2  who reads through the view is told what the inputs say, also at its commit (V7): to the judges
      it has read the inputs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from coordinator.core.messages.catalog_changes import PutTable
from coordinator.core.messages.identities import Isolation
from sql.catalog.catalog import Table
from sql.catalog.objects import StoredQuery
from tests.resilience.history.events import Key, Operation, Read, Write
from tests.resilience.sim.collections_and_registers import READS, WRITES
from tests.resilience.sim.follower import Follower
from tests.resilience.sim.key_changes import insert_or_count_up
from tests.resilience.sim.rows import COLUMNS, number_of, table_of
from tests.resilience.sim.session import Session
from tests.resilience.sim.workload import Draw, Plan, Usual, one_by_one, perform, told_of

VIEWS: Mapping[str, Sequence[str]] = {"v0": ("r0", "s0", "h0"), "v1": ("s1",)}
"""By view, its inputs: two lanes."""
BESIDE = "r1"
"""A table of no view: nobody who writes to it waits for a lane."""
BESIDE_KEY: Key = "r1_7"
KEYS: Sequence[Key] = ("r0_1", "r0_2", "s0_3", "s0_4", "h0_6", "s1_5", BESIDE_KEY)
SHORT: Key = "h0_6"
"""A register that is changed by key, too."""
FOLLOWERS_MAX = 3
NAMES = tuple(column.name for column in COLUMNS)


class Views(Usual):
    """See the module."""

    tables = (*[name for inputs in VIEWS.values() for name in inputs], BESIDE)
    upkeep = 0.3

    def __init__(self, draw: Draw) -> None:
        super().__init__(draw)
        self._level = draw.random.choice((Isolation.STRICT_SERIALIZABLE, Isolation.SERIALIZABLE))
        self._followers: list[Follower] = []

    def crowd(self) -> tuple[int, int]:
        """Now and then many clients, so that units are large."""
        return self._draw.random.choice(((4, 10), (12, 8), (24, 5)))

    def plan(self) -> Plan:
        rng = self._draw.random
        match rng.randrange(15):
            case 0:
                return self.read_all()
            case 14:
                return self._follow()
            case 12 | 13:
                return self._upsert()
            case 1 | 2 | 3:
                return self._catch_up()
            case 4:
                return self._compare()
            case 5 | 6 | 7 | 8:
                return self._through()
            case _:
                keys = rng.choice((KEYS, (BESIDE_KEY,)))
                return one_by_one([self._write(keys) for _ in range(rng.choice((1, 1, 2)))])

    def first(self) -> Sequence[Plan]:
        """The view, over inputs without rows."""
        return (self._make(), *map(self._catch_up, VIEWS), self._follow())

    def read_all(self) -> Plan:
        return one_by_one([_read(key) for key in KEYS])

    def _write(self, keys: Sequence[Key]) -> Operation:
        key = self._draw.random.choice(keys)
        value = self._draw.values.next()
        return Write(key, value) if key == SHORT else WRITES[key[0]](key, value)

    def _upsert(self) -> Plan:
        """By key, if that can be had."""
        write = Write(SHORT, self._draw.values.next())
        made = insert_or_count_up(number_of(SHORT), write.value)

        async def body(session: Session) -> tuple[Operation, ...]:
            if not session.change(SHORT, made):
                return (await perform(session, write),)
            session.promised_rows = 1
            return (write,)

        return Plan((write,), body, alone=self._draw.random.random() < 0.7)

    def _make(self) -> Plan:
        async def body(session: Session) -> tuple[Operation, ...]:
            for name, inputs in VIEWS.items():
                view = await session.new_table(name)
                query = _query([session.table(one) for one in inputs])
                await session.define(PutTable(replace(view, query=query)))
            return ()

        return Plan((), body)

    def _catch_up(self, name: str | None = None) -> Plan:
        """It shows nothing to the judges: it writes, but no key, and to them would be a reader, who
        comes behind all writers of its timestamp.
        """
        view = name or self._draw.random.choice([*VIEWS])

        async def body(session: Session) -> tuple[Operation, ...]:
            await session.attach(view, VIEWS[view], _keys_of(view))
            return ()

        level = self._draw.random.choice((Isolation.STRICT_SERIALIZABLE, Isolation.REPEATABLE_READ))
        return Plan((), body, level)

    def _compare(self) -> Plan:
        """What is only read at a weaker level may lag behind real time, at who was deposed say: the
        judges, to whom all is strict, are not told.
        """
        view = self._draw.random.choice([*VIEWS])
        keys = _keys_of(view)
        is_strict = self._level is Isolation.STRICT_SERIALIZABLE
        asked = tuple(map(_read, keys)) if is_strict else ()

        async def body(session: Session) -> tuple[Operation, ...]:
            shown = await session.through_view(view, *keys)
            await session.compare_past(view, keys)
            return tuple(told_of(session, *pair) for pair in zip(asked, shown, strict=is_strict))

        return Plan(asked, body, self._level, refusals=("72000",))

    def _follow(self) -> Plan:
        """At one key of the view, or at all; it tells the judges of itself."""
        rng = self._draw.random
        view, owner = rng.choice([*VIEWS]), self._draw.values.process()
        keys = _keys_of(view)
        only = rng.choice((None, None, *map(number_of, keys)))

        async def body(session: Session) -> tuple[Operation, ...]:
            free = [follower for follower in self._followers if follower.is_free]
            if len(self._followers) < FOLLOWERS_MAX and (not free or rng.random() < 0.3):
                free = [Follower(session.world, session.memory, view, keys, only)]
                self._followers += free
            if free:
                rng.choice(free).start(session.server, owner)
            return ()

        return Plan((), body)

    def _through(self) -> Plan:
        rng = self._draw.random
        view = rng.choice(("v0", "v0", "v1"))
        known = _keys_of(view)
        keys = rng.sample(known, min(rng.randint(1, 3), len(known)))
        write = self._write([key for key in KEYS if key not in keys])
        if rng.random() < 0.5:
            # Two who do so crosswise must not both commit on what they have read.
            one, other = rng.sample(("r0_1", "r0_2"), 2)
            view, keys, write = "v0", [one], self._write([other])
        asked = [_read(key) for key in keys]

        async def body(session: Session) -> tuple[Operation, ...]:
            shown = await session.through_view(view, *keys)
            told = [told_of(session, *pair) for pair in zip(asked, shown, strict=True)]
            await session.think()
            return (*told, await perform(session, write))

        return Plan((*asked, write), body, self._level)


def _read(key: Key) -> Operation:
    return Read(key) if key == SHORT else READS[key[0]](key)


def _keys_of(view: str) -> Sequence[Key]:
    return [key for key in KEYS if table_of(key) in VIEWS[view]]


def _query(inputs: Sequence[Table]) -> StoredQuery:
    text = " UNION ALL ".join(f'SELECT key, "position", value FROM {t.name}' for t in inputs)
    numbers = tuple(range(1, len(NAMES) + 1))
    relations = tuple(("", table.name, table.oid, NAMES, numbers) for table in inputs)
    uses = tuple((table.oid, number) for table in inputs for number in numbers)
    return StoredQuery(text, relations, uses, on_commit=True)
