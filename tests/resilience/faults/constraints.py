"""Unique and foreign keys under load: no snapshot breaks them, whatever level its writers had.

    holders    a slot is held by one row; who takes a slot over moves the row that was there away
    parents    come and go; NO ACTION for children, SET NULL for followers, CASCADE for guests
    home       a parent that stays: children move there from a parent that goes

Every row of holders, children and followers has a value of its own and is never deleted: they are
grow-only sets for the judge of the history. What keys promise is judged in every answer.
"""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import asyncpg

from tests.resilience.faults.clients import Account, Body, Client
from tests.resilience.faults.workloads import READ_ONLY
from tests.resilience.history.black_box import check_real_time_set
from tests.resilience.history.events import Add, Finding, Operation, ReadSet

SLOTS: Final = 8
PARENTS: Final = 5
HOME: Final = 0
LEVELS: Final = ("SERIALIZABLE", "REPEATABLE READ", "READ COMMITTED")
SETS: Final = ("holders", "children", "followers")

DEFINITIONS: Final = (
    "CREATE TABLE holders (slot bigint PRIMARY KEY, value bigint UNIQUE)",
    "CREATE TABLE parents (id bigint PRIMARY KEY)",
    "CREATE TABLE children (parent bigint NOT NULL REFERENCES parents, value bigint)",
    "CREATE TABLE followers (parent bigint REFERENCES parents ON DELETE SET NULL, value bigint)",
    "CREATE TABLE guests (parent bigint REFERENCES parents ON DELETE CASCADE)",
    f"INSERT INTO parents SELECT generate_series({HOME}, {PARENTS})",
)

# Without it children would soon hold every parent, and nothing of parents and guests would change.
MOVE_HOME: Final = f"UPDATE children SET parent = {HOME} WHERE parent = $1"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The tables as one transaction saw them."""

    slots: Sequence[int]
    parents: Sequence[int]
    references: Sequence[tuple[str, int]]
    """Which table refers to which parent."""

    def problems(self) -> list[str]:
        """What no snapshot may hold."""
        found = [f"slot {slot} {n} times" for slot, n in Counter(self.slots).items() if n > 1]
        found += [f"parent {of} {n} times" for of, n in Counter(self.parents).items() if n > 1]
        orphans = sorted({pair for pair in self.references if pair[1] not in self.parents})
        return found + [f"{table} has an orphan of {parent}" for table, parent in orphans]


class Constraints:
    """See the module."""

    tables = ("holders", "parents", "children", "followers", "guests")

    async def create(self, client: Client) -> None:
        """See Workload."""
        for definition in DEFINITIONS:
            await client.fetch(definition)

    async def step(self, client: Client, rng: random.Random) -> None:
        """See Workload."""
        roll = rng.random()
        if roll < 0.1:
            await self.read_all(client)
        elif roll < 0.4:
            await self._hold(client, rng)
        elif roll < 0.8:
            await self._refer(client, rng)
        else:
            await self._change_parents(client, rng)

    async def _hold(self, client: Client, rng: random.Random) -> None:
        """Take a slot: at once, or from whoever has it."""
        slot, add = rng.randrange(SLOTS), Add("holders", client.account.value())
        takes_over = rng.random() < 0.7

        async def body(connection: asyncpg.Connection) -> list[Operation]:
            if takes_over:
                move = "UPDATE holders SET slot = -value WHERE slot = $1"
                await connection.execute(move, slot)
            await connection.execute("INSERT INTO holders VALUES ($1, $2)", slot, add.value)
            return [add]

        await _in_either_way(client, rng, [add], body, alone=not takes_over)

    async def _refer(self, client: Client, rng: random.Random) -> None:
        table, parent = rng.choice(("children", "followers")), rng.randint(1, PARENTS)
        add = Add(table, client.account.value())

        async def body(connection: asyncpg.Connection) -> list[Operation]:
            await connection.execute(f"INSERT INTO {table} VALUES ($1, $2)", parent, add.value)
            return [add]

        await _in_either_way(client, rng, [add], body, alone=rng.random() < 0.5)

    async def _change_parents(self, client: Client, rng: random.Random) -> None:
        """A parent comes, with a guest; or one goes, which children forbid until they moved."""
        parent, kind = rng.randint(1, PARENTS), rng.randrange(3)

        async def body(connection: asyncpg.Connection) -> list[Operation]:
            if kind:
                if kind == 2:
                    await connection.execute(MOVE_HOME, parent)
                await connection.execute("DELETE FROM parents WHERE id = $1", parent)
            else:
                await connection.execute("INSERT INTO parents VALUES ($1)", parent)
                await connection.execute("INSERT INTO guests VALUES ($1)", parent)
            return []

        await _in_either_way(client, rng, [], body, alone=kind == 1)

    async def read_all(self, client: Client) -> bool:
        """See Workload."""
        seen: list[Snapshot] = []

        async def body(connection: asyncpg.Connection) -> list[Operation]:
            rows = {t: await connection.fetch(f"SELECT * FROM {t}") for t in self.tables}
            references = [
                (table, row["parent"])
                for table in ("children", "followers", "guests")
                for row in rows[table]
                if row["parent"] is not None
            ]
            slots = [row["slot"] for row in rows["holders"]]
            seen.append(Snapshot(slots, [row["id"] for row in rows["parents"]], references))
            return [ReadSet(t, tuple(row["value"] for row in rows[t])) for t in SETS]

        answered = await client.transact([ReadSet(t) for t in SETS], body, begin=READ_ONLY)
        if answered:
            for problem in seen[-1].problems():
                client.account.findings.append(Finding("constraint", problem))
        return answered

    def judge(self, account: Account) -> list[Finding]:
        """See Workload."""
        return check_real_time_set(account.history())


async def _in_either_way(
    client: Client, rng: random.Random, asked: Sequence[Operation], body: Body, *, alone: bool
) -> None:
    """A single statement, or a block of any level."""
    if alone:
        await client.single(asked, body)
    else:
        await client.transact(asked, body, begin=f"BEGIN ISOLATION LEVEL {rng.choice(LEVELS)}")
