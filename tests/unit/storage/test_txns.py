"""The txns shard: stories in testdata, and what a story tells badly."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest

from storage.batch import WriteBatch
from storage.commit import Commit
from storage.errors import Corrupt, Determinate, Fenced, Indeterminate, StorageError
from storage.memory import MemoryStash
from storage.outstanding import decode_stored_commit, encode_stored_commit
from storage.stash import Delete, Ended, Put, Require, Write
from storage.txns import Recovered, TimestampPassed, TxnsShard
from storage.types import Epoch, ShardId, Timestamp, Token
from tests.support.transcript import Command, run_transcript

TESTDATA = Path(__file__).parent / "testdata" / "txns"
Result = TypeVar("Result")


def batch_of(*ids: int) -> WriteBatch:
    return WriteBatch(pa.table({"id": pa.array(ids, pa.int64())}))


def ids_of(batch: WriteBatch) -> str:
    assert batch.inserts is not None
    return ",".join(str(value) for value in batch.inserts["id"].to_pylist())


class TracingStash:
    """A memory stash that tells what it is asked for, and fails once when told to.

    `lost`: the request never arrives. `reply-lost`: it happened. `late`: it arrives at `deliver()`.
    """

    def __init__(self, inner: MemoryStash) -> None:
        self.inner = inner
        self.trace: list[str] = []
        self.fail: list[str] = []
        self._late: list[tuple[Epoch, Sequence[Write], Sequence[Require]]] = []

    async def fence(self) -> Epoch:
        return await self.inner.fence()

    async def transact(
        self, epoch: Epoch, writes: Sequence[Write], *, requires: Sequence[Require] = ()
    ) -> None:
        failure = self.fail.pop(0) if self.fail else "none"
        self.trace.append(f"transact {', '.join([show(write) for write in (*requires, *writes)])}")
        if failure == "full":
            raise Determinate("disk full")
        if failure == "lost":
            raise Indeterminate("request lost")
        if failure == "late":
            self._late.append((epoch, writes, requires))
            raise Indeterminate("request late")
        await self.inner.transact(epoch, writes, requires=requires)
        if failure == "reply-lost":
            raise Indeterminate("reply lost")

    async def deliver(self) -> None:
        epoch, writes, requires = self._late.pop(0)
        await self.inner.transact(epoch, writes, requires=requires)

    async def scan(self, collection: str) -> Mapping[str, bytes]:
        return await self.inner.scan(collection)

    async def read(self, collection: str, key: str) -> bytes | None:
        self.trace.append(f"read {collection}/{key}".replace("0000000000000000", "~"))
        return await self.inner.read(collection, key)

    async def close(self) -> None:
        await self.inner.close()


class PromptTracingStash(TracingStash):
    """The same, and takes transactions over at once."""

    def hand_over(
        self, epoch: Epoch, writes: Sequence[Write], requires: Sequence[Require], ended: Ended
    ) -> None:
        failure: Exception | None = None
        try:
            run(self.transact(epoch, writes, requires=requires))
        except StorageError as error:
            failure = error
        ended(failure)


def show(write: Write | Require) -> str:
    key = f"{write.collection}/{write.key}".replace("0000000000000000", "~")
    if isinstance(write, Delete):
        return f"delete {key}"
    verb = "put" if isinstance(write, Put) else "require"
    value = write.value
    if value is not None and write.collection == "commits":
        stored = decode_stored_commit(write.key, value)
        return f"{verb} {key}={stored.token}({','.join(stored.batches)})"
    if value is not None and write.collection in {"txns", "shards", "flushed"}:
        return f"{verb} {key}={int.from_bytes(value[:8], 'big', signed=True)}"
    return f"{verb} {key}={None if value is None else value.decode()}"


class Story:
    """Runs the commands of a transcript; every failure is told by its name."""

    def __init__(self, kind: type[TracingStash]) -> None:
        self.kind = kind
        self.stash = kind(MemoryStash())
        self.epoch = run(self.stash.fence())
        self.txns = TxnsShard(self.stash, self.epoch)

    def __call__(self, command: Command) -> str:
        self.stash.trace.clear()
        try:
            outcome = getattr(self, f"do_{command.name}")(command)
        except (Determinate, Indeterminate, Fenced, AssertionError) as error:
            outcome = f"{type(error).__name__}: {error}"
        return "\n".join([*self.stash.trace, outcome])

    def do_load(self, command: Command) -> str:
        recovered = run(self.txns.load())
        shards = ", ".join(f"{shard}@{ts}" for shard, ts in recovered.shards.items())
        lines = [f"upper {recovered.upper}, applied {recovered.applied}, shards [{shards}]"]
        lines += [f"forgotten {shard}" for shard in sorted(recovered.forgotten)]
        lines += [f"{shard}@{ts} {ids_of(batch)}" for ts, shard, batch in recovered.batches]
        return "\n".join(lines)

    def do_restart(self, command: Command) -> str:
        self.stash = self.kind(self.stash.inner.crash())
        self.epoch = run(self.stash.fence())
        self.txns = TxnsShard(self.stash, self.epoch)
        return self.do_load(command)

    def do_depose(self, command: Command) -> str:
        return f"epoch {run(self.stash.fence())} takes over"

    def do_fail(self, command: Command) -> str:
        self.stash.fail += command.words
        return f"the next transactions: {', '.join(self.stash.fail)}"

    def do_deliver(self, command: Command) -> str:
        run(self.stash.deliver())
        return "arrived"

    def do_commit(self, command: Command) -> str:
        options = dict(command.options)
        ts = Timestamp(int(options.pop("ts")))
        token = Token(options.pop("token"))
        registers = options.pop("register", "")
        catalog = options.pop("catalog", "")
        commit = Commit(
            ts,
            token,
            {ShardId(shard): batch_of(*map(int, ids.split(","))) for shard, ids in options.items()},
            registers=tuple(ShardId(shard) for shard in registers.split(",") if shard),
            records=tuple(Put("catalog", key, b"record") for key in catalog.split(",") if key),
        )
        ended: list[Exception | None] = []
        if not self.txns.hand_over(commit, ended.append):
            run(self.txns.commit_at(commit))
        elif (error := ended[0]) is not None:
            raise error
        assert len(ended) <= 1, "its end is told once"
        return "committed"

    def do_find(self, command: Command) -> str:
        found = run(self.txns.find(Token(command.options["token"])))
        return "did not happen" if found is None else f"happened at {found}"

    def do_tidy(self, command: Command) -> str:
        pairs = (pair.split("@") for pair in command.options.get("flushed", "").split(",") if pair)
        flushed = {ShardId(shard): Timestamp(int(cut)) for shard, cut in pairs}
        run(self.txns.tidy(Timestamp(int(command.options["cut"])), flushed))
        return "tidied"

    def do_forget(self, command: Command) -> str:
        writes = [Put("catalog", "compacted", b"record")] if "catalog" in command.options else []
        run(self.txns.forget([ShardId(shard) for shard in command.words], writes))
        return "forgotten"

    def do_settle(self, command: Command) -> str:
        run(self.txns.settle())
        return "settled"

    def do_cleared(self, command: Command) -> str:
        run(self.txns.cleared([ShardId(shard) for shard in command.words]))
        return "cleared"

    def do_advance(self, command: Command) -> str:
        run(self.txns.advance(Timestamp(int(command.options["upper"]))))
        return "advanced"


def run(work: Coroutine[object, object, Result]) -> Result:
    return asyncio.run(work)


@pytest.mark.parametrize("path", sorted(TESTDATA.iterdir()), ids=lambda path: path.name)
@pytest.mark.parametrize("kind", [TracingStash, PromptTracingStash])
def test_transcript(path: Path, kind: type[TracingStash]) -> None:
    run_transcript(path, Story(kind))


async def fresh() -> tuple[MemoryStash, TxnsShard]:
    stash = MemoryStash()
    txns = TxnsShard(stash, await stash.fence())
    await txns.load()
    return stash, txns


def commit(ts: int, *shards: str, ids: Sequence[int] = (1,), register: bool = False) -> Commit:
    names = tuple(ShardId(shard) for shard in shards)
    batches = {shard: batch_of(*ids) for shard in names}
    return Commit(Timestamp(ts), Token(f"k{ts}"), batches, registers=names if register else ())


def test_a_cancelled_commit_is_unknown_until_found() -> None:
    class Waiting(MemoryStash):
        async def transact(
            self, epoch: Epoch, writes: Sequence[Write], *, requires: Sequence[Require] = ()
        ) -> None:
            await super().transact(epoch, writes, requires=requires)
            await asyncio.Event().wait()

    async def story() -> None:
        stash = Waiting()
        txns = TxnsShard(stash, await stash.fence())
        await txns.load()
        async with asyncio.TaskGroup() as group:
            task = group.create_task(txns.commit_at(commit(5, "t", register=True)))
            await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(AssertionError, match="T5"):
            await txns.commit_at(commit(6, "t"))
        assert await txns.find(Token("k5")) == 5
        with pytest.raises(TimestampPassed) as passed:
            await txns.commit_at(commit(5, "t"))
        assert passed.value.upper == 6

    run(story())


def test_tidy_takes_small_pieces_and_lets_commits_pass() -> None:
    """A tidy of many commits is many stash transactions."""
    sizes: list[int] = []

    class Counting(MemoryStash):
        async def transact(
            self, epoch: Epoch, writes: Sequence[Write], *, requires: Sequence[Require] = ()
        ) -> None:
            sizes.append(len(writes))
            await asyncio.sleep(0)
            await super().transact(epoch, writes, requires=requires)

    async def story() -> Recovered:
        stash = Counting()
        txns = TxnsShard(stash, await stash.fence())
        await txns.load()
        await txns.commit_at(commit(1, "t", register=True))
        for ts in range(2, 500):
            await txns.commit_at(commit(ts, "t"))
        sizes.clear()
        async with asyncio.TaskGroup() as group:
            group.create_task(txns.tidy(Timestamp(499)))
            for ts in range(500, 505):
                await txns.commit_at(commit(ts, "t", ids=[ts]))
        assert max(sizes) <= 128
        assert len(sizes) >= 4 + 5
        assert list(await stash.scan("commits")) == [f"{ts:020d}" for ts in range(500, 505)]
        return await TxnsShard(stash, await stash.fence()).load()

    recovered = run(story())
    assert recovered.applied == 499
    assert [ts for ts, _, _ in recovered.batches] == list(range(500, 505))


def test_a_huge_commit_is_tidied_in_one_piece() -> None:
    async def story() -> None:
        stash, txns = await fresh()
        await txns.commit_at(commit(1, *(f"t{i}" for i in range(500)), register=True))
        await txns.tidy(Timestamp(1))
        assert await stash.scan("commits") == {}

    run(story())


class Mortal(MemoryStash):
    """A stash whose process ends after so many transactions."""

    lives = 10**9

    async def transact(
        self, epoch: Epoch, writes: Sequence[Write], *, requires: Sequence[Require] = ()
    ) -> None:
        if self.lives == 0:
            raise Indeterminate("crashed")
        self.lives -= 1
        await super().transact(epoch, writes, requires=requires)


def test_a_crash_inside_tidy_leaves_no_half_commit() -> None:
    """At every stash transaction of a tidy the process may end: what is left is whole (T1)."""

    async def story(lives: int) -> bool:
        stash = Mortal()
        txns = TxnsShard(stash, await stash.fence())
        await txns.load()
        for ts in range(1, 301):
            await txns.commit_at(commit(ts, "t", "u", "v", register=ts == 1))
        stash.lives = lives
        finished = True
        try:
            await txns.tidy(Timestamp(290))
        except Indeterminate:
            finished = False
        reborn = stash.crash()
        recovery = TxnsShard(reborn, await reborn.fence())
        recovered = await recovery.load()
        since = 290 if lives else 0
        assert recovered.upper == 301
        assert recovered.applied == (290 if lives else -1)
        assert [ts for ts, shard, _ in recovered.batches if shard == "u"] == [
            *range(since + 1, 301)
        ]
        await recovery.tidy(Timestamp(290))
        assert list(await reborn.scan("commits")) == [f"{ts:020d}" for ts in range(291, 301)]
        return finished

    outcomes = [run(story(lives)) for lives in range(6)]
    assert outcomes == [False, False, False, False, True, True]


def test_a_crash_while_one_shard_lags_leaves_only_its_batches() -> None:
    """T1, at every stash transaction: `u` lags behind, `t` and `v` do not wait for it."""
    flushed = {ShardId("t"): Timestamp(90), ShardId("v"): Timestamp(70)}

    async def story(lives: int) -> bool:
        stash = Mortal()
        txns = TxnsShard(stash, await stash.fence())
        await txns.load()
        for ts in range(1, 101):
            await txns.commit_at(commit(ts, "t", "u", "v", register=ts == 1))
        stash.lives = lives
        finished = True
        try:
            await txns.tidy(Timestamp(10), flushed)
        except Indeterminate:
            finished = False
        reborn = stash.crash()
        recovery = TxnsShard(reborn, await reborn.fence())
        recovered = await recovery.load()
        left = {shard: [ts for ts, s, _ in recovered.batches if s == shard] for shard in "tuv"}
        firsts = {"t": 91, "u": 11, "v": 71} if lives else dict.fromkeys("tuv", 1)
        assert left == {shard: [*range(first, 101)] for shard, first in firsts.items()}
        await recovery.tidy(Timestamp(10), flushed)
        # A record stays until the last of its tables has it.
        assert len(await reborn.scan("commits")) == 90
        # The laggard catches up: nothing is left below the cut, whoever removed the rest.
        await recovery.tidy(Timestamp(90), {ShardId("u"): Timestamp(90)})
        assert list(await reborn.scan("commits")) == [f"{ts:020d}" for ts in range(91, 101)]
        await TxnsShard(reborn, await reborn.fence()).load()
        return finished

    outcomes = [run(story(lives)) for lives in range(8)]
    assert outcomes[0] is False
    assert outcomes[-1] is True


RECORD = encode_stored_commit(Token("k5"), {ShardId("t"): b"MWB1 torn", ShardId("u"): b""})


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (Put("commits", f"{5:020d}", b""), "not a commit"),
        (Put("commits", f"{5:020d}", b"MCR1 torn"), "not a commit"),
        (Put("commits", f"{5:020d}", RECORD[:-1]), "not a commit"),
        (Put("commits", f"{5:020d}", RECORD + b"x"), "not a commit"),
        (Put("commits", f"{5:020d}", RECORD.replace(b"MCR1", b"MCR2")), "not a commit"),
        (Put("commits", f"{5:020d}", RECORD), "/t: not a write batch"),
        (Put("commits", "nonsense", b""), "is not a commit"),
        (Put("batches", f"{5:020d}/t", b"MWB1"), "belong to no commit"),
        (Put("tokens", "k5", b"short"), "not an outcome"),
        (Put("txns", "upper", b"short"), "not a timestamp"),
    ],
)
def test_damage_is_found_at_load(damage: Write, reason: str) -> None:
    async def story() -> None:
        stash, txns = await fresh()
        await txns.commit_at(commit(5, "t", "u", register=True))
        epoch = await stash.fence()
        await stash.transact(epoch, [damage])
        await TxnsShard(stash, epoch).load()

    with pytest.raises(Corrupt, match=reason):
        run(story())


def test_commit_cost_does_not_depend_on_the_number_of_shards() -> None:
    async def story() -> int:
        stash = TracingStash(MemoryStash())
        txns = TxnsShard(stash, await stash.fence())
        await txns.load()
        many = commit(1, *(f"t{i}" for i in range(1000)), register=True)
        await txns.commit_at(many)
        stash.trace.clear()
        await txns.commit_at(commit(2, "t7"))
        assert stash.trace == ["transact require txns/upper=None, put commits/~0002=k2(t7)"]
        return len(stash.trace)

    assert run(story()) == 1


def test_catalog_writes_stay_out_of_our_collections() -> None:
    async def story() -> None:
        _, txns = await fresh()
        stray = (Put("txns", "upper", b""),)
        await txns.commit_at(Commit(Timestamp(1), Token("a"), {}, records=stray))

    with pytest.raises(AssertionError, match="belongs to the txns shard"):
        run(story())
