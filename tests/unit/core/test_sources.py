"""Transcripts of sources: the effects that the core asks for, and in which order."""

from dataclasses import replace
from pathlib import Path

import pytest

from coordinator.core.effects import CommitGroup, Effect, Reply
from coordinator.core.messages.catalog_changes import PutObject, PutTable, RemoveObject, RemoveTable
from coordinator.core.messages.identities import RequestId, TransactionId
from coordinator.core.messages.replies import Refused, UpstreamsReached
from coordinator.core.messages.requests import (
    AwaitUpstreams,
    ChangeCatalog,
    LeaveUpstreams,
    Message,
)
from coordinator.core.sources.completions import (
    AsideCopied,
    BatchPrepared,
    PartPrepared,
    SourceAcknowledged,
    SourceFailed,
    SourcePulled,
    SourceStarted,
    TablesCopied,
    UpstreamReleased,
    UpstreamReported,
)
from coordinator.core.sources.effects import (
    AcknowledgeSource,
    AskUpstream,
    CopyAside,
    CopyTables,
    PrepareBatch,
    PullSource,
    ReleaseUpstream,
    StartSource,
    StopSource,
)
from coordinator.core.sources.leftovers import LEFTOVER_RECORDS
from coordinator.core.sources.records import SOURCE_RECORDS
from ingest.reader import BadRecord, ChangeKind, SourceBatch, UpstreamChange
from sql.catalog.catalog import Table
from sql.catalog.objects import Feed, SourceDefinition
from storage.stash import Put
from tests.support.transcript import run_transcript
from tests.unit.core.test_core import TESTDATA, Story
from tests.unit.core.validated import written

SOURCE = SourceDefinition(30_000, "public", "s", connector="scripted", feed_id="one")


class SourceStory(Story):
    """A core with one source `s`, which feeds table `a` once it is created."""

    def __init__(self) -> None:
        super().__init__()
        self.source = SOURCE
        self.wanted = SourceBatch({})
        self.waiting: dict[str, RequestId] = {}

    def table(self, name: str) -> Table:
        """`a` is fed."""
        if name == "a" and name not in self.tables:
            self.tables[name] = replace(super().table(name), feed=Feed(SOURCE.oid, "a"))
        return super().table(name)

    def message(self, command: str, names: list[str], arguments: dict[str, str]) -> Message | None:
        attempt = int(arguments.get("attempt", "0"))
        upto = {"offset": int(arguments.get("upto", "0"))}
        match command:
            case "define":
                txn = TransactionId(int(names[0]))
                tables = [PutTable(self.table(name)) for name in names[1:]]
                return ChangeCatalog(txn, (PutObject(self.source), *tables))
            case "pause" | "resume":
                version = self.source.version + 1
                self.source = replace(self.source, paused=command == "pause", version=version)
                return ChangeCatalog(TransactionId(int(names[0])), (PutObject(self.source),))
            case "set":
                version = self.source.version + 1
                options = tuple(arguments.items())
                self.source = replace(self.source, options=options, version=version)
                return ChangeCatalog(TransactionId(int(names[0])), (PutObject(self.source),))
            case "skip":
                version = self.source.version + 1
                self.source = replace(
                    self.source, skip=(f'{{"row": {names[1]}}}',), version=version
                )
                return ChangeCatalog(TransactionId(int(names[0])), (PutObject(self.source),))
            case "drop_source":
                gone = (RemoveTable(self.table("a")), RemoveObject(self.source))
                return ChangeCatalog(TransactionId(int(names[0])), gone)
            case "started":
                return SourceStarted(SOURCE.oid, attempt, upto)
            case "copied":
                rows = written(TransactionId(0), self.table("a"), arguments).batch
                writes = {self.shard("a"): rows} if "rows" in arguments else {}
                return TablesCopied(SOURCE.oid, attempt, upto, {}, writes)
            case "pulled":
                values = [int(value) for value in arguments.get("rows", "").split(",") if value]
                changes = [UpstreamChange(ChangeKind.INSERT, new=(value,)) for value in values]
                bad = [
                    BadRecord("a", {"row": row}, "22008", "too late")
                    for row in range(int(arguments.get("bad", "0")))
                ]
                by_table = {"a": changes} if changes else {}
                batch = SourceBatch(upto, by_table, bad, ends="part" not in names)
                return SourcePulled(SOURCE.oid, attempt, batch)
            case "prepared":
                write = written(TransactionId(0), self.table("a"), arguments)
                bad_ones = int(arguments.get("bad", "0"))
                writes = {self.shard("a"): write.batch}
                return BatchPrepared(SOURCE.oid, attempt, upto, writes, bad_ones)
            case "part_prepared":
                return PartPrepared(SOURCE.oid, attempt, int(arguments.get("bad", "0")))
            case "failed":
                broken = "broken" in names
                return SourceFailed(SOURCE.oid, attempt, "08006", "away", broken=broken)
            case "await_upstream":
                request = self.request(f"await {names[0]}")
                self.waiting[names[0]] = request
                return AwaitUpstreams(request, (SOURCE.oid,), int(arguments["us"]))
            case "leave":
                return LeaveUpstreams(self.waiting[names[0]])
            case "told":
                request = self.waiting[names[0]]
                position = upto if "upto" in arguments else None
                why = "" if position else "it is away"
                return UpstreamReported(SOURCE.oid, attempt, request, position, why)
            case "released":
                return UpstreamReleased("one.1", done="not" not in names)
            case "acknowledged":
                return SourceAcknowledged(SOURCE.oid, attempt, upto, "not" not in names)
            case _:
                return self._of_a_copy(command, names, arguments)

    def _of_a_copy(
        self, command: str, names: list[str], arguments: dict[str, str]
    ) -> Message | None:
        """What is about a copy beside the source."""
        match command:
            case "resnapshot":
                version, generation = self.source.version + 1, self.source.generation + 1
                self.source = replace(self.source, generation=generation, version=version)
                return ChangeCatalog(TransactionId(int(names[0])), (PutObject(self.source),))
            case "copied_aside":
                writes = {
                    self.shard("a"): written(TransactionId(0), self.table("a"), arguments).batch
                }
                attempt, upto = int(arguments["attempt"]), {"offset": int(arguments["upto"])}
                return AsideCopied(SOURCE.oid, attempt, upto, {}, writes)
            case _:
                return super().message(command, names, arguments)

    def describe(self, effect: Effect) -> str:
        match effect:
            case StartSource(attempt=attempt, record=record):
                where = "new" if record is None else f"after {record.position['offset']}"
                return f"start source, attempt {attempt}, {where}"
            case CopyTables(attempt=attempt):
                return f"copy tables, attempt {attempt}"
            case CopyAside(attempt=attempt):
                return f"copy aside, attempt {attempt}"
            case PullSource(attempt=attempt):
                return f"pull, attempt {attempt}"
            case PrepareBatch(attempt=attempt, batch=batch) if effect.goes_on or not batch.ends:
                which = "a first part" if not effect.goes_on else "a part"
                which = f"{which}, {len(effect.views)} views" if batch.ends is False else "the end"
                return f"prepare {which}, attempt {attempt}"
            case PrepareBatch(attempt=attempt, batch=batch):
                return f"prepare up to {batch.upto['offset']}, attempt {attempt}"
            case AcknowledgeSource(upto=upto):
                return f"acknowledge {upto['offset']}"
            case AskUpstream(attempt=attempt, request=request):
                return f"ask upstream, attempt {attempt}, for {self.requests[request]}"
            case Reply(request=request, value=UpstreamsReached()):
                return f"{self.requests[request]}: reached"
            case Reply(request=request, value=Refused() as refused) if refused.detail:
                told = f"{refused.sqlstate} {refused.message}"
                return f"{self.requests[request]}: {told} | {refused.detail}"
            case StopSource():
                return "stop source"
            case ReleaseUpstream(leftover=leftover):
                return f"release {leftover.name}"
            case CommitGroup(commit=commit):
                found = [r for r in commit.records if r.collection == SOURCE_RECORDS]
                shown = [
                    f"record {r.value.decode()}" if isinstance(r, Put) else "no record"
                    for r in found
                ]
                shown += [
                    f"leftover {r.key}"
                    for r in commit.records
                    if r.collection == LEFTOVER_RECORDS and isinstance(r, Put)
                ]
                return " ".join([super().describe(effect), *shown])
            case _:
                return super().describe(effect)


@pytest.mark.parametrize(
    "path", sorted((TESTDATA / "sources").glob("*.txt")), ids=lambda path: path.stem
)
def test_transcript(path: Path) -> None:
    run_transcript(path, SourceStory().handle)
