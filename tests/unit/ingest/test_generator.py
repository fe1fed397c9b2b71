"""The rows of the generator: what refers to what, proportions, the seed, the rate."""

import asyncio
from collections import Counter

import pytest

from ingest.generator import GeneratorOptions, GeneratorReader, generated_row
from ingest.reader import ReaderFailure, ReadLimits, SourceProgress

AUCTION = GeneratorOptions("auction", rate=10, seed=3)


def test_proportions_are_nexmarks() -> None:
    counts = Counter(generated_row(AUCTION, n)[0] for n in range(5_000))
    assert counts == {"persons": 100, "auctions": 300, "bids": 4_600}


def test_what_a_row_refers_to_came_before() -> None:
    persons, auctions = set[object](), set[object]()
    for n in range(5_000):
        name, row = generated_row(AUCTION, n)
        if name == "persons":
            persons.add(row[0])
        elif name == "auctions":
            assert row[1] in persons
            auctions.add(row[0])
        else:
            assert row[0] in auctions
            assert row[1] in persons
    assert persons == set(range(100))
    assert auctions == set(range(300))


def test_the_seed_decides() -> None:
    other = GeneratorOptions("auction", rate=10, seed=4)
    rows = [
        [generated_row(options, n) for n in range(500)] for options in (AUCTION, AUCTION, other)
    ]
    assert rows[0] == rows[1]
    assert rows[0] != rows[2]


def test_at_follows_the_rate() -> None:
    options = GeneratorOptions("counter", rate=4)
    ats = [generated_row(options, n)[1][1] for n in range(5)]
    assert ats == [946_684_800_000_000 + step * 250_000 for step in range(5)]


async def _start(reader: GeneratorReader, offset: int) -> None:
    identity = (await reader.inspect()).identity
    await reader.start(SourceProgress({"offset": offset}, identity), ())


def test_another_generator_is_another_upstream() -> None:
    async def run() -> None:
        reader = GeneratorReader(GeneratorOptions("counter", rate=1))
        progress = await reader.prepare(())
        with pytest.raises(ReaderFailure, match="other rows") as failure:
            await GeneratorReader(GeneratorOptions("counter", rate=2)).start(progress, ())
        assert failure.value.broken

    asyncio.run(run())


def test_a_row_that_is_not_due_is_not_given() -> None:
    async def run() -> tuple[int, int]:
        reader = GeneratorReader(GeneratorOptions("counter", rate=1))
        await _start(reader, 5)
        first = await reader.read(ReadLimits(wait_ms=1))
        second = await reader.read(ReadLimits(wait_ms=1))
        return first.upto["offset"], second.upto["offset"]

    assert asyncio.run(run()) == (6, 6)


def test_it_ends_at_the_most() -> None:
    async def run() -> int:
        options = GeneratorOptions("counter", rate=1_000_000, rows_max=7)
        reader = GeneratorReader(options)
        await _start(reader, 0)
        for _ in range(3):
            batch = await reader.read(ReadLimits(wait_ms=2))
        return batch.upto["offset"]

    assert asyncio.run(run()) == 7
