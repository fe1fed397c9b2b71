"""A reader of the past: AS OF t answers the same whenever it is asked.

    read_ts ─▶ t ─▶ every table AS OF t ─▶ remembered ── later, after faults ─▶ the same

INVARIANTS
  A1  two answers for one table and one timestamp are equal; below `since` it is 72000, for good.
  A2  the timestamp is the present one, just before the first answer: the hardest one to keep.
"""

import random
from collections.abc import Sequence
from typing import TypeAlias

import asyncpg

from tests.resilience.faults.clients import Account, Client
from tests.resilience.history.events import Finding

PRESENT = "SELECT read_ts FROM meridian.timelines WHERE name = 'system'"
BELOW_SINCE = "72000"

Answer: TypeAlias = Sequence[tuple[object, ...]]


class Historian:
    """What was seen, and when it was true."""

    def __init__(self, account: Account, tables: Sequence[str]) -> None:
        self._account = account
        self._tables = tables
        self._seen: dict[tuple[int, str], Answer] = {}
        self.compared = 0

    async def step(self, client: Client, rng: random.Random) -> None:
        """Remember something new, or ask for something old. Raises Lost."""
        if not self._seen or rng.random() < 0.3:
            [[ts]] = await client.fetch(PRESENT)
            for table in self._tables:
                await self._ask(client, ts, table)
        else:
            await self._ask(client, *rng.choice(sorted(self._seen)))

    async def ask_everything(self, client: Client) -> None:
        """Ask again for all that was seen."""
        for ts, table in sorted(self._seen):
            await self._ask(client, ts, table)

    async def _ask(self, client: Client, ts: int, table: str) -> None:
        try:
            rows = await client.fetch(f"SELECT * FROM {table} AS OF {ts}")
        except asyncpg.PostgresError as error:
            self._account.states[f"{error.sqlstate} AS OF"] += 1
            return
        answer = sorted((tuple(row) for row in rows), key=repr)
        before = self._seen.setdefault((ts, table), answer)
        self.compared += before is not answer
        if before != answer:
            gone = [row for row in before if row not in answer]
            come = [row for row in answer if row not in before]
            why = f"{table} AS OF {ts}: {gone} gone, {come} come"
            self._account.findings.append(Finding("history-changed", why))
