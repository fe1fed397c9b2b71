"""The model over a table with a change data feed, and what readers of the feed must be told."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
from deltalake import DeltaTable

from storage.delta.actions import ChangeDataFile, CommitInfo
from storage.delta.layout import commit_path
from storage.delta.log import decode_commit
from storage.delta.recovery import list_log
from storage.delta.schema import FEED_KEY
from storage.shard import Definition
from storage.types import Timestamp
from tests.unit.storage.delta.changed_model import ChangedModel
from tests.unit.storage.delta.model import SCHEMA, SHARD

Told: TypeAlias = Counter[tuple[object, ...]]
"""Version, kind of change, and the values of the row."""

FED_SCHEMA = SCHEMA.with_metadata({FEED_KEY: b"true"})


@dataclass
class FedModel(ChangedModel):
    """See the module."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.state = replace(self.state, schema=FED_SCHEMA)
        self.definitions = [Definition(Timestamp(0), FED_SCHEMA)]

    def redefine(self, schema: pa.Schema) -> None:
        super().redefine(schema.with_metadata(self.schema.metadata))

    def switch(self, *, on: bool) -> None:
        """ALTER TABLE .. SET (change_data_feed = ..)."""
        schema = self.schema.with_metadata({FEED_KEY: b"true"} if on else None)
        ChangedModel.redefine(self, schema)

    def cuts(self) -> Mapping[int, int]:
        """The cut of each version in the log."""
        commits, _ = asyncio.run(list_log(self.store, SHARD))
        found: dict[int, int] = {}
        for number in commits:
            info = decode_commit(self.store.inner.peek(commit_path(SHARD, number)))[0]
            assert isinstance(info, CommitInfo)
            assert info.meridian is not None
            found[number] = info.meridian.cut
        return found

    def difference(self, versions: Iterable[int]) -> Told:
        """What each version brought and took away, as the rows' births and deaths say."""
        cuts = self.cuts()
        names = self.schema_at(cuts[max(cuts)]).names
        told: Told = Counter()
        for number in versions:
            before, cut = cuts.get(number - 1, -1), cuts[number]
            for row in self.rows:
                values = tuple(self.values[row.key].get(name) for name in names)
                born = before < row.born <= cut
                died = row.died is not None and before < row.died <= cut
                if born and not died:
                    told[number, "insert", *values] += 1
                if died and not born:
                    told[number, "delete", *values] += 1
        return told

    def write_out(self, directory: Path) -> Path:
        """Its files, for readers that know nothing of us."""
        for name in asyncio.run(self.store.list(SHARD)):
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.store.inner.peek(name))
        return directory / SHARD

    def feed_files(self) -> dict[int, list[str]]:
        """The `cdc` files that each version of the log names."""
        return {
            number: [
                action.path
                for action in decode_commit(self.store.inner.peek(commit_path(SHARD, number)))
                if isinstance(action, ChangeDataFile)
            ]
            for number in self.cuts()
        }


def feed_by_delta_rs(path: Path, first: int, last: int) -> Told:
    """What delta-rs tells of these versions."""
    feed = DeltaTable(path).load_cdf(starting_version=first, ending_version=last)
    rows = pa.RecordBatchReader.from_stream(feed).read_all().to_pylist()
    told: Told = Counter()
    for row in rows:
        number, kind = row.pop("_commit_version"), row.pop("_change_type")
        row.pop("_commit_timestamp")
        told[number, kind, *row.values()] += 1
    return told
