"""Make, look at and drop the replication slot of a source.

INVARIANTS
  F8  a slot has the name that its source gave; making it again drops what an earlier try left, and
      dropping what is gone is nothing.
  R1  a slot that a connection of ours still holds is freed by ending that connection: a role may
      end its own. A successor does so with the one of a paused leader.
"""

from typing import Final

from ingest.postgres.libpq_link import LibpqLink, PostgresAddress, quote_name, quote_text
from ingest.reader import ReaderFailure

_OPTIONS_SINCE: Final = 150_000
_ENDING_MS: Final = 5000


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
    """End the connection that holds the slot (R1)."""
    await side.query(
        f"SELECT pg_terminate_backend(active_pid, {_ENDING_MS}) FROM pg_replication_slots "
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
