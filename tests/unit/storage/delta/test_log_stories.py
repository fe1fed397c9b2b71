"""What a flush writes into the log, as stories (testdata/log)."""

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyroaring import BitMap64

from storage.batch import Deletes, WriteBatch
from storage.delta.actions import Action, AddFile, CommitInfo, Metadata, Protocol, RemoveFile, Txn
from storage.delta.deletion_vectors import DeletionVector
from storage.delta.history import RUNS_TAG, decode_deletes, decode_runs
from storage.delta.layout import checkpoint_path, commit_path
from storage.delta.log import decode_commit
from storage.delta.maintenance import write_checkpoint
from storage.delta.recovery import read_checkpoint
from storage.delta.statistics import row_count
from storage.errors import StorageError
from storage.row_versions import is_row_count
from storage.types import Source, Timestamp, inline_source
from tests.support.transcript import Command, run_transcript
from tests.unit.storage.delta.model import SHARD
from tests.unit.storage.delta.test_flush import FlushedModel, at_once

TESTDATA = Path(__file__).parent / "testdata" / "log"


def short(text: str) -> str:
    """Names without the digests of what is inside."""
    return re.sub(r"(part-\d+|staged-\d+-\d+)-[0-9a-f]{16}\.parquet", r"\1", text)


def show_deletes(deletes: Deletes) -> str:
    return " ".join(f"{short(source)}:{[*rows]}" for source, rows in sorted(deletes.items()))


def show_vector(vector: DeletionVector | None) -> str:
    return "" if vector is None else f" vector={vector.storage_type}:{vector.cardinality}"


def show_runs(tag: str) -> str:
    return f" runs={','.join(f'@{run.ts}:{run.first_row}' for run in decode_runs(tag))}"


def show(action: Action) -> str:
    match action:
        case CommitInfo(meridian=history):
            assert history is not None
            by_time = decode_deletes(history.deletes)
            deletes = "; ".join(f"@{ts} {show_deletes(rows)}" for ts, rows in by_time)
            info = f"commitInfo {action.operation} ict={action.in_commit_timestamp}ms"
            return info + (f" deletes {deletes}" if deletes else "")
        case Protocol():
            return f"protocol {','.join(action.writer_features)}"
        case Metadata():
            return f"metaData {action.schema_string}"
        case Txn() if is_row_count(action.app_id):
            return f"rows ever {action.version}"
        case Txn():
            return f"txn {action.version}"
        case AddFile():
            runs = show_runs(action.tags[RUNS_TAG]) if RUNS_TAG in action.tags else ""
            rows = f" rows={row_count(action.stats)}"
            return f"add {short(action.path)}{rows}{runs}{show_vector(action.vector)}"
        case RemoveFile():
            return f"remove {short(action.path)}{show_vector(action.vector)}"


class Teller:
    """One story: a model with a store that loses what it is told to lose."""

    def __init__(self) -> None:
        self.model = FlushedModel()

    def tell(self, command: Command) -> str:
        options = command.options
        try:
            match command.name:
                case "commit":
                    return self.commit(options)
                case "lose":
                    self.model.faults([None if w == "nothing" else w for w in command.words])
                    return ""
                case "flush":
                    return self.flush(Timestamp(int(options["cut"])))
                case "log":
                    return self.log(int(command.words[0]))
                case "checkpoint":
                    return self.checkpoint()
                case "restart":
                    self.model.restart()
                    return f"versions {[v.number for v in self.model.state.versions]}"
                case "view":
                    return self.view(Timestamp(int(options["at"])))
                case "foreign":
                    content = b'{"commitInfo":{"timestamp":1,"operation":"OPTIMIZE"}}\n'
                    path = commit_path(SHARD, int(command.words[0]))
                    asyncio.run(self.model.store.inner.create(path, content))
                    return ""
                case _:
                    raise AssertionError(f"{command.position}: no such command")
        except StorageError as error:
            return f"{type(error).__name__}: {short(str(error))}"

    def commit(self, options: Mapping[str, str]) -> str:
        ts = self.model.now = int(options["ts"])
        deletes: dict[Source, BitMap64] = {}
        for word in options.get("delete", "").split():
            source, _, rows = word.partition(":")
            deletes[self.source(source)] = BitMap64(map(int, rows.split(",")))
        staged = tuple(map(int, options.get("staged", "").split()))
        batch = self.model.make_batch(ts, int(options.get("rows", "0")), staged, deletes)
        self.model.state = self.model.state.committed(Timestamp(ts), batch)
        return show_batch(batch)

    def source(self, word: str) -> Source:
        if word.startswith("@"):
            return inline_source(Timestamp(int(word[1:])))
        (name,) = [name for name in self.model.contents if short(name) == word]
        return name

    def flush(self, cut: Timestamp) -> str:
        version = self.model.make_version(cut)
        self.model.state = self.model.state.flushed(version)
        return f"version {version.number}"

    def log(self, number: int) -> str:
        content = asyncio.run(self.model.store.read(commit_path(SHARD, number)))
        return "\n".join(map(show, decode_commit(content)))

    def checkpoint(self) -> str:
        number = self.model.state.versions[-1].number
        store = self.model.store
        asyncio.run(write_checkpoint(store, SHARD, number, run_blocking=at_once))
        state = asyncio.run(read_checkpoint(store, SHARD, number))
        name = checkpoint_path(SHARD, number).rpartition("/")[2]
        return "\n".join([name, *map(show, state.actions())])

    def view(self, as_of: Timestamp) -> str:
        view = self.model.state.view(as_of)
        files = [
            f"{short(part.file.name)}[:{part.row_limit}]-{[*part.deleted]}" for part in view.files
        ]
        inline = [f"{p.source}[:{p.rows.num_rows}]-{[*p.deleted]}" for p in view.inline]
        return "\n".join([*files, *inline, f"keys {sorted(self.model.seen(view))}"])


def show_batch(batch: WriteBatch) -> str:
    return " ".join(f"staged {short(file.name)}" for file in batch.staged)


@pytest.mark.parametrize("path", sorted(TESTDATA.glob("*.txt")), ids=lambda path: path.stem)
def test_story(path: Path) -> None:
    run_transcript(path, Teller().tell)
