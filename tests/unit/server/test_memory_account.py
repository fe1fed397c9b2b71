"""M1 to M3 of `memory_account.py`."""

import pytest

from coordinator.memory_account import CHECKED_BYTES, MemoryAccount, MemoryOwner, resident_bytes
from sql.errors import SqlError


def test_who_would_pass_the_limit_is_refused_and_keeps_what_it_has() -> None:
    account = MemoryAccount(100)
    one, other = account.holding(MemoryOwner.PORTALS), account.holding(MemoryOwner.ROWS)
    one.set(60)
    other.add(40)
    with pytest.raises(SqlError, match="out of memory") as refused:
        other.add(1)
    assert refused.value.sqlstate == "53200"
    assert (one.nbytes, other.nbytes, account.total) == (60, 40, 100)
    one.set(59)
    other.add(1)
    assert account.held[MemoryOwner.PORTALS] == 59
    assert account.held[MemoryOwner.ROWS] == 41


def test_what_is_there_already_is_counted_without_being_asked_for() -> None:
    account = MemoryAccount(100)
    one = account.holding(MemoryOwner.MESSAGES)
    one.note(500)
    assert account.total == 500
    with pytest.raises(SqlError):
        account.holding(MemoryOwner.ROWS).set(1)
    one.set(20)
    account.holding(MemoryOwner.ROWS).set(80)


def test_a_large_piece_is_refused_if_the_process_has_no_room() -> None:
    resident = 1_000
    account = MemoryAccount(1 << 60, CHECKED_BYTES + 2_000, resident=lambda: resident)
    one = account.holding(MemoryOwner.MESSAGES)
    one.set(CHECKED_BYTES)
    resident = 3_000
    one.add(CHECKED_BYTES - 1)
    with pytest.raises(SqlError):
        one.add(CHECKED_BYTES)
    assert resident_bytes() > 1 << 20


def test_nothing_is_counted_for_a_holding_that_is_gone() -> None:
    account = MemoryAccount(100)
    with account.holding(MemoryOwner.RESULTS) as one:
        one.set(70)
    assert account.total == 0
    lost = account.holding(MemoryOwner.RESULTS)
    lost.set(70)
    del lost
    assert account.total == 0
