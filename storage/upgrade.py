"""Bring a stash that an older program has written to the present format, when a program takes over.

    read_format ── older ──▶ the commits of each timeline ── one transaction ──▶ records, new format
         └── the present one: nothing to do

INVARIANTS
  U1  it is one transaction under the epoch, and sets the format: a crash in the middle leaves the
      stash as it was.
  U2  a program of before neither opens the stash afterwards nor takes it over (S6 of `stash.py`).
      It would not see the records, and give their timestamps away again.

The upper of format 1 becomes the mark of `txns.py`: all commits of before lie below it.
"""

from collections.abc import Iterable

from storage.former_commits import BATCHES, TOKENS, former_records
from storage.outstanding import COMMITS
from storage.stash import FORMAT, Delete, Put, Stash, Write
from storage.txns import MARKS, UPPER, decode_timestamp
from storage.types import Epoch


async def upgrade(stash: Stash, epoch: Epoch, places: Iterable[str]) -> bool:
    """Upgrade the parts of all timelines (U1; empty: the whole stash); whether there was need.

    Raises as `transact`, and Corrupt.
    """
    if await stash.read_format() >= FORMAT:
        return False
    writes: list[Write] = []
    for place in places:
        writes += await _plan(stash, f"{place}/" if place else "")
    await stash.upgrade(epoch, writes)
    return True


async def _plan(stash: Stash, prefix: str) -> list[Write]:
    """The writes that turn the commits of a timeline into records."""
    tokens = await stash.scan(f"{prefix}{TOKENS}")
    batches = await stash.scan(f"{prefix}{BATCHES}")
    stored = await stash.read(f"{prefix}{MARKS}", UPPER)
    upper = None if stored is None else decode_timestamp(stored)
    records = former_records(tokens, batches, upper)
    return [
        *(Delete(f"{prefix}{TOKENS}", token) for token in tokens),
        *(Delete(f"{prefix}{BATCHES}", key) for key in batches),
        *(Put(f"{prefix}{COMMITS}", key, record) for key, record in records.items()),
    ]
