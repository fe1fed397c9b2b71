"""Transcripts of the core: messages in, effects out, one step a line."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from compute.arrow import table_schema
from coordinator.core.catalog import VersionedCatalog
from coordinator.core.completions import (
    CeilingFailed,
    CeilingPersisted,
    CutFlushed,
    GatherDue,
    GroupCommitted,
    GroupFailed,
    GroupPassed,
    Tidied,
)
from coordinator.core.core import Core
from coordinator.core.effects import (
    CommitGroup,
    ConfirmGroup,
    DelayGather,
    Effect,
    FlushCut,
    PersistCeiling,
    PublishCatalog,
    RemoveStaged,
    Reply,
    Tidy,
    WakeListeners,
)
from coordinator.core.locking.modes import AdvisoryTag, LockMode
from coordinator.core.messages.catalog_changes import PutTable, RemoveTable
from coordinator.core.messages.identities import ConnectionId, Isolation, RequestId, TransactionId
from coordinator.core.messages.locks import AcquireLock
from coordinator.core.messages.replies import (
    Committed,
    Leased,
    LockAnswered,
    Refused,
    Snapshot,
    Stopped,
    TableId,
    Views,
)
from coordinator.core.messages.requests import (
    AbortTransaction,
    Begin,
    ChangeCatalog,
    CommitTransaction,
    Disconnected,
    Message,
    NewTableId,
    ReleaseSavepoint,
    RollbackTo,
    Savepoint,
    Scan,
    ShutDown,
    TakeLease,
    TakeNotifications,
    TakeSnapshot,
    Tick,
)
from coordinator.core.notifications.changes import (
    ListenAction,
    Notification,
    NotificationChanges,
    TakenNotifications,
)
from coordinator.core.settings import CoreSettings
from coordinator.core.state import RecoveredState
from sql.catalog.catalog import Catalog, Table
from storage.batch import ShardView
from storage.live_files import FileMap
from storage.shard import Fence, Version
from storage.types import Epoch, ShardId, Timestamp, Token
from tests.support.transcript import Command, run_transcript
from tests.unit.core.validated import COLUMNS, ValueIn, inserted, written

TESTDATA = Path(__file__).parent / "testdata"
SETTINGS = CoreSettings(
    ceiling_step_us=10_000,
    history_us=50_000,
    future_bound_us=5_000,
    cut_age_us=3_000,
    cut_commits_max=4,
    queue_max=3,
    notification_bytes_max=1_000,
)


class Story:
    """One core, the clock, and names for its transactions; answers are effects as text."""

    def __init__(self) -> None:
        self.now = Timestamp(100_000)
        self.tables: dict[str, Table] = {}
        self.timestamps: dict[str, Timestamp] = {}
        self.read_at: dict[TransactionId, Timestamp] = {}
        self.commits: dict[str, CommitGroup] = {}
        recovered = RecoveredState(
            Epoch(1), Timestamp(100_000), Timestamp(0), VersionedCatalog(), shards={}
        )
        self.core = Core(recovered, SETTINGS, lambda table: table_schema(table.columns), self.now)
        self.requests: dict[RequestId, str] = {}
        self.delays_gathers = False

    def handle(self, block: Command) -> str:
        """Run a block: its first command, then one a line; what happened, a line per effect."""
        effects = self.step(block.name, list(block.words), dict(block.options))
        for line in block.body.splitlines():
            command, *words = line.split()
            arguments = dict(word.split("=", 1) for word in words if "=" in word)
            effects += self.step(command, [word for word in words if "=" not in word], arguments)
        return "\n".join(effects) or "-"

    def step(self, command: str, names: list[str], arguments: dict[str, str]) -> list[str]:
        message = self.message(command, names, arguments)
        return [] if message is None else self.stepped(message)

    def stepped(self, message: Message) -> list[str]:
        told: list[str] = []
        for effect in self.core.step(message, self.now):
            if isinstance(effect, DelayGather) and not self.delays_gathers:
                told += self.stepped(GatherDue(is_late=True))  # nobody else is at the door
            else:
                told.append(self.describe(effect))
        return told

    def message(self, command: str, names: list[str], arguments: dict[str, str]) -> Message | None:
        match command:
            case "clock":
                self.now = Timestamp(int(names[0]))
                return None
            case "tick":
                return Tick()
            case "delays":
                self.delays_gathers = True
                return None
            case "gather":
                return GatherDue(is_late="late" in names)
            case "disconnect":
                return Disconnected(ConnectionId(int(names[0])))
            case "take":
                request = self.request(f"take {names[0]}")
                return TakeNotifications(request, ConnectionId(int(names[0])))
            case "shutdown":
                return ShutDown(self.request("shutdown"))
            case "ceiling":
                ceiling = Timestamp(int(names[1]))
                return {"ok": CeilingPersisted, "failed": CeilingFailed}[names[0]](ceiling)
            case "group":
                return self.group(names, arguments)
            case "cut":
                return self.cut(names, arguments)
            case "tidied":
                return Tidied(Timestamp(int(names[0])))
            case "savepoint" | "release" | "rollback_to":
                kind = {"savepoint": Savepoint, "release": ReleaseSavepoint}.get(
                    command, RollbackTo
                )
                return kind(TransactionId(int(names[0])), int(names[1]))
            case _:
                return self.transaction(command, TransactionId(int(names[0])), names, arguments)

    def group(self, names: list[str], arguments: dict[str, str]) -> Message:
        token = Token(names[1])
        match names[0]:
            case "ok":
                return GroupCommitted(token)
            case "passed":
                return GroupPassed(token, Timestamp(int(arguments["upper"])))
            case _:
                return GroupFailed(token, arguments["sqlstate"], "could not write")

    def cut(self, names: list[str], arguments: dict[str, str]) -> Message:
        cut = Timestamp(int(names[0]))
        done = [name for name in arguments.get("flushed", "").split(",") if name]
        failed = [name for name in arguments.get("failed", "").split(",") if name]
        versions = {self.shard(name): self.version(name, cut) for name in done}
        foreign = [name for name in arguments.get("foreign", "").split(",") if name]
        return CutFlushed(
            cut,
            versions,
            {self.shard(name): "disk" for name in failed + foreign},
            {self.shard(name): Fence.FOREIGN for name in foreign},
        )

    def version(self, name: str, cut: Timestamp) -> Version:
        known = self.core.shards[self.shard(name)].versions
        return Version(len(known), cut, FileMap())

    def transaction(
        self, command: str, txn: TransactionId, names: list[str], arguments: dict[str, str]
    ) -> Message:
        request = self.request(f"{command} {txn}")
        tables = tuple(self.table(name) for name in names[1:])
        match command:
            case "begin":
                owner = ConnectionId(int(arguments.get("conn", txn)))
                level = Isolation(arguments.get("level", "strict-serializable").replace("-", " "))
                return Begin(txn, owner, level)
            case "snapshot":
                as_of = arguments.get("as_of", arguments.get("at_least"))
                ts = None if as_of is None else Timestamp(int(as_of))
                return TakeSnapshot(request, txn, ts, "at_least" in arguments)
            case "scan":
                ts = Timestamp(int(arguments["ts"])) if "ts" in arguments else self.read_at[txn]
                where = arguments.get("where")
                predicates = () if where is None else (ValueIn.parse(where),) * len(tables)
                return Scan(request, txn, ts, tables, predicates)
            case "write":
                return written(txn, tables[0], arguments)
            case "create":
                return ChangeCatalog(txn, tuple(PutTable(table) for table in tables))
            case "drop":
                return ChangeCatalog(txn, tuple(RemoveTable(table) for table in tables))
            case "advisory":
                # pg_advisory_lock: the session's, by itself.
                tag, mode = AdvisoryTag(0, 7, False), LockMode.ADVISORY_EXCLUSIVE
                return AcquireLock(request, txn, tag, mode, by_session=True)
            case "lease":
                return TakeLease(request, txn, tables)
            case "new_table":
                return NewTableId(request)
            case "insert":
                return inserted(request, tables[0], arguments)
            case "commit":
                return CommitTransaction(request, txn, notifying(arguments))
            case "abort":
                return AbortTransaction(txn)
        raise AssertionError(f"unknown command {command}")

    def request(self, name: str) -> RequestId:
        request = RequestId(len(self.requests) + 1)
        self.requests[request] = name
        return request

    def table(self, name: str) -> Table:
        if name not in self.tables:
            oid = 16_384 + len(self.tables)
            # b and b' are two tables that want the same name; the column of b! is NOT NULL.
            columns = (replace(COLUMNS[0], not_null=name.endswith("!")),)
            table = Table(oid, "public", name.rstrip("'"), f"shard_{name}", columns)
            self.tables[name] = table
        return self.tables[name]

    def shard(self, name: str) -> ShardId:
        return ShardId(self.table(name).shard)

    # --- effects as text ---------------------------------------------------------------------

    def describe(self, effect: Effect) -> str:
        match effect:
            case Reply(request=request, value=value):
                if isinstance(value, Snapshot):
                    _, txn = self.requests[request].split()
                    self.read_at[TransactionId(int(txn))] = value.ts
                return f"{self.requests[request]}: {self.value(value)}"
            case PersistCeiling(ceiling=ceiling):
                return f"persist ceiling {ceiling}"
            case CommitGroup(commit=commit):
                writes = [
                    f"{shard.removeprefix('shard_')}{shown(batch.inserts)}"
                    for shard, batch in sorted(commit.batches.items())
                ]
                ddl = [f"catalog x{len(commit.records)}"] if commit.records else []
                return f"commit group {commit.token} @{commit.ts} {' '.join(writes + ddl)}"
            case DelayGather(until_heard=until_heard):
                return "delay gather" + (" until somebody comes" if until_heard else "")
            case ConfirmGroup(token=token):
                return f"confirm group {token}"
            case WakeListeners(owners=owners):
                return f"wake {','.join(map(str, owners))}"
            case FlushCut(cut=cut, states=states):
                names = ",".join(state.shard.removeprefix("shard_") for state in states)
                return f"flush {names} @{cut}"
            case RemoveStaged(files=files):
                return f"remove {','.join(name for _, name in files)}"
            case Tidy(cut=cut, flushed=flushed):
                names = ",".join(shard.removeprefix("shard_") for shard in sorted(flushed))
                return f"tidy @{cut} flushed {names or '-'}"
            case PublishCatalog(catalog=catalog):
                return f"publish {catalog_text(catalog)}"

    def value(self, value: object) -> str:
        match value:
            case Snapshot(ts=ts, catalog=catalog):
                return f"snapshot @{ts} {catalog_text(catalog)}"
            case Views(views=views):
                return " ".join(view_text(view) for view in views)
            case Committed(ts=ts):
                return f"committed @{ts}"
            case Refused(reason=reason, sqlstate=sqlstate, message=message, detail=detail):
                return f"refused ({reason}) {sqlstate} {message}. {detail or ''}".rstrip()
            case TakenNotifications(sent=sent, more=more):
                heard = [
                    f"{each.sender}:{each.notification.channel}:{each.notification.payload}"
                    for each in sent
                ]
                return " ".join([*heard, "and more"] if more else heard or ["nothing"])
            case TableId(oid=oid, shard=shard):
                return f"table {oid} {shard}"
            case Leased():
                return "leased"
            case LockAnswered(granted=granted):
                return "locked" if granted else "not locked"
            case Stopped():
                return "stopped"
        raise AssertionError(f"unknown reply {value}")


def notifying(arguments: dict[str, str]) -> NotificationChanges | None:
    """`listen=a,-b,-*`: LISTEN a, UNLISTEN b, UNLISTEN *. `notify=a:1,b:2`: channels, payloads."""
    actions = [
        ListenAction(None if word == "-*" else word.removeprefix("-"), listens=word[0] != "-")
        for word in arguments.get("listen", "").split(",")
        if word
    ]
    sent = [
        Notification(*said.split(":")) for said in arguments.get("notify", "").split(",") if said
    ]
    if not actions and not sent:
        return None
    return NotificationChanges(tuple(actions), tuple(sent), sum(each.nbytes for each in sent))


def shown(table: pa.Table | None) -> str:
    return "[]" if table is None else str(table.column(0).to_pylist()).replace(" ", "")


def catalog_text(catalog: Catalog) -> str:
    return "[" + " ".join(sorted(name for _, name in catalog.tables)) + "]"


def view_text(view: ShardView) -> str:
    inline = [
        f"{part.source}{shown(part.rows)}" + (f"-{list(part.deleted)}" if part.deleted else "")
        for part in view.inline
    ]
    return f"{view.shard.removeprefix('shard_')}({' '.join(inline)})"


@pytest.mark.parametrize("path", sorted(TESTDATA.glob("*.txt")), ids=lambda path: path.stem)
def test_transcript(path: Path) -> None:
    run_transcript(path, Story().handle)
