"""Which files a compaction chooses, and what it makes of them."""

import asyncio
from collections.abc import Callable, Sequence

from pyroaring import BitMap64

from storage.batch import DataFile
from storage.delta.compaction import rewrite_files
from storage.delta.compaction_plan import CompactionLimits, choose_files
from storage.delta.files import ROW_GROUP_ROWS, decode_parquet
from storage.delta.layout import data_path
from storage.live_files import LiveFile, Runs
from storage.types import Source, Timestamp
from tests.unit.storage.delta.model import SCHEMA, SHARD
from tests.unit.storage.delta.test_flush import FlushedModel

LIMITS = CompactionLimits(small_bytes=1_000, files_min=3, file_bytes_max=5_000)


def live(size: int, deleted: int = 0, rows: int = 100) -> LiveFile:
    name = Source(f"f{size}-{deleted}-{rows}")
    file = DataFile(name, rows, size, "{}")
    return LiveFile(file, BitMap64(range(deleted)), Runs.single(Timestamp(1)))


def chosen(files: Sequence[LiveFile], limits: CompactionLimits = LIMITS) -> list[int]:
    return [found.file.size_bytes for found in choose_files(files, limits)]


async def at_once(work: Callable[[], None]) -> None:
    work()


def test_small_files_are_merged_when_there_are_enough() -> None:
    assert chosen([live(10), live(11)]) == []
    assert chosen([live(12), live(2_000), live(10), live(11)]) == [12, 10, 11]


def test_a_file_that_has_grown_waits_for_others_of_its_size() -> None:
    assert chosen([live(900), live(10), live(11), live(12)]) == [10, 11, 12]
    assert chosen([live(60), live(10), live(11), live(12)]) == [60, 10, 11, 12]
    assert chosen([live(10), live(900), live(901), live(902)]) == [900, 901, 902]


def test_half_deleted_files_are_rewritten_whatever_their_size() -> None:
    assert chosen([live(4_000, 29)]) == []
    assert chosen([live(4_000, 30)]) == [4_000]
    assert chosen([live(4_000, 30), live(10), live(11)]) == [4_000, 10, 11]


def test_too_large_and_dead_files_are_left_alone() -> None:
    assert chosen([live(6_000, 90), live(10, 100), live(11), live(12)]) == []


def test_one_compaction_has_a_limit() -> None:
    limits = CompactionLimits(files_min=2, input_bytes_max=25)
    assert chosen([live(10), live(11), live(12)], limits) == [10, 11]
    assert chosen([live(30, 90)], limits) == [30]


def test_on_request_everything_that_makes_fewer_files_or_drops_rows() -> None:
    asked = LIMITS.on_request()
    assert chosen([live(900), live(10)], asked) == [900, 10]
    assert chosen([live(4_000, 1)], asked) == [4_000]
    assert chosen([live(4_000)], asked) == []
    assert chosen([live(10)], asked) == []


def test_large_sources_keep_their_order_over_row_groups_and_outputs() -> None:
    model = FlushedModel()
    rows = ROW_GROUP_ROWS + 10
    for _ in range(3):
        model.commit(rows, (), [], 0)
        model.flush(0)
    version = model.state.versions[-1]
    first, second, third = version.files.live_files()
    dead = BitMap64(range(ROW_GROUP_ROWS - 5, ROW_GROUP_ROWS + 5))
    halved = LiveFile(second.file, dead, second.runs)
    limits = CompactionLimits(output_bytes=first.file.size_bytes * 3 // 2)
    made = asyncio.run(
        rewrite_files(
            model.store, model.state, [first, halved, third], limits, run_blocking=at_once
        )
    )
    assert [[part.source for part in file.moved] for file in made] == [
        [first.file.name, second.file.name],
        [third.file.name],
    ]
    content = asyncio.run(model.store.read(data_path(SHARD, made[0].file.name)))
    keys = decode_parquet(content, SCHEMA)["k"].to_pylist()
    assert keys == [k for k in range(2 * rows) if k < rows or k - rows not in dead]
    assert made[0].file.rows == len(keys)
    assert f'"numRecords":{len(keys)}' in made[0].file.stats_json
