"""The context of a statement's execution and its outcome, shared by the `execute_*` functions.

    ParameterizedStatement ─▶ execute_<kind> ─▶ Done(tag)                     nothing but a tag
                               └▶ Rows(batches, tag of a count) rows, streamed or held

INVARIANTS
  Q1  nothing of a writing statement reaches the client before its commit is acknowledged, unless
      the commit belongs to a later statement (a block, or a pipeline without Sync).
  Q2  rows of a query are streamed: at most a few batches are in memory, whatever the result size.
"""

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Collection,
    Hashable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

import pyarrow as pa

from compute.access.key_index import KeyIndex
from compute.access.row_predicates import RowPredicate
from compute.executor import Executor, Run
from compute.reference.expressions import Row
from compute.reference.support import RowsAllowed
from coordinator.core.locking.modes import LockMode
from coordinator.driver.coordination import Coordination
from coordinator.driver.upstreams import Upstreams
from coordinator.execution.change_streams.shared_steps import SharedSteps
from coordinator.execution.read_predicates import read_predicates
from coordinator.execution.reg_names import OidNaming
from coordinator.execution.sources.shown import connection_rows
from coordinator.execution.views.attempts import CatchUpLog
from coordinator.execution.views.shown import view_rows
from coordinator.large_work import aside_if
from coordinator.memory_account import MemoryAccount
from coordinator.pgcatalog.activity import ObservedSession
from coordinator.pgcatalog.meridian_schema import relation_view, rows_as_view
from coordinator.pgcatalog.sequences import has_sequence_rows, sequence_states, sequence_view
from coordinator.pgcatalog.syscache import SystemCache
from coordinator.pgwire.messages import Severity
from coordinator.planning.literal_templates import LiteralTemplates
from coordinator.planning.plan_cache import PlanCache
from coordinator.server_counters import ServerCounters
from coordinator.statistics.server_statistics import ObservedStatistics, ServerStatistics
from coordinator.transaction.following import ChangeReader
from coordinator.transaction.transaction import SessionTransaction
from coordinator.variables.variables import Variables
from ingest.secrets import SecretRules
from sql.binder.state import BindContext, Binding
from sql.catalog.catalog import Catalog, NameDependency, Table
from sql.catalog.meridian_schema import (
    CONNECTIONS,
    MATERIALIZED_VIEWS,
    STATEMENT_VIEWS,
    is_server_state,
    is_system_relation,
)
from sql.catalog.objects import ExactView
from sql.catalog.system_catalogs import is_system_catalog, shows_sessions, system_catalog
from sql.errors import SqlError
from sql.plan.nodes import Plan, RelationId
from sql.plan.traverse import scans
from sql.statements.bound import OutputColumn, ParameterizedStatement
from sql.statements.runtime_parameters import RowDefault
from sql.types.sql_type import Value
from storage.batch import DataFile, ShardView
from storage.clock import Clock
from storage.fast_dataclass import fast_dataclass
from storage.known_rows import Points
from storage.types import ShardId, Timestamp

R = TypeVar("R")

Inputs: TypeAlias = Mapping[RelationId, ShardView]
"""What the relations of a plan are read from."""


class InProcess(Protocol):
    """The reference executor: answers small plans at once, in this process."""

    def refusal(
        self,
        plan: Plan,
        inputs: Inputs | None = None,
        allowed: RowsAllowed | None = None,
    ) -> str | None:
        """Why it does not run the plan over these inputs; None if it does.

        `inputs`: None if the caller bounds their rows by itself. `allowed`: None for no input.
        """
        ...

    def refusal_of_work(self, plan: Plan, inputs: Inputs, most: int) -> str | None:
        """Why it does not run the plan over these inputs, of which it may touch so many rows; None
        if it does.
        """
        ...

    def work(self, plan: Plan) -> int:
        """The rows that it may touch for a plan without inputs, but for those of a long text."""
        ...

    def require(self, plan: Plan, what: str) -> None:
        """Raise 0A000 for `what` if it does not run a plan that only it could run."""
        ...

    async def answer(self, run: Run, schema: pa.Schema | None = None) -> pa.Table:
        """The whole answer as a table, in a thread if it may take long. Raises SqlError for what
        the data did.

        `schema`: to be used in place of the plan's; its types are the plan's, NOT NULL is not
        checked.
        """
        ...

    async def rows(self, run: Run) -> Sequence[Row]:
        """The same, as values."""
        ...

    async def value(self, plan: Plan) -> Value:
        """The answer of a plan of one value, without inputs."""
        ...

    async def apart(self, work: Callable[[], R]) -> R:
        """The result of work that may take long, done in a thread. It is stopped if nobody awaits
        it, so it is the evaluator's alone.
        """
        ...


class Sessions(Protocol):
    """The sessions of the server, as one of them sees them."""

    def observe(self) -> Sequence[ObservedSession]:
        """All of them, as they are."""
        ...

    def cancel_backend(self, pid: int) -> bool:
        """End the statement that a session runs, if any; False: there is no such session."""
        ...

    def terminate_backend(self, pid: int) -> bool:
        """End a session; False: there is none."""
        ...

    def role_of(self, pid: int) -> int | None:
        """The oid of the role that a session has logged in as; None: there is no such session."""
        ...

    async def has_left(self, pid: int, seconds: float) -> bool:
        """Wait until a session is over, for so long; False: it is not."""
        ...

    def reload(self) -> bool:
        """Read again the files that say who may connect; False: one is broken, nothing changes."""
        ...

    def file_rows(self, relation: str) -> Sequence[Mapping[str, Value]] | None:
        """What pg_hba_file_rules or its neighbour shows of its file now; it reads it. None for
        other relations.
        """
        ...


class Spooler(Protocol):
    """Rows on their way into staged files: bounded memory, any number of rows."""

    async def write(self, batch: pa.RecordBatch) -> None:
        """Add rows, in order."""
        ...

    async def finish(self) -> Sequence[DataFile]:
        """Close the files and make them durable; they count once a commit names them."""
        ...

    async def discard(self) -> None:
        """Remove whatever was written."""
        ...


@fast_dataclass(frozen=True, slots=True)
class ExecutionLimits:
    """Bounds of one statement."""

    inline_bytes_max: int = 1 << 20
    """Rows of a write that go into the txns shard itself. Larger: bigger commits."""
    transaction_inline_bytes_max: int = 4 << 20
    """Rows of one transaction in memory; what is beyond goes into staged files. Larger: bigger
    commits. Smaller: more small files."""
    statements_max: int = 10_000
    """Prepared statements of one session. Larger: more memory for each."""
    portals_max: int = 1_000
    """Portals of one session. Larger: more work of engines is left open."""
    returning_bytes_max: int = 256 << 20
    """Rows that RETURNING may hold until the commit is acknowledged; above it 54000."""
    attempts_max: int = 10
    """How often a statement starts again by itself; from the second attempt it holds the lease."""
    old_rows_max: int = 10_000
    """Deleted rows whose values are kept until the commit, to validate others by. Larger: more
    memory. Smaller: large UPDATEs and DELETEs conflict with all that others read of the table."""
    old_bytes_max: int = 4 << 20
    auto_rows_max: int = 200
    """`engine = auto` reads inputs in memory up to this many rows in process, on the loop."""
    short_writes: bool = True
    """Whether single-row writes are evaluated when their group is gathered; off in tests that
    compare them with the general way."""
    local_bytes_max: int = 8 << 30
    """`engine = auto` leaves to the server's engine what reads more bytes of files. Larger: more
    machines stand idle. Smaller: one that would be faster alone waits for them."""
    local_held_bytes_max: int = 17 << 30
    """`engine = auto` leaves joins to it that may hold more bytes, whatever they spill."""
    short_reads: bool = True
    """Whether short reads are answered as their bytes come, and texts with literals share plans;
    off in tests that compare them with the general way."""


@fast_dataclass(frozen=True, slots=True)
class Services:
    """What all sessions of a server share."""

    coordination: Coordination
    clock: Clock
    engine: Executor
    in_process: InProcess
    spool: Callable[[ShardId, pa.Schema], Spooler]
    plans: PlanCache
    key_index: KeyIndex
    limits: ExecutionLimits = ExecutionLimits()
    local: Executor | None = None
    """The engine of `SET engine = local`; on a server without another one it is `engine` too."""
    has_warm_engine: Callable[[], bool] = lambda: True
    """Whether `engine` would answer at once; False: it would have to start first."""
    system_cache: SystemCache = field(default_factory=SystemCache)
    templates: LiteralTemplates = field(default_factory=LiteralTemplates)
    memory: MemoryAccount = field(default_factory=MemoryAccount)
    """What sessions hold together."""
    told: SharedSteps = field(default_factory=SharedSteps)
    """What several subscribers are told alike."""
    counters: ServerCounters = field(default_factory=ServerCounters)
    statistics: ServerStatistics = field(default_factory=ServerStatistics)
    catch_up: CatchUpLog = field(default_factory=CatchUpLog)
    sessions: Sessions | None = None
    """None before the server accepts connections."""
    upstreams: Upstreams = field(default_factory=lambda: Upstreams(SecretRules()))
    """By which sources look at other systems before they are made."""


@dataclass(slots=True)
class StatementRuns:
    """Runs of a writing statement that are done at once (`dml/repeated_writes.py`).

    `sets`: their parameters. `of`: for each its statement among `statements`; empty: all are of the
    first. `is_one`: they are the rows of one statement, which has one tag.
    """

    sets: Sequence[tuple[Value, ...]]
    statements: Sequence[ParameterizedStatement] = ()
    of: Sequence[int] = ()
    is_one: bool = False


@dataclass(slots=True)
class Execution:
    """One statement being executed in a session."""

    services: Services
    transaction: SessionTransaction
    variables: Variables
    notice: Callable[[SqlError, Severity], None]
    parameters: Sequence[Value] = ()
    alone: bool = False
    """The statement is its whole transaction."""
    is_large: bool = False
    """Whether what is done with its plan is done in a thread (`coordinator/large_work.py`)."""
    has_awaited: bool = False
    """Whether the next attempt has waited for upstreams already (Y2 of `statement_recency.py`)."""
    runs: "StatementRuns | None" = None
    """Several runs of the statement, to be done at once."""
    bind_context: Callable[[], BindContext] | None = None
    """The context that the statement was bound in, for expressions that its tables store."""
    filled: Mapping[int, Mapping[int, RowDefault]] = field(
        default_factory=dict[int, Mapping[int, RowDefault]]
    )
    """Columns, by their table's oid, that get values of sequences when rows are written."""
    planned: tuple[ParameterizedStatement, Catalog] | None = None
    """What it was bound to, and under which catalog, once it is."""
    engines: list[str] = field(default_factory=list[str])
    """Those that its plans were given to."""
    computed: tuple[int, ExactView] | None = None
    """The view whose rows it writes without an attach, and of which time they are."""
    left_values: dict[tuple[int, int], list[int]] = field(
        default_factory=dict[tuple[int, int], list[int]]
    )
    """Values that a short way has taken for it, by the sequence's oid and version: it takes them
    first (V4 of `short_writes/given_values.py`)."""

    def context(self) -> BindContext:
        """The context that the statement was bound in."""
        assert self.bind_context is not None, "a statement knows what it is bound in"
        return self.bind_context()

    def catalog(self) -> Catalog:
        """The catalog that the statement was bound to."""
        return self.context().catalog

    def stored_plan(self, table: Table, part: Hashable, make: Callable[[Binding], Plan]) -> Plan:
        """The plan of an expression that the table stores, as `make` binds it for this statement;
        `part` tells the table's expressions apart. The transaction rests on what it is made of.
        """
        shared = not self.transaction.changed_catalog
        context, stored = self.context(), self.services.plans.stored
        found = stored.plan(table, part, context, make, shared=shared)
        self.rest_on(found.uses)
        return found.plan

    def rest_on(self, names: Collection[NameDependency]) -> None:
        """Let the transaction rest on these names (A6 of `coordinator/core/validation.py`)."""
        if names:
            self.services.coordination.looked_up(self.transaction.id, names)

    def run(self, plan: Plan, inputs: Mapping[RelationId, ShardView]) -> Run:
        """The plan with this statement's parameters."""
        tell = self.transaction.waits_for_engine
        return Run(plan, inputs, self.parameters, tell_waiting=tell)

    async def views(
        self,
        tables: Sequence[Table],
        *,
        as_of: Timestamp | None = None,
        plan: Plan | None = None,
        skipped: Mapping[int, LockMode] | None = None,
    ) -> dict[RelationId, ShardView]:
        """Pinned inputs; at the transaction's own timestamp they enter its read set, as far as
        `plan` depends on them (None: whole). `skipped`: by oid, tables without the rows that others
        hold against a mode; these enter no read set.
        """
        inputs = await self._system_views(tables, plan)
        tables = [table for table in tables if not is_server_state(table)]
        if not tables:
            return inputs
        ts = as_of if as_of is not None else await self.transaction.timestamp(tables)
        predicates: Sequence[RowPredicate | None] = ()
        if as_of is None and plan is not None:
            found = partial(read_predicates, plan, tables, self.parameters)
            predicates = await aside_if(self.is_large, found)
        coordination = self.services.coordination
        views = await coordination.scan(
            self.transaction.id, ts, tables, predicates, skipped=skipped or {}
        )
        for table, view in zip(tables, views, strict=True):
            inputs[RelationId(table.shard)] = view
        return inputs

    async def with_catalog(
        self, plan: Plan, inputs: Mapping[RelationId, ShardView]
    ) -> Mapping[RelationId, ShardView]:
        """The inputs, and the system catalogs that a stored expression reads."""
        named = {scan.relation for scan in scans(plan) if is_system_relation(scan.relation)}
        found = [system_catalog(*relation.split(".", 1)) for relation in sorted(named)]
        if not found:
            return inputs
        return {**inputs, **await self._system_views([t for t in found if t is not None], plan)}

    async def _system_views(
        self, tables: Sequence[Table], plan: Plan | None
    ) -> dict[RelationId, ShardView]:
        """What the relations of schema `meridian` show now, all of one moment, and what those of
        pg_catalog and information_schema show of the catalog that the statement is bound with:
        the rows that the plan depends on.
        """
        shown = [table for table in tables if is_server_state(table)]
        if not shown:
            return {}
        cache, coordination = self.services.system_cache, self.services.coordination
        is_cached = [is_system_catalog(t) and not shows_sessions(t) for t in shown]
        observed = () if all(is_cached) else coordination.observe()
        sessions = () if all(is_cached) else self._sessions()
        statistics = ObservedStatistics() if all(is_cached) else self._statistics(shown)
        named = self.transaction.named_rows
        own = {} if all(is_cached) or named is None else named()
        assert self.bind_context is not None, "who reads a relation was bound"
        context = self.bind_context()
        points = {} if plan is None else self._points(plan, shown)
        states = await sequence_states(shown, context, coordination)

        def view(table: Table) -> ShardView:
            # A server starts without it, and this is a thread.
            from coordinator.pgcatalog.relations import Observed, catalog_view, observed_view

            if has_sequence_rows(table):
                return sequence_view(table, context, states)
            if shows_sessions(table):
                found = self._file_rows(table.name)
                rows = own if found is None else {**own, table.name: found}
                seen = Observed(observed, sessions, rows, statistics)
                return observed_view(table, context, seen)
            if table.oid == MATERIALIZED_VIEWS.oid:
                newest = coordination.newest_catalog
                followed = coordination.followed_views
                return rows_as_view(table, [*view_rows(newest, self.services.catch_up, followed)])
            if table.oid == CONNECTIONS.oid:
                return rows_as_view(table, [*connection_rows(context)])
            if is_system_catalog(table):
                return catalog_view(table, context, cache, points.get(table.oid))
            return relation_view(table, observed)

        # All of these are values, and there may be many tables, or files to count.
        views = await asyncio.to_thread(lambda: list(map(view, shown)))
        return {RelationId(table.shard): made for table, made in zip(shown, views, strict=True)}

    def _file_rows(self, relation: str) -> Sequence[Mapping[str, Value]] | None:
        known = self.services.sessions
        return None if known is None else known.file_rows(relation)

    def _sessions(self) -> Sequence[ObservedSession]:
        known = self.services.sessions
        return () if known is None else known.observe()

    def _statistics(self, shown: Sequence[Table]) -> ObservedStatistics:
        with_entries = any(table.name in STATEMENT_VIEWS for table in shown)
        return self.services.statistics.observe(with_entries=with_entries)

    def _points(self, plan: Plan, tables: Sequence[Table]) -> Mapping[int, Points | None]:
        """By oid, the only values with which rows of a relation matter to the plan."""
        predicates = read_predicates(plan, tables, self.parameters)
        return {
            table.oid: None if predicate is None else predicate.points
            for table, predicate in zip(tables, predicates, strict=True)
        }


Batches: TypeAlias = AsyncGenerator[pa.RecordBatch, None]


@fast_dataclass(frozen=True, slots=True)
class Done:
    """A statement without rows. `others`: the tags of its further runs (`repeated_writes.py`)."""

    tag: str
    others: tuple[str, ...] = ()


def tag_with_count(tag: str) -> Callable[[int], str]:
    """The tag of a statement whose rows are counted as they are sent."""
    return lambda count: f"{tag} {count}"


@fast_dataclass(frozen=True, slots=True)
class Rows:
    """A statement with rows; `tag` takes the number of rows that were sent. `naming`: of oids."""

    columns: tuple[OutputColumn, ...]
    batches: AsyncIterator[pa.RecordBatch]
    tag: Callable[[int], str] = field(default=tag_with_count("SELECT"))
    naming: OidNaming | None = None
    is_binary: bool = False
    """Of FETCH from a BINARY cursor, which a simple query gets in binary."""
    reader: ChangeReader | None = None
    """Of a subscription: a batch without rows says that a FETCH should end here."""


Outcome: TypeAlias = Done | Rows


async def stream_table(table: pa.Table) -> Batches:
    """A table in memory as a stream."""
    for batch in table.to_batches():
        yield batch
