"""DDL against concurrent DDL and DML: what fits the catalog it is applied to, and what does not."""

import random
from dataclasses import replace

import pytest

from compute.arrow import table_schema
from coordinator.core.catalog import (
    StaleCatalog,
    VersionedCatalog,
    apply_changes,
    decode_changes,
    encode_changes,
)
from coordinator.core.completions import CeilingPersisted, GroupCommitted
from coordinator.core.core import Core
from coordinator.core.effects import CommitGroup, PersistCeiling, Reply
from coordinator.core.messages.catalog_changes import (
    CatalogChange,
    PutObject,
    PutReadHold,
    PutSchema,
    PutTable,
    PutTimeline,
    RemoveObject,
    RemoveReadHold,
    RemoveSchema,
    RemoveTable,
    RemoveTimeline,
)
from coordinator.core.messages.identities import ConnectionId, Isolation, RequestId, TransactionId
from coordinator.core.messages.replies import (
    Committed,
    Refused,
    RefusedReason,
    ReplyValue,
    Snapshot,
)
from coordinator.core.messages.requests import (
    Begin,
    ChangeCatalog,
    CommitTransaction,
    Message,
    RecordLookUps,
    RollbackTo,
    Savepoint,
    TakeSnapshot,
)
from coordinator.core.settings import CoreSettings
from coordinator.core.state import RecoveredState
from sql.catalog.catalog import (
    Catalog,
    NameDependency,
    ReadHold,
    Table,
    Timeline,
    definition_of,
    type_dependency,
    whole_catalog,
)
from sql.catalog.objects import EnumDefinition
from storage.types import Epoch, Timestamp
from tests.unit.core.validated import COLUMNS, written

A = Table(16_384, "public", "a", "shard_a", COLUMNS)
B = Table(16_385, "public", "b", "shard_b", COLUMNS)
LINE = Timeline("line", manual=True)
NOW = Timestamp(100_000)


def altered(table: Table, **changes: str) -> Table:
    return replace(table, version=table.version + 1, **changes)  # type: ignore[arg-type]


def after(*changes: CatalogChange, of: Catalog | None = None) -> Catalog:
    return apply_changes(of or Catalog(), changes, version=1)


# --- what fits a catalog -----------------------------------------------------------------------


def test_swap_in_one_transaction() -> None:
    old = altered(A, name="old")
    catalog = after(
        PutTable(A), PutTable(B), PutTable(old), PutTable(altered(B, name="a")), RemoveTable(old)
    )
    assert catalog.tables == {("public", "a"): altered(B, name="a")}


def test_history_is_replayed_as_it_was_committed() -> None:
    hold = ReadHold("h", "line", 7)
    history: list[list[CatalogChange]] = [
        [PutTable(A), PutSchema("s")],
        [PutTable(altered(A, schema="s", name="z")), PutTimeline(LINE), PutReadHold(hold)],
        [RemoveTable(altered(A, schema="s", name="z")), RemoveSchema("s")],
        [RemoveReadHold("h"), RemoveTimeline("line")],
    ]
    records = {
        put.key: put.value
        for ts, changes in enumerate(history, 1)
        for put in encode_changes(Timestamp(ts), changes)
    }
    catalog = VersionedCatalog(decode_changes(records))
    assert list(catalog.at(Timestamp(1)).tables) == [("public", "a")]
    assert list(catalog.at(Timestamp(2)).tables) == [("s", "z")]
    assert catalog.at(Timestamp(3)).read_holds == {"h": hold}
    assert catalog.at(Timestamp(3)).schemas == {"public"}
    assert not catalog.current.tables
    assert "line" not in catalog.current.timelines


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            [PutTable(altered(A, name="x"))], [PutTable(altered(A, name="y"))], id="two-renames"
        ),
        pytest.param([PutTable(altered(A, name="x"))], [RemoveTable(A)], id="drop-of-renamed"),
        pytest.param([RemoveTable(A)], [PutTable(altered(A, name="x"))], id="rename-of-dropped"),
        pytest.param([PutTable(B)], [PutTable(altered(A, name="b"))], id="name-is-taken"),
        pytest.param([RemoveSchema("s")], [PutTable(altered(A, schema="s"))], id="schema-gone"),
        pytest.param([PutTable(altered(A, schema="s"))], [RemoveSchema("s")], id="schema-in-use"),
        pytest.param([PutTimeline(LINE)], [PutTimeline(LINE)], id="two-timelines"),
        pytest.param([RemoveTimeline("used")], [PutReadHold(ReadHold("h", "used", 1))], id="hold"),
        pytest.param([PutReadHold(ReadHold("h", "used", 1))], [RemoveTimeline("used")], id="held"),
        pytest.param(
            [PutTable(replace(B, timeline="used"))], [RemoveTimeline("used")], id="timeline-in-use"
        ),
    ],
)
def test_what_was_bound_before_another_ddl_is_stale(
    first: list[CatalogChange], second: list[CatalogChange]
) -> None:
    before = after(PutTable(A), PutSchema("s"), PutTimeline(Timeline("used")))
    after(*second, of=before)  # by itself it fits
    between = after(*first, of=before)
    with pytest.raises(StaleCatalog):
        after(*second, of=between)


# --- transactions ------------------------------------------------------------------------------


class Stage:
    """A core with table A, and transactions that are stepped one by one."""

    def __init__(self) -> None:
        recovered = RecoveredState(Epoch(1), NOW, Timestamp(0), VersionedCatalog(), shards={})
        settings = CoreSettings()
        self.core = Core(recovered, settings, lambda table: table_schema(table.columns), NOW)
        self.requests = 0
        self.begun = 0
        creator = self.begin()
        self.define(creator, PutTable(A))
        assert isinstance(self.commit(creator), Committed)

    def step(self, message: Message) -> list[ReplyValue]:
        """The replies; commits and ceilings are durable at once."""
        replies: list[ReplyValue] = []
        for effect in self.core.step(message, NOW):
            match effect:
                case Reply(value=value):
                    replies.append(value)
                case CommitGroup(commit=commit):
                    replies += self.step(GroupCommitted(commit.token))
                case PersistCeiling(ceiling=ceiling):
                    replies += self.step(CeilingPersisted(ceiling))
                case _:
                    pass
        return replies

    def request(self) -> RequestId:
        self.requests += 1
        return RequestId(self.requests)

    def begin(self, isolation: Isolation = Isolation.STRICT_SERIALIZABLE) -> TransactionId:
        self.begun += 1
        txn = TransactionId(self.begun)
        self.step(Begin(txn, ConnectionId(1), isolation))
        self.catalog(txn)
        return txn

    def catalog(self, txn: TransactionId) -> Catalog:
        (snapshot,) = self.step(TakeSnapshot(self.request(), txn))
        assert isinstance(snapshot, Snapshot)
        return snapshot.catalog

    def define(self, txn: TransactionId, *changes: CatalogChange) -> None:
        self.step(ChangeCatalog(txn, changes))

    def insert(self, txn: TransactionId, table: Table = A) -> None:
        self.step(written(txn, table, {"rows": "1"}))

    def look_up(self, txn: TransactionId, schema: str, name: str | None, oid: int | None) -> None:
        self.step(RecordLookUps(txn, [NameDependency(schema, name, oid)]))

    def commit(self, txn: TransactionId) -> ReplyValue:
        (reply,) = self.step(CommitTransaction(self.request(), txn))
        return reply

    def defined(self, *changes: CatalogChange) -> None:
        """Another transaction's DDL, committed."""
        txn = self.begin()
        self.define(txn, *changes)
        assert isinstance(self.commit(txn), Committed)


def refused(reply: ReplyValue) -> bool:
    stale = isinstance(reply, Refused) and reply.reason is RefusedReason.STALE
    assert stale or isinstance(reply, Committed), reply
    return stale


def test_rows_written_before_a_rename_are_bound_to_another_definition() -> None:
    stage = Stage()
    writer = stage.begin()
    stage.insert(writer)
    stage.defined(PutTable(altered(A, name="z")))
    assert refused(stage.commit(writer))


def test_a_table_may_be_written_and_renamed_by_the_same_transaction() -> None:
    stage = Stage()
    both = stage.begin()
    stage.insert(both)
    stage.define(both, PutTable(altered(A, name="z")))
    stage.insert(both, altered(A, name="z"))
    assert list(stage.catalog(both).tables) == [("public", "z")]
    other = stage.begin()
    assert list(stage.catalog(other).tables) == [("public", "a")]
    assert not refused(stage.commit(both))
    assert list(stage.catalog(stage.begin()).tables) == [("public", "z")]


def test_its_own_rename_does_not_hide_that_another_came_first() -> None:
    stage = Stage()
    both = stage.begin()
    stage.insert(both)
    stage.define(both, PutTable(altered(A, name="z")))
    stage.defined(PutTable(altered(A, name="y")))
    assert refused(stage.commit(both))


def test_a_name_that_was_missing_must_still_be_missing() -> None:
    stage = Stage()
    writer = stage.begin()
    stage.look_up(writer, "public", "b", None)
    stage.insert(writer)
    stage.defined(PutTable(B))
    assert refused(stage.commit(writer))


def test_a_name_that_was_there_must_still_be_the_same() -> None:
    stage = Stage()
    writer = stage.begin()
    stage.look_up(writer, "public", "a", A.oid)
    stage.define(writer, PutTable(B))
    old = altered(A, name="old")
    other = Table(16_390, "public", "a", "shard_c", COLUMNS)
    stage.defined(PutTable(old), PutTable(other))
    assert refused(stage.commit(writer))


def test_a_schema_that_was_missing_must_still_be_missing() -> None:
    stage = Stage()
    writer = stage.begin()
    stage.look_up(writer, "meridian", None, None)
    stage.define(writer, PutTable(B))
    stage.defined(PutSchema("meridian"))
    assert refused(stage.commit(writer))


def test_names_of_others_do_not_matter() -> None:
    stage = Stage()
    writer = stage.begin()
    stage.look_up(writer, "public", "c", None)
    stage.insert(writer)
    stage.defined(PutTable(B))
    assert not refused(stage.commit(writer))


def test_what_its_own_ddl_decided_is_not_looked_up_again() -> None:
    stage = Stage()
    swap = stage.begin()
    stage.define(swap, PutTable(altered(A, name="old")))
    # CREATE TABLE IF NOT EXISTS a: it finds none, for this very transaction has renamed it.
    stage.look_up(swap, "public", "a", None)
    stage.define(swap, PutTable(replace(B, name="a")))
    stage.look_up(swap, "public", "a", B.oid)
    assert not refused(stage.commit(swap))


def test_ddl_that_does_not_fit_its_own_snapshot_costs_its_transaction_alone() -> None:
    stage = Stage()
    wrong, other = stage.begin(), stage.begin()
    stage.define(wrong, PutTable(B))
    stage.define(wrong, PutTable(replace(B, oid=B.oid + 1)))
    stage.define(other, PutTable(replace(B, name="c")))
    assert list(stage.catalog(wrong).tables) == [("public", "a"), ("public", "b")]
    reply = stage.commit(wrong)
    assert isinstance(reply, Refused)
    assert (reply.reason, reply.sqlstate) == (RefusedReason.OTHER, "XX000")
    assert isinstance(stage.commit(other), Committed)
    assert list(stage.catalog(stage.begin()).tables) == [("public", "a"), ("public", "c")]


def test_ddl_that_did_not_fit_and_was_rolled_back_costs_nothing() -> None:
    stage = Stage()
    wrong = stage.begin()
    stage.define(wrong, PutTable(B))
    stage.step(Savepoint(wrong, 1))
    stage.define(wrong, PutTable(replace(B, oid=B.oid + 1)))
    stage.step(RollbackTo(wrong, 1))
    assert isinstance(stage.commit(wrong), Committed)


def test_ddl_that_did_not_fit_before_a_savepoint_is_not_rolled_back() -> None:
    stage = Stage()
    wrong = stage.begin()
    stage.define(wrong, PutTable(B))
    stage.define(wrong, PutTable(replace(B, oid=B.oid + 1)))
    stage.step(Savepoint(wrong, 1))
    stage.define(wrong, PutTable(replace(B, name="c", oid=B.oid + 2)))
    stage.step(RollbackTo(wrong, 1))
    reply = stage.commit(wrong)
    assert isinstance(reply, Refused)
    assert reply.sqlstate == "XX000"


@pytest.mark.parametrize("level", [Isolation.REPEATABLE_READ, Isolation.READ_COMMITTED])
def test_a_name_that_a_transaction_rests_on_is_validated_at_every_level(level: Isolation) -> None:
    """Which names these are is the session's to say: a weaker level gives fewer."""
    stage = Stage()
    writer = stage.begin(level)
    stage.look_up(writer, "public", "b", None)
    stage.insert(writer)
    stage.defined(PutTable(B))
    assert refused(stage.commit(writer))


def test_a_table_of_which_only_the_columns_were_used_is_still_the_same() -> None:
    for change, is_refused in (
        (PutTable(altered(A, name="z")), True),
        (PutTable(altered(A)), True),
        (RemoveTable(A), True),
        (PutTable(replace(B, name="c")), False),
    ):
        stage = Stage()
        writer = stage.begin()
        stage.step(RecordLookUps(writer, [definition_of(A)]))
        stage.define(writer, PutTable(B))
        stage.defined(change)
        assert refused(stage.commit(writer)) == is_refused, change


def test_a_type_that_was_used_is_the_same_version_under_its_name() -> None:
    mood = EnumDefinition(16_400, "public", "mood", labels=("ok",), array=16_401)
    for change, is_refused in (
        (PutObject(replace(mood, version=1, labels=("ok", "sad"))), True),
        (PutObject(replace(mood, version=1, name="feeling")), True),
        (RemoveObject(mood), True),
        (PutTable(replace(B, name="c")), False),
    ):
        stage = Stage()
        stage.defined(PutObject(mood))
        writer = stage.begin()
        stage.step(RecordLookUps(writer, [type_dependency("public", "mood", mood)]))
        stage.insert(writer)
        stage.defined(change)
        assert refused(stage.commit(writer)) == is_refused, change


def test_the_whole_catalog_is_the_version_that_was_read() -> None:
    for with_ddl in (False, True):
        stage = Stage()
        early = stage.begin()
        if with_ddl:
            stage.define(early, PutTable(replace(B, name="own")))
        stage.step(RecordLookUps(early, [whole_catalog(stage.catalog(early))]))
        stage.insert(early)
        stage.defined(PutTable(replace(B, name="c", oid=B.oid + 1)))
        late = stage.begin()
        stage.step(RecordLookUps(late, [whole_catalog(stage.catalog(late))]))
        stage.insert(late)
        assert not refused(stage.commit(late))
        assert refused(stage.commit(early))


def test_who_only_reads_is_at_its_timestamp() -> None:
    stage = Stage()
    reader = stage.begin()
    stage.look_up(reader, "public", "b", None)
    stage.defined(PutTable(B))
    assert not refused(stage.commit(reader))


def test_every_version_of_a_long_history_is_made_again() -> None:
    """Most versions are kept as changes: what `at` makes of them is what was true then."""
    rng = random.Random(7)
    versions, catalog = VersionedCatalog(), Catalog()
    expected = {Timestamp(0): catalog}
    for number in range(1, 80):
        ts = Timestamp(10 * number)
        changes: list[CatalogChange] = [
            PutTable(replace(A, oid=100 + number, name=f"t{number}", shard=f"s{number}"))
        ]
        if catalog.tables and rng.random() < 0.5:
            changes.append(RemoveTable(rng.choice(list(catalog.tables.values()))))
        catalog = apply_changes(catalog, changes, version=catalog.version + 1)
        versions.put(ts, catalog, changes)
        expected[ts] = catalog
        if rng.random() < 0.1:
            since = Timestamp(rng.randrange(ts))
            versions.prune(since)
            expected = {at: known for at, known in expected.items() if at + 10 > since}
        for at in rng.sample(sorted(expected), min(3, len(expected))):
            assert versions.at(Timestamp(at + rng.randrange(10))) == expected[at]
    assert versions.current == catalog
