"""A history of a few tables, with a checkpoint behind each transaction, to be followed later."""

import random
from dataclasses import dataclass, field

import psycopg
from psycopg.rows import TupleRow

from coordinator.core.settings import CoreSettings

OFTEN_CUT = CoreSettings(cut_age_us=20_000, subscribe_progress_us=50_000)

SETUP = """
drop table if exists k, t, u cascade;
create table k (id int primary key, part text, v float8);
create table t (a int, b int);
create table u (a int, c int);
create view joined as select t.b, u.c, k.v from t left join u using (a) left join k on id = t.a;
create view both_tables as select a, b from t where a > 2 union all select c, a + 1 from u;
"""


@dataclass(slots=True)
class History:
    """Timestamps between which each transaction has committed, and those of definitions."""

    begin: int = 0
    checkpoints: list[int] = field(default_factory=list[int])

    @property
    def end(self) -> int:
        """Behind all of it."""
        return self.checkpoints[-1] + 1


def now(connection: psycopg.Connection[TupleRow]) -> int:
    """The timestamp of a strict read."""
    found = connection.execute("select meridian_now()").fetchone()
    assert found is not None
    return int(found[0])


def make_history(
    connection: psycopg.Connection[TupleRow],
    seed: int,
    transactions: int = 60,
    *,
    compacts: bool = True,
) -> History:
    """Make one, with cuts and compactions between."""
    connection.execute(SETUP.encode())
    return go_on(connection, seed, transactions, compacts=compacts)


def go_on(
    connection: psycopg.Connection[TupleRow], seed: int, transactions: int, *, compacts: bool = True
) -> History:
    """The same over the tables as they are."""
    choices = random.Random(seed)
    history = History(now(connection))
    for number in range(transactions):
        with connection.transaction():
            for _ in range(choices.randint(1, 4)):
                _write(connection, choices)
        if compacts and number % 20 == 19:
            connection.execute("optimize t")
            connection.execute("optimize k")
        history.checkpoints.append(now(connection))
    return history


def _write(connection: psycopg.Connection[TupleRow], choices: random.Random) -> None:
    key, value = choices.randrange(8), choices.choice([None, 0.0, -0.0, 1.5, float("nan")])
    part, number = choices.choice(["x", "y", "z", None]), choices.randrange(5)
    match choices.randrange(12):
        case 0 | 1 | 2:
            connection.execute(
                "insert into k values (%s, %s, %s) on conflict do nothing", (key, part, value)
            )
        case 3:
            moved = choices.choice([10, -10])
            connection.execute(
                "update k set id = id + %s where id = %s"
                " and not exists (select from k o where o.id = k.id + %s)",
                (moved, key + choices.choice([0, 10]), moved),
            )
        case 4:
            connection.execute("update k set v = -v where id = %s", (key,))
        case 5:
            connection.execute("update k set part = %s where v = %s", (part, value))
        case 6:
            connection.execute("delete from k where id = %s", (key,))
        case 7:
            connection.execute("insert into t values (%s, %s), (%s, %s)", (key, number) * 2)
        case 8:
            connection.execute("insert into u select a, b from t where a = %s limit 2", (key,))
        case 9:
            connection.execute("update t set b = b, a = a + 1 where a = %s", (key,))
        case 10:
            connection.execute("delete from u where c = %s", (number,))
        case _:
            connection.execute("update u set c = a, a = c where a > %s", (key,))
