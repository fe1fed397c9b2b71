"""Workloads over the wire, each with the judges that understand it.

| workload | what is asked | what would show |
| --- | --- | --- |
| Lists | append behind what was read, or at max + 1; read all | lost update, order |
| Sets | blind inserts into one table or two; read all | lost or half commits, staleness |
| Registers | overwrite; read two and write one; read all | write skew, lost update |
| Bank | move money between accounts, with a ledger | read skew, half commits |
| ViewedBank | the same, and all balances are read through views | a view that is not its query |
| Claims | insert if neither of two tables has the slot | phantoms |
| Counters | `SET value = value + 1 RETURNING value` | lost or doubled increments |

INVARIANTS
  W1  every value is written once in a run; every write is part of the invocation.
  W2  nothing is tried again by the client: a transaction has one outcome.
"""

import random
from collections.abc import Sequence
from typing import Protocol

import asyncpg

from tests.resilience.faults.clients import Account, Client
from tests.resilience.history.black_box import check_list_append, check_real_time_set
from tests.resilience.history.events import (
    Add,
    Append,
    Finding,
    History,
    Operation,
    Read,
    ReadList,
    ReadSet,
    Transaction,
    Write,
)
from tests.resilience.history.registers import check_registers

READ_ONLY = "BEGIN READ ONLY"


class Workload(Protocol):
    """See the module."""

    tables: Sequence[str]

    async def create(self, client: Client) -> None:
        """Make the tables, with what stands in them at the beginning."""
        ...

    async def step(self, client: Client, rng: random.Random) -> None:
        """One transaction. Raises Lost."""
        ...

    async def read_all(self, client: Client) -> bool:
        """Read everything in one transaction; whether it was answered."""
        ...

    def judge(self, account: Account) -> list[Finding]:
        """What is wrong with the history; findings of the account itself come on top."""
        ...


class Lists:
    """Lists whose elements are rows."""

    tables = ("lists",)

    def __init__(self, keys: int = 3) -> None:
        self._keys = [f"l{number}" for number in range(keys)]

    async def create(self, client: Client) -> None:
        """See Workload."""
        await client.fetch("CREATE TABLE lists (name text, position bigint, value bigint)")

    async def step(self, client: Client, rng: random.Random) -> None:
        """See Workload."""
        roll = rng.random()
        if roll < 0.4:
            await self._read_and_append(client, rng.sample(self._keys, rng.choice((1, 2))))
        elif roll < 0.7:
            await self._append(client, rng.choice(self._keys))
        else:
            await self.read_all(client)

    async def _read_and_append(self, client: Client, keys: Sequence[str]) -> None:
        asked = [
            operation
            for key in keys
            for operation in (ReadList(key), Append(key, client.account.value()))
        ]

        async def body(connection: asyncpg.Connection) -> list[Operation]:
            told: list[Operation] = []
            for operation in asked:
                if isinstance(operation, Append):
                    read = told[-1]
                    assert isinstance(read, ReadList)
                    position = len(read.values or ()) + 1
                    row = (operation.key, position, operation.value)
                    await connection.execute("INSERT INTO lists VALUES ($1, $2, $3)", *row)
                    told.append(operation)
                else:
                    told.append(await _read_list(connection, operation.key))
            return told

        await client.transact(asked, body)

    async def _append(self, client: Client, key: str) -> None:
        asked = Append(key, client.account.value())

        async def body(connection: asyncpg.Connection) -> list[Operation]:
            await connection.execute(
                "INSERT INTO lists SELECT $1::text, coalesce(max(position), 0) + 1, $2::bigint"
                " FROM lists WHERE name = $1::text",
                key,
                asked.value,
            )
            return [asked]

        await client.single([asked], body)

    async def read_all(self, client: Client) -> bool:
        """See Workload."""

        async def body(connection: asyncpg.Connection) -> list[Operation]:
            return [await _read_list(connection, key) for key in self._keys]

        return await client.transact([ReadList(k) for k in self._keys], body, begin=READ_ONLY)

    def judge(self, account: Account) -> list[Finding]:
        """See Workload."""
        return check_list_append(account.history())


async def _read_list(connection: asyncpg.Connection, key: str) -> ReadList:
    rows = await connection.fetch(
        "SELECT value FROM lists WHERE name = $1 ORDER BY position, value", key
    )
    return ReadList(key, tuple(row[0] for row in rows))


class Sets:
    """Grow-only sets, a table each."""

    tables = ("s0", "s1", "s2")

    async def create(self, client: Client) -> None:
        """See Workload."""
        for table in self.tables:
            await client.fetch(f"CREATE TABLE {table} (value bigint NOT NULL)")

    async def step(self, client: Client, rng: random.Random) -> None:
        """See Workload."""
        roll = rng.random()
        if roll < 0.4:
            await self._add(client, rng.choice(self.tables))
        elif roll < 0.7:
            await self._add_to_two(client, rng.sample(self.tables, 2))
        else:
            await self.read_all(client)

    async def _add(self, client: Client, table: str) -> None:
        asked = Add(table, client.account.value())

        async def body(connection: asyncpg.Connection) -> list[Operation]:
            await connection.execute(f"INSERT INTO {table} VALUES ({asked.value})")
            return [asked]

        await client.single([asked], body)

    async def _add_to_two(self, client: Client, tables: Sequence[str]) -> None:
        asked = [Add(table, client.account.value()) for table in tables]

        async def body(connection: asyncpg.Connection) -> list[Operation]:
            for add in asked:
                await connection.execute(f"INSERT INTO {add.key} VALUES ($1)", add.value)
            return list(asked)

        await client.transact(asked, body)

    async def read_all(self, client: Client) -> bool:
        """See Workload."""

        async def body(connection: asyncpg.Connection) -> list[Operation]:
            return [
                ReadSet(t, await _column(connection, f"SELECT value FROM {t}")) for t in self.tables
            ]

        return await client.transact([ReadSet(t) for t in self.tables], body, begin=READ_ONLY)

    def judge(self, account: Account) -> list[Finding]:
        """See Workload."""
        return check_real_time_set(account.history())


class Registers:
    """Rows that are overwritten."""

    tables = ("registers",)

    def __init__(self, keys: int = 4) -> None:
        self._keys = [f"r{number}" for number in range(keys)]

    async def create(self, client: Client) -> None:
        """See Workload."""
        await client.fetch("CREATE TABLE registers (name text, value bigint)")
        rows = ", ".join(f"('{key}')" for key in self._keys)
        await client.fetch(f"INSERT INTO registers (name) VALUES {rows}")

    async def step(self, client: Client, rng: random.Random) -> None:
        """See Workload."""
        roll = rng.random()
        keys = rng.sample(self._keys, 2)
        if roll < 0.3:
            asked = Write(keys[0], client.account.value())
            await client.single([asked], lambda connection: _write(connection, [asked]))
        elif roll < 0.7:
            # Write skew, if the other one also writes what this one reads.
            written = Write(keys[rng.randrange(2)], client.account.value())
            await self._read_and_write(client, keys, [written])
        else:
            await self.read_all(client)

    async def _read_and_write(
        self, client: Client, keys: Sequence[str], writes: Sequence[Write]
    ) -> None:
        async def body(connection: asyncpg.Connection) -> list[Operation]:
            reads = [await _read(connection, key) for key in keys]
            return [*reads, *await _write(connection, writes)]

        await client.transact([*(Read(key) for key in keys), *writes], body)

    async def read_all(self, client: Client) -> bool:
        """See Workload."""

        async def body(connection: asyncpg.Connection) -> list[Operation]:
            return [await _read(connection, key) for key in self._keys]

        return await client.transact([Read(k) for k in self._keys], body, begin=READ_ONLY)

    def judge(self, account: Account) -> list[Finding]:
        """See Workload."""
        return check_registers(account.history())


async def _read(connection: asyncpg.Connection, key: str) -> Read:
    [value] = await _column(connection, "SELECT value FROM registers WHERE name = $1", key)
    return Read(key, value)


async def _write(connection: asyncpg.Connection, writes: Sequence[Write]) -> list[Operation]:
    for write in writes:
        sql = "UPDATE registers SET value = $2 WHERE name = $1"
        tag = await connection.execute(sql, write.key, write.value)
        assert tag == "UPDATE 1", f"{write.key} has been lost: {tag}"
    return list(writes)


async def _column(connection: asyncpg.Connection, sql: str, *arguments: object) -> tuple[int, ...]:
    return tuple(row[0] for row in await connection.fetch(sql, *arguments))


class Bank:
    """Accounts in one table and every transfer in another: the one explains the other."""

    tables: Sequence[str] = ("accounts", "ledger")
    shown = "accounts"
    """What balances are read from."""

    def __init__(self, accounts: int = 5, balance: int = 100) -> None:
        self._accounts = range(accounts)
        self._balance = balance

    async def create(self, client: Client) -> None:
        """See Workload."""
        await client.fetch("CREATE TABLE accounts (id bigint, balance bigint)")
        await client.fetch(
            "CREATE TABLE ledger (id bigint, debit bigint, credit bigint, amount bigint)"
        )
        rows = ", ".join(f"({number}, {self._balance})" for number in self._accounts)
        await client.fetch(f"INSERT INTO accounts VALUES {rows}")

    async def step(self, client: Client, rng: random.Random) -> None:
        """See Workload."""
        if rng.random() < 0.3:
            await self.read_all(client)
            return
        debit, credit = rng.sample(self._accounts, 2)
        entry = (client.account.value(), debit, credit, rng.randint(1, 9))

        async def body(connection: asyncpg.Connection) -> list[Operation]:
            for account, change in ((debit, -entry[3]), (credit, entry[3])):
                sql = f"SELECT balance FROM {self.shown} WHERE id = $1"
                [balance] = await _column(connection, sql, account)
                sql = "UPDATE accounts SET balance = $2 WHERE id = $1"
                await connection.execute(sql, account, balance + change)
            await connection.execute("INSERT INTO ledger VALUES ($1, $2, $3, $4)", *entry)
            return [Add("ledger", entry[0])]

        await client.transact([Add("ledger", entry[0])], body)

    async def read_all(self, client: Client) -> bool:
        """See Workload."""
        rows: list[asyncpg.Record] = []
        balances: dict[int, int] = {}
        totals: list[int] = []

        async def body(connection: asyncpg.Connection) -> list[Operation]:
            balances.update(await connection.fetch(f"SELECT id, balance FROM {self.shown}"))
            totals.extend(await self._totals(connection))
            rows.extend(await connection.fetch("SELECT id, debit, credit, amount FROM ledger"))
            return [ReadSet("ledger", tuple(row[0] for row in rows))]

        if not await client.transact([ReadSet("ledger")], body, begin=READ_ONLY):
            return False
        expected = dict.fromkeys(self._accounts, self._balance)
        for _, debit, credit, amount in rows:
            expected[debit] -= amount
            expected[credit] += amount
        if balances != expected or any(total != sum(expected.values()) for total in totals):
            why = f"accounts {balances}, totals {totals}, by the ledger {expected}"
            client.account.findings.append(Finding("fractured", why))
        return True

    async def _totals(self, _connection: asyncpg.Connection) -> list[int]:
        """Sums of all balances."""
        return []

    def judge(self, account: Account) -> list[Finding]:
        """See Workload."""
        return check_real_time_set(account.history())


class ViewedBank(Bank):
    """A bank whose balances are read through materialized views that follow the accounts."""

    tables = ("accounts", "ledger", "seen", "total", "busiest")
    shown = "seen"

    async def create(self, client: Client) -> None:
        """See Workload."""
        await super().create(client)
        for name, query in (
            ("seen", "SELECT id, balance FROM accounts"),
            ("total", "SELECT sum(balance)::bigint AS total FROM accounts"),
            ("busiest", "SELECT debit, max(amount) AS most FROM ledger GROUP BY debit"),
        ):
            await client.fetch(
                f"CREATE MATERIALIZED VIEW {name} WITH (refresh = 'on commit') AS {query}"
            )

    async def _totals(self, connection: asyncpg.Connection) -> list[int]:
        return await _column(connection, "SELECT total FROM total")


class Claims:
    """Insert if there is none: a slot belongs to one row of two tables."""

    tables = ("left_claims", "right_claims")

    def __init__(self) -> None:
        self._slots = 1

    async def create(self, client: Client) -> None:
        """See Workload."""
        for table in self.tables:
            await client.fetch(f"CREATE TABLE {table} (slot bigint, value bigint)")

    async def step(self, client: Client, rng: random.Random) -> None:
        """See Workload."""
        slot = rng.randrange(max(0, self._slots - 3), self._slots + 1)
        self._slots = max(self._slots, slot + 1)
        table = rng.choice(self.tables)
        add = Add(f"{table}_{slot}", client.account.value())
        reads = [ReadSet(f"{name}_{slot}") for name in rng.sample(self.tables, 2)]

        async def body(connection: asyncpg.Connection) -> list[Operation]:
            told: list[Operation] = []
            for read in reads:
                name = read.key.rpartition("_")[0]
                sql = f"SELECT value FROM {name} WHERE slot = $1"
                told.append(ReadSet(read.key, await _column(connection, sql, slot)))
            if any(isinstance(read, ReadSet) and read.values for read in told):
                return told
            sql = f"INSERT INTO {table} VALUES ($1, $2)"
            await connection.execute(sql, slot, add.value)
            return [*told, add]

        await client.transact([*reads, add], body)

    async def read_all(self, client: Client) -> bool:
        """See Workload."""
        keys = [(t, slot) for t in self.tables for slot in range(self._slots)]

        async def body(connection: asyncpg.Connection) -> list[Operation]:
            found: dict[tuple[str, int], list[int]] = {key: [] for key in keys}
            for table in self.tables:
                for slot, value in await connection.fetch(f"SELECT slot, value FROM {table}"):
                    found.setdefault((table, slot), []).append(value)
            return [ReadSet(f"{t}_{slot}", tuple(v)) for (t, slot), v in found.items()]

        asked = [ReadSet(f"{table}_{slot}") for table, slot in keys]
        return await client.transact(asked, body, begin=READ_ONLY)

    def judge(self, account: Account) -> list[Finding]:
        """See Workload."""
        return [*check_real_time_set(account.history()), *check_claims(account.history())]


def check_claims(history: History) -> list[Finding]:
    """No answer holds two claims of one slot."""
    found: list[Finding] = []
    for transaction in history.transactions():
        claims: dict[str, int] = {}
        for operation in transaction.operations if transaction.is_ok else ():
            if isinstance(operation, ReadSet):
                slot = operation.key.rpartition("_")[2]
                claims[slot] = claims.get(slot, 0) + len(operation.values or ())
        twice = [slot for slot, count in claims.items() if count > 1]
        found += [Finding("claimed-twice", f"slot {slot}", (transaction,)) for slot in twice]
    return found


class Counters:
    """Increments in one statement, which also tells the new value."""

    tables = ("counters",)

    async def create(self, client: Client) -> None:
        """See Workload."""
        await client.fetch("CREATE TABLE counters (name text, value bigint)")
        await client.fetch("INSERT INTO counters VALUES ('c', 0)")

    async def step(self, client: Client, rng: random.Random) -> None:
        """See Workload."""
        if rng.random() < 0.3:
            await self.read_all(client)
            return

        async def body(connection: asyncpg.Connection) -> list[Operation]:
            sql = "UPDATE counters SET value = value + 1 WHERE name = 'c' RETURNING value"
            [value] = await _column(connection, sql)
            return [Write("c", value)]

        # The value is not known before; 0 stands for "some increment".
        await client.single([Write("c", 0)], body)

    async def read_all(self, client: Client) -> bool:
        """See Workload."""

        async def body(connection: asyncpg.Connection) -> list[Operation]:
            [value] = await _column(connection, "SELECT value FROM counters WHERE name = 'c'")
            return [Read("c", value)]

        return await client.transact([Read("c")], body, begin=READ_ONLY)

    def judge(self, account: Account) -> list[Finding]:
        """See Workload."""
        return check_counter(account.history())


def check_counter(history: History) -> list[Finding]:
    """Increments are distinct, grow with real time, and are all there in the end."""
    transactions = history.transactions()
    told = [(t, _counted(t)) for t in transactions if t.is_ok]
    found: list[Finding] = []
    writers: dict[int, Transaction] = {}
    for transaction, value in told:
        if transaction.writes and value in writers:
            pair = (writers[value], transaction)
            found.append(Finding("lost-update", f"{value} was told twice", pair))
        if transaction.writes:
            writers[value] = transaction
    for transaction, value in told:
        earlier = [other for other in told if other[0].ended_before(transaction)]
        before, least = max(earlier, key=lambda other: other[1], default=(transaction, 0))
        if value < least + transaction.writes:
            found.append(Finding("went-back", f"{value} after {least}", (before, transaction)))
    greatest = max((value for _, value in told), default=0)
    tried = sum(t.writes for t in transactions if t.status != "fail")
    if not len(writers) <= greatest <= tried:
        found.append(Finding("count", f"{greatest} of {len(writers)} told and {tried} tried"))
    return found


def _counted(transaction: Transaction) -> int:
    [operation] = transaction.operations
    assert isinstance(operation, Read | Write), "the only operations of a counter"
    return operation.value or 0


ALL = (Lists, Sets, Registers, Bank, ViewedBank, Claims, Counters)
