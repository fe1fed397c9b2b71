"""A view changes beside those who write what it shows: definitions that rows are computed by.

    replace   CREATE OR REPLACE VIEW: the next version
    remake    DROP VIEW and CREATE VIEW: another object of that name
    write     INSERT .. SELECT from the view, once or twice, at any level

The text of the view is a number that only grows, and a row's position is the number of the view
that it was made by. No row is committed after somebody has committed a greater number (A6 of
`coordinator/core/validation.py`). Members of one group have one timestamp, and any order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from coordinator.core.messages.catalog_changes import PutObject, RemoveObject
from sql.catalog.catalog import Catalog, definition_of
from sql.catalog.objects import RELATION_SPACE, ViewDefinition
from tests.resilience.history.events import Add, Finding, History, Operation, ReadSet, Transaction
from tests.resilience.sim.levels import LEVELS
from tests.resilience.sim.session import Session
from tests.resilience.sim.workload import Draw, Plan, Usual, told_of

MADE, CHANGED = "s0_1", "s1_1"
VIEW = (RELATION_SPACE, "public", "shown")


class Uses(Usual):
    """See the module."""

    tables = ("s0", "s1")

    def __init__(self, draw: Draw) -> None:
        super().__init__(draw)
        self._numbers: dict[int, int] = {}
        """By the value that was added: the number of the view, used or made."""

    def first(self) -> Sequence[Plan]:
        return (self._change(),)

    def plan(self) -> Plan:
        chance = self._draw.random.random()
        if chance < 0.1:
            return self.read_all()
        return self._change() if chance < 0.35 else self._write()

    def read_all(self) -> Plan:
        asked = (ReadSet(MADE), ReadSet(CHANGED))

        async def body(session: Session) -> tuple[Operation, ...]:
            found = await session.rows(MADE, CHANGED)
            newest = max((row.position for row in found[1]), default=0)
            number = _number(session.snapshot.catalog)
            session.expect(newest == number, "use", f"the view is {number}, said is {newest}")
            return tuple(told_of(session, *pair) for pair in zip(asked, found, strict=True))

        return Plan(asked, body)

    def judge(self, history: History) -> Sequence[Finding]:
        done = [t for t in history.transactions() if t.is_ok and t.ts is not None]
        changes = [*self._told(done, CHANGED)]
        for made, number in self._told(done, MADE):
            for change, newer in changes:
                if newer > number and _ts(change) < _ts(made):
                    why = f"a row was made by view {number}, which was {newer} by then"
                    return [Finding("use", why, (change, made))]
        return ()

    def _told(self, done: Sequence[Transaction], key: str) -> Iterator[tuple[Transaction, int]]:
        for transaction in done:
            for operation in transaction.operations:
                if isinstance(operation, Add) and operation.key == key:
                    yield transaction, self._numbers[operation.value]

    def _change(self) -> Plan:
        add, rng = Add(CHANGED, self._draw.values.next()), self._draw.random

        async def body(session: Session) -> tuple[Operation, ...]:
            catalog = session.snapshot.catalog
            known, number = _view(catalog), _number(catalog) + 1
            self._numbers[add.value] = number
            text = f"select {number} as number"
            if known is not None and rng.random() < 0.7:
                await session.define(
                    PutObject(replace(known, version=known.version + 1, text=text))
                )
            else:
                oid = (await session.new_table("any")).oid
                made = ViewDefinition(oid, "public", "shown", text=text, columns=("number",))
                gone = () if known is None else (RemoveObject(known),)
                await session.define(*gone, PutObject(made))
            await session.think()
            await session.insert(add.key, (number, add.value))
            return (add,)

        return Plan((add,), body)

    def _write(self) -> Plan:
        rng, values = self._draw.random, self._draw.values
        adds = tuple(Add(MADE, values.next()) for _ in range(rng.randint(1, 2)))

        async def body(session: Session) -> tuple[Operation, ...]:
            for count, add in enumerate(adds):
                if count:
                    await session.think()
                    await session.look()
                view = _view(session.snapshot.catalog)
                assert view is not None, "it was made before the run"
                self._numbers[add.value] = number = _number(session.snapshot.catalog)
                session.rest_on(definition_of(view))
                await session.think()
                await session.insert(add.key, (number, add.value))
            return adds

        return Plan(adds, body, rng.choice(LEVELS))


def _view(catalog: Catalog) -> ViewDefinition | None:
    found = catalog.objects.get(VIEW)
    assert found is None or isinstance(found, ViewDefinition), "it was made as one"
    return found


def _number(catalog: Catalog) -> int:
    view = _view(catalog)
    return 0 if view is None else int(view.text.split()[1])


def _ts(transaction: Transaction) -> int:
    assert transaction.ts is not None, "who writes has a timestamp"
    return transaction.ts
