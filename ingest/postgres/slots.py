"""Make, look at and drop the replication slot of a source.

INVARIANTS
  F8  a slot has the name that its source gave; making it again drops what an earlier try left, and
      dropping what is gone is nothing.
  F11 a slot has the epoch of the coordinator that makes it in its name, and the source remembers
      the name with its position. A coordinator drops slots of its own epoch and of earlier ones
      only: who was deposed, and does not know it, takes nothing from its successor.
  R1  a slot that a connection of ours still holds is freed by ending that connection: a role may
      end its own. A successor does so with the one of a paused leader.
"""

from typing import Final

from ingest.postgres.libpq_link import LibpqLink, PostgresAddress, quote_name, quote_text
from ingest.reader import ReaderFailure

_OPTIONS_SINCE: Final = 150_000
_ENDING_MS: Final = 5000
_TOLD_MS: Final = 300
"""Larger: a successor waits longer for a paused one. Smaller: one that is busy is told twice."""


def slot_of(prefix: str, epoch: int) -> str:
    """The name of the slot that a coordinator makes (F11); without an epoch the prefix alone."""
    return f"{prefix}_{epoch}" if epoch else prefix


async def create_slot(
    replication: LibpqLink,
    side: LibpqLink,
    slot: str,
    *,
    seconds: float,
    temporary: bool = False,
) -> tuple[str, str]:
    """A new slot: the LSN and the name of its exported snapshot (F8).

    Upstream waits for all transactions that run there. Beyond `seconds` it is given up (S1): a
    transaction may wait for us, if we are its synchronous standby.
    """
    export = "(SNAPSHOT 'export')" if side.server_version >= _OPTIONS_SINCE else "EXPORT_SNAPSHOT"
    kind = "TEMPORARY LOGICAL" if temporary else "LOGICAL"
    text = f"CREATE_REPLICATION_SLOT {quote_name(slot)} {kind} pgoutput {export}"
    process = replication.backend_pid
    try:
        ((_, position, snapshot, _),) = await replication.query(text, seconds=seconds)
    except ReaderFailure as failure:
        if failure.code == "57014":
            await side.query(f"SELECT pg_terminate_backend({process}, {_ENDING_MS})")
            await drop_slot(side, slot)
            message = "a slot waits for transactions that run upstream"
            raise ReaderFailure("57014", message, hint=_WAITING_HINT) from None
        if failure.code == "53400":
            raise ReaderFailure(
                failure.code, failure.message, hint="Upstream: raise max_replication_slots."
            ) from None
        raise
    assert position is not None, "a slot has a position"
    assert snapshot is not None, "the snapshot was asked for"
    return position, snapshot


_WAITING_HINT: Final = "Upstream: look for long transactions in pg_stat_activity."


async def free_slot(side: LibpqLink, slot: str) -> None:
    """End the connection that holds the slot (R1).

    One whose client stands still, with its connection full, stands in telling that it ends. Told
    again it ends without.
    """
    await side.query(
        f"SELECT pg_terminate_backend(active_pid, {_TOLD_MS}) "
        f"OR pg_terminate_backend(active_pid, {_ENDING_MS}) FROM pg_replication_slots "
        f"WHERE slot_name = {quote_text(slot)} AND active_pid IS NOT NULL"
    )


async def drop_slot(side: LibpqLink, slot: str) -> None:
    """F8."""
    await free_slot(side, slot)
    try:
        await side.query(
            f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
            f"WHERE slot_name = {quote_text(slot)}"
        )
    except ReaderFailure as failure:
        # Somebody else was quicker.
        if failure.code != "42704":
            raise


async def drop_earlier(side: LibpqLink, prefix: str, epoch: int) -> None:
    """What tries of this coordinator and of earlier ones have made for its generation (F8, F11)."""
    family, generation = _parts(prefix)
    for slot, of, made_by in await _slots_of(side, family):
        if of == generation and made_by <= epoch:
            await drop_slot(side, slot)


async def drop_unused(side: LibpqLink, prefix: str, epoch: int, used: str) -> None:
    """What earlier coordinators have made beside the slot that is used, also for generations that
    are over (F8, F11).
    """
    family, generation = _parts(prefix)
    for slot, of, made_by in await _slots_of(side, family):
        if slot != used and (of, made_by) < (generation, epoch):
            await drop_slot(side, slot)


def _parts(prefix: str) -> tuple[str, int]:
    """What the names of a source begin with, and the generation behind it."""
    family, _, generation = prefix.rpartition("_")
    return f"{family}_", int(generation)


async def _slots_of(side: LibpqLink, family: str) -> list[tuple[str, int, int]]:
    """The slots that are called so, with their generations and the epochs of who has made them."""
    rows = await side.query(
        f"SELECT slot_name FROM pg_replication_slots WHERE starts_with(slot_name, "
        f"{quote_text(family)}) AND NOT temporary AND database = current_database()"
    )
    found: list[tuple[str, int, int]] = []
    for (slot,) in rows:
        assert slot is not None, "a slot has a name"
        generation, _, epoch = slot.removeprefix(family).partition("_")
        if generation.isdecimal() and (not epoch or epoch.isdecimal()):
            found.append((slot, int(generation), int(epoch or 0)))
    return found


async def check_slot(side: LibpqLink, slot: str) -> None:
    """That the slot is there and has not lost what we need. Raises with `broken`."""
    rows = await side.query(
        "SELECT wal_status, coalesce(plugin, '') FROM pg_replication_slots "
        f"WHERE slot_name = {quote_text(slot)} AND database = current_database()"
    )
    hint = "ALTER SOURCE .. RESNAPSHOT makes a new one."
    if not rows:
        message = f'replication slot "{slot}" is gone upstream'
        raise ReaderFailure("42704", message, hint=hint, broken=True)
    status, plugin = rows[0]
    if plugin != "pgoutput":
        message = f'replication slot "{slot}" has plugin {plugin}'
        raise ReaderFailure("55000", message, hint=hint, broken=True)
    if status == "lost":
        message = f'upstream has removed log that replication slot "{slot}" needed'
        more = f"{hint} Upstream: max_slot_wal_keep_size and idle_replication_slot_timeout."
        raise ReaderFailure("55000", message, hint=more, broken=True)


async def release_slots(address: PostgresAddress, name: str, prefix: str, generation: int) -> None:
    """Drop the slots of a source, up to a generation (F8): `prefix`, its number, perhaps more."""
    side = await LibpqLink.connect(address, name)
    try:
        rows = await side.query(
            "SELECT slot_name FROM pg_replication_slots "
            f"WHERE starts_with(slot_name, {quote_text(prefix)}) "
            "AND database = current_database()"
        )
        for (slot,) in rows:
            assert slot is not None, "a slot has a name"
            number = slot.removeprefix(prefix).partition("_")[0]
            if number.isdecimal() and int(number) <= generation:
                await drop_slot(side, slot)
    finally:
        side.close()
