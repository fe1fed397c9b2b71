"""Files that sources stage in the simulation: made through the faults of their server."""

import random
from collections.abc import Callable, Sequence

import pyarrow as pa

from storage.batch import DataFile
from storage.delta.files import encode_file
from storage.object_store import ObjectStore
from storage.types import ShardId, Source


class Staging:
    """Implements RowSpooler."""

    def __init__(
        self, store: ObjectStore, rng: random.Random, shard: ShardId, schema: pa.Schema
    ) -> None:
        self._store, self._random, self._shard, self._schema = store, rng, shard, schema
        self._batches: list[pa.RecordBatch] = []
        self._names: list[str] = []

    async def write(self, batch: pa.RecordBatch) -> None:
        """See RowSpooler."""
        self._batches.append(batch)

    async def finish(self) -> Sequence[DataFile]:
        """See RowSpooler; several files, as of a large transaction."""
        files: list[DataFile] = []
        for batch in self._batches:
            rows = pa.Table.from_batches([batch], schema=self._schema)
            encoded = encode_file(rows, "part")
            # Named as files that are staged are, so that vacuum takes it for one (Y3).
            name = f"part-{self._random.getrandbits(128):032x}.parquet"
            self._names.append(f"{self._shard}/{name}")
            await self._store.create(self._names[-1], encoded.content)
            file = encoded.file
            files.append(DataFile(Source(name), file.rows, file.size_bytes, file.stats_json))
        return files

    async def discard(self) -> None:
        """See RowSpooler."""
        for name in self._names:
            await self._store.delete(name)


def spool(store: ObjectStore, rng: random.Random) -> Callable[[ShardId, pa.Schema], Staging]:
    """Of one server."""
    return lambda shard, schema: Staging(store, rng, shard, schema)
