"""SKIP LOCKED by the short way, in blocks and as whole transactions: what sessions of a run do."""

from collections.abc import Callable
from typing import cast

from coordinator.core.locking.modes import LockMode
from storage.types import Source
from tests.resilience.sim.key_changes import JobTaker, KeyChange, look_at
from tests.resilience.sim.rows import COLUMNS, Content, Row
from tests.resilience.sim.session import Session

IsWanted = Callable[[Row], bool]


async def take_shortly(
    session: Session, name: str, wanted: IsWanted, count: int
) -> list[Row] | None:
    """SELECT .. FOR UPDATE SKIP LOCKED LIMIT in one step of the core; None: not to be had.

    To be called in a statement.
    """
    table = session.table(name)
    if not table.keys or table.columns != COLUMNS or not session.world.is_keyed:
        return None
    change = session._key_change(table, look_at(0))
    taker = _taker(change, wanted, count, locks=True)
    done = session._driver.change_in_block(session._txn, taker)
    if done.affected is None:
        return None
    await session._driver.confirm_locks(session._txn)
    session._expect_rows(taker, done.returned)
    session._used.add(name)
    session._steps += 1
    session.world.tally.taken_inside += 1
    rows: list[Row] = []
    for (_, number, position, value), (base, _) in zip(done.returned, taker.touched, strict=True):
        rows.append(Row(cast("int", position), cast("int", value), cast("int", number), *base))
    return rows


def take_and_mark(
    session: Session, name: str, wanted: IsWanted, mark: tuple[int, int]
) -> JobTaker | None:
    """UPDATE of the first free row as the whole transaction, which gives it a position and a value;
    None: the general way has to be taken.
    """
    if not session.change(f"{name}_0", look_at(0)):
        return None
    assert session._change is not None, "it has just been made"
    session._change = taker = _taker(session._change, wanted, 1, mark=mark)
    session.world.tally.taken_alone += 1
    return taker


def _taker(
    change: KeyChange,
    wanted: IsWanted,
    limit: int,
    *,
    locks: bool = False,
    mark: tuple[int, int] | None = None,
) -> JobTaker:
    def is_wanted(content: object) -> bool:
        number, position, value = cast("Content", content)
        return wanted(Row(position, value, number, Source("@0"), 0))

    return JobTaker(
        change.table,
        change.names,
        change.index,
        change.random,
        change.make,
        locks=LockMode.ROW_UPDATE if locks else None,
        wanted=is_wanted,
        limit=limit,
        becomes=None if mark is None else lambda content: (content[0], *mark),
    )
