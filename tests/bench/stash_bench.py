"""What a durable stash transaction costs here: `python -m tests.bench.stash_bench [DIRECTORY]`.

Prints figures, asserts nothing. The raw line is what the disk allows: four pages written and
synced. The directory must lie on the disk that is to be measured; default: this project's.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pyarrow as pa

from storage.batch import WriteBatch
from storage.codec import decode_batch, encode_batch
from storage.commit import Commit
from storage.local_store import LocalObjectStore
from storage.stash import Put, Require, Stash
from storage.stash_sqlite import SqliteStash
from storage.txns import TxnsShard
from storage.types import Epoch, ShardId, Timestamp, Token

ROUNDS = 2_000


def report(name: str, seconds: list[float], elapsed: float) -> None:
    """One line: median, 99th percentile and worst in milliseconds, and the rate."""
    ordered = sorted(seconds)
    p50, p99 = ordered[len(ordered) // 2], ordered[len(ordered) * 99 // 100]
    figures = f"p50 {p50 * 1e3:7.3f}  p99 {p99 * 1e3:7.3f}  max {ordered[-1] * 1e3:7.2f} ms"
    print(f"{name:44} {figures}  {len(ordered) / elapsed:8.0f}/s", flush=True)


async def measure(
    name: str, step: Callable[[int], Awaitable[object]], *, rounds: int = ROUNDS, width: int = 1
) -> None:
    """Run `step(0) ..`, `width` at a time, and report."""
    seconds: list[float] = []
    numbers = iter(range(rounds))

    async def worker() -> None:
        for number in numbers:
            begun = time.perf_counter()
            await step(number)
            seconds.append(time.perf_counter() - begun)

    begun = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(width):
            group.create_task(worker())
    report(name, seconds, time.perf_counter() - begun)


def raw(directory: Path) -> None:
    """Four pages into a file of a fixed size, then fdatasync: the floor."""
    file = os.open(directory / "raw", os.O_RDWR | os.O_CREAT)
    os.pwrite(file, bytes(4096 * 4000), 0)
    os.fsync(file)
    seconds = []
    begun = time.perf_counter()
    for number in range(ROUNDS):
        at = time.perf_counter()
        os.pwrite(file, b"x" * 4096 * 4, number % 900 * 4096 * 4)
        os.fdatasync(file)
        seconds.append(time.perf_counter() - at)
    report("raw: 16 KiB in place + fdatasync", seconds, time.perf_counter() - begun)
    os.close(file)


async def four_puts(stash: Stash, epoch: Epoch, number: int) -> None:
    writes = [
        Put("commits", f"{number:020d}", bytes(700)),
        *(Put("catalog", str((number + place) % 100), bytes(60)) for place in range(3)),
    ]
    await stash.transact(epoch, writes, requires=[Require("txns", "upper", None)])


async def one_record(stash: Stash, epoch: Epoch, number: int) -> None:
    """As a commit of rows does it."""
    put = Put("commits", f"{number:020d}", bytes(700))
    await stash.transact(epoch, [put], requires=[Require("txns", "upper", None)])


async def stash_figures(directory: Path) -> None:
    stash = await SqliteStash.open(directory / "stash.db")
    epoch = await stash.fence()
    await measure("hand-over only: read of one key", lambda _: stash.read("c", "k"))
    await measure("transact, 4 small puts", lambda n: four_puts(stash, epoch, n))
    await measure(
        "transact, the record of a commit", lambda n: one_record(stash, epoch, n + ROUNDS)
    )
    small = [Put("c", "k", b"v")]
    for width in (1, 8, 64):
        name = f"transact, 1 small put, {width} in flight"
        await measure(name, lambda _: stash.transact(epoch, small), width=width)
    await stash.close()


async def txns_figures(directory: Path) -> None:
    stash = await SqliteStash.open(directory / "txns.db")
    txns = TxnsShard(stash, await stash.fence())
    await txns.load()
    shards = [ShardId(f"t{number:016x}") for number in range(1000)]
    await txns.commit_at(Commit(Timestamp(1), Token("0"), {}, registers=tuple(shards)))
    rows = pa.table({"id": [1], "name": ["x" * 20], "price": [1.5]})
    batch = WriteBatch(rows)

    async def commit(number: int, tables: int) -> None:
        start = number % 900
        batches = dict.fromkeys(shards[start : start + tables], batch)
        await txns.commit_at(Commit(Timestamp(number), Token(f"k{number}"), batches))

    for step, tables in enumerate((1, 2, 20)):
        base = 10 + step * ROUNDS
        rounds = ROUNDS if tables < 20 else ROUNDS // 10
        name = f"commit_at, one row into {tables} of 1000 tables"
        await measure(name, lambda n, b=base, t=tables: commit(b + n, t), rounds=rounds)
    begun = time.perf_counter()
    tidying = asyncio.create_task(txns.tidy(Timestamp(9 + 3 * ROUNDS)))  # noqa: TID251 - a program
    await measure("commit_at during a tidy", lambda n: commit(20_000 + n, 1), rounds=50)
    await tidying
    print(f"tidy of {2 * ROUNDS + ROUNDS // 10} commits: {time.perf_counter() - begun:.2f} s")
    begun = time.perf_counter()
    await TxnsShard(stash, await stash.fence()).load()
    print(f"load: {(time.perf_counter() - begun) * 1e3:.1f} ms")
    await stash.close()
    value = encode_batch(batch)
    await measure_plain("encode_batch, one row", lambda: encode_batch(batch))
    await measure_plain("decode_batch, one row", lambda: decode_batch(value))


async def measure_plain(name: str, step: Callable[[], object]) -> None:
    async def once(_: int) -> None:
        step()

    await measure(name, once)


async def store_figures(directory: Path) -> None:
    store = LocalObjectStore.open(directory / "warehouse")
    content = bytes(2_000)
    await measure("create, 2 kB", lambda n: store.create(f"t/{n}", content))
    await measure("create, 2 kB, 4 in flight", lambda n: store.create(f"u/{n}", content), width=4)
    await measure("read, 2 kB", lambda n: store.read(f"t/{n}"))
    store.close()


def main() -> None:
    """Measure in a fresh directory and remove it."""
    parent = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[2]
    with tempfile.TemporaryDirectory(dir=parent, prefix=".bench-") as made:
        directory = Path(made)
        raw(directory)
        asyncio.run(stash_figures(directory))
        asyncio.run(txns_figures(directory))
        asyncio.run(store_figures(directory))


if __name__ == "__main__":
    main()
