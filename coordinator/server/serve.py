"""`meridian serve`: assemble the parts, print `ready`, shut down in order.

    ports ─▶ lock, open stash and store ─▶ recover ─▶ accept ─▶ `ready` ─▶ Spark, if eager
    SIGTERM ─▶ no new connections ─▶ sessions end ─▶ flush ─▶ engine, stash closed ─▶ exit 0
    SIGTERM again ─▶ at once
    SIGTERM before `ready` ─▶ start-up is abandoned ─▶ exit 0

INVARIANTS
  U1  the ports are taken before anything is opened, everything is opened before the epoch is taken:
      a server that cannot start changes nothing. Who connects early waits (L4 of `ports.py`).
  U2  a driver that ends by itself ends the process: every session gets 57P01, the exit code is 1.
      So does a deposed coordinator, at the latest when it next asks the stash (D4 of `driver.py`).
  U3  a signal ends the process also if stash or disk are unreachable: acknowledged commits are
      durable, and the next start brings them into the tables. The exit code is 1 then.
  U4  it ends within `shutdown_grace_s`, `shutdown_flush_s` and STOP_S, whatever runs: a thread that
      computes, an engine that does not answer, a loop that stands. The clock of this runs without
      Python.
"""

import asyncio
import faulthandler
import gc
import logging
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import FrameType
from typing import Final, NoReturn, TypeVar

import pyarrow as pa
import uvloop

from compute.access.key_index import KeyIndex
from compute.access.row_group_cache import RowGroupCache
from compute.arrow import table_schema
from compute.executor import EngineUnavailable
from coordinator.config import Settings, SettingsError
from coordinator.core.settings import CoreSettings
from coordinator.core.views.deltas import MaintainViews, ViewsMaintained
from coordinator.driver.driver import MaintainEffect
from coordinator.driver.sources import SourceComponents
from coordinator.driver.timelines import Timelines
from coordinator.driver.upstreams import Upstreams
from coordinator.execution.context import ExecutionLimits, Services
from coordinator.execution.in_process import ReferenceInProcess
from coordinator.execution.parquet_spooler import ParquetSpooler
from coordinator.large_work import SWITCH_SECONDS, THREAD_STACK_BYTES
from coordinator.memory_account import tune_allocator
from coordinator.monitoring.health import HealthState
from coordinator.monitoring.observation import ServedParts, ServerObserver
from coordinator.planning.plan_cache import PlanCache
from coordinator.server.connection import Connection
from coordinator.server.diagnostics import answering_doctor
from coordinator.server.engines import LateEngine, observed_jvm, open_engines, read_columns
from coordinator.server.first_password import take_first_password
from coordinator.server.http_listening import http_listening
from coordinator.server.log import start_logging
from coordinator.server.open_storage import Storage, open_storage
from coordinator.server.page_session import ServedPages
from coordinator.server.ports import EVERY_ADDRESS
from coordinator.server.recovery import recover_timelines
from coordinator.server.server import Server
from coordinator.server.watchdog import Watchdog
from coordinator.session.temporary_tables import drop_leftover_temporaries
from ingest.secrets import SecretRules
from sql.catalog.catalog import Table
from sql.plan.depth import RECURSION_MAX
from storage.clock import BootClock, Clock, DoubtingClock, SystemClock
from storage.errors import Fenced, StorageError
from storage.types import ShardId

log = logging.getLogger("meridian.serving")

_Error = TypeVar("_Error", bound=BaseException)

STOP_S: Final = 5.0
"""From SIGTERM to the end of the process, beyond the grace period and the flush (U4)."""
_CLEAN_END_S: Final = 0.5
"""An end that is not clean comes so long before the last moment, to choose the exit code."""

DEPOSED_EXIT_S: Final = 5.0
"""Time for a coordinator that was deposed to say so to its sessions, and to end cleanly."""


CLUSTER_BYTES_MIN: Final = 8 << 30
"""Bytes of files that are worth more machines: some ten of them are as fast as DuckDB on one."""
UNBOUNDED_BYTES: Final = 1 << 62
"""Spark on this machine alone is slower than DuckDB, however much there is to read."""

GC_THRESHOLD_OBJECTS: Final = 10_000
"""New objects between two looks for cycles. Larger: garbage that is a cycle stays longer. Smaller:
commits, which make many objects and few cycles, pay for more looks."""


_THE_REST: Final = ("coordinator.execution.utility", "sql.binder.definition_binders")
"""What statements need that a start does without: definitions, COPY, EXPLAIN."""


def schema_of(table: Table) -> pa.Schema:
    """The schema of a table's shard."""
    return table_schema(table.stored_columns, table.numbers, change_feed=table.change_feed)


@dataclass(slots=True)
class _Signals:
    """SIGTERM and SIGINT: the first asks to stop, the second stops at once. SIGHUP: reload."""

    stopping: asyncio.Event
    starting: asyncio.Task[int] | None
    """What the first one cancels, until the server is ready."""
    stop_s: float
    """Time that the process has when it is asked to stop."""
    reload: Callable[[], object] | None = None
    """What SIGHUP asks for, once somebody may connect."""
    seen: bool = False
    """The first signal has come, whether the loop knows it or not."""

    def listen(self) -> None:
        """From now on."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.received)
            # The loop hears of signals between two callbacks, this between two bytecodes of one.
            signal.signal(number, self._seen)
        loop.add_signal_handler(signal.SIGHUP, self.reload_asked)

    def _seen(self, _number: int, _frame: FrameType | None) -> None:
        if self.seen:
            # Whatever is not committed is not acknowledged; recovery does the rest.
            os._exit(1)
        self.seen = True
        # A thread that needs no interpreter, which may be held by a call that does not return (U4).
        faulthandler.dump_traceback_later(self.stop_s, exit=True)

    def reload_asked(self) -> None:
        """SIGHUP has come: files that settings name are read again."""
        if self.reload is not None:
            self.reload()

    def received(self) -> None:
        """A signal has come, and the loop goes on."""
        log.info("stopping")
        self.stopping.set()
        if self.starting is not None:
            self.starting.cancel()


def serve(settings: Settings, ports: Sequence[socket.socket]) -> NoReturn:
    """Serve at the ports, which are taken, until a signal; then the process ends.

    What there is to close is closed. The interpreter's own end would free memory and join threads
    of libraries, for as long as their last calls take (U4).
    """
    exit_code = _serve_to_the_end(settings, ports)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)


def _serve_to_the_end(settings: Settings, ports: Sequence[socket.socket]) -> int:
    from coordinator.exit_line import report_failure

    # The JVM and libraries make files too: all of them are for the owner only.
    os.umask(0o077)
    # Memory holds passwords while they are checked, and rows: a core file would keep them.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    tune_allocator()
    start_logging(settings.log_level, settings.log_format)
    if settings.is_password_shown:
        log.warning(
            "the stash's password is on the command line, where everybody on this machine reads it;"
            " use stash_password_file or PGPASSFILE"
        )
    try:
        return uvloop.run(_serve(settings, ports))
    except SettingsError as error:
        return report_failure(str(error))
    except StorageError as error:
        return report_failure(str(error))
    except BaseExceptionGroup as group:
        refused = _find_in(group, SettingsError)
        if refused is not None:
            return report_failure(str(refused))
        deposed = find_fenced(group)
        if deposed is not None:
            return report_failure(
                f"another coordinator has taken over, so this one ends: {deposed}"
            )
        log.critical("the server ends", exc_info=group)
        return report_failure(
            "the server ended after a failure; it recovers when it is started again"
        )


async def _serve(settings: Settings, ports: Sequence[socket.socket]) -> int:
    stop_s = settings.shutdown_grace_s + settings.shutdown_flush_s + STOP_S
    signals = _Signals(asyncio.Event(), asyncio.current_task(), stop_s)
    signals.listen()
    try:
        return await _start(settings, ports, signals)
    except asyncio.CancelledError:
        if not signals.stopping.is_set():
            raise
        # Before it served: starting up and standing by change nothing that matters
        # (server/recovery.py U4).
        return 0


async def _start(settings: Settings, ports: Sequence[socket.socket], signals: _Signals) -> int:
    server = Server(settings, Connection)
    await server.bind(ports)
    async with http_listening(settings, lambda: server.access.tls) as observer:
        storage = await open_storage(settings)
        observer.health.state = HealthState.RECOVERING
        settled = await _recover_and_run(server, storage, observer, signals)
    return 0 if settled else 1


async def _recover_and_run(
    server: Server, storage: Storage, observer: ServerObserver, signals: _Signals
) -> bool:
    settings = server.settings
    # What recovery makes stays: nobody need look for garbage in it until `_tune_interpreter`.
    gc.disable()
    try:
        await server.bind_socket()
        with answering_doctor(settings, storage.directory.root, observer):
            clock = DoubtingClock(SystemClock(), BootClock(), int(settings.clock_jump_max_s * 1e6))
            parts = row_access(settings, storage)
            timelines = await recover_timelines(
                storage.stash, storage.store, clock, _core_settings(settings), schema_of,
                counters=server.counters, sources=parts.for_sources(),
            )  # fmt: skip
            await storage.taken_over()
            services = build_services(settings, storage, timelines, clock, parts)
            return await _run(server, services, timelines, storage, observer, signals)
    finally:
        observer.health.state = HealthState.STOPPING
        server.close_listeners()
        await storage.close()


def _core_settings(settings: Settings) -> CoreSettings:
    return CoreSettings(view_budget_us=1_000 * settings.view_budget_ms)


@dataclass(frozen=True, slots=True)
class RowAccess:
    """What finds rows of tables, and takes many of them: of sessions and of sources."""

    key_index: KeyIndex
    spool: Callable[[ShardId, pa.Schema], ParquetSpooler]

    upstreams: Upstreams

    def for_sources(self) -> SourceComponents:
        """As sources need it."""
        return SourceComponents(self.upstreams, self.key_index, self.spool)


def row_access(settings: Settings, storage: Storage) -> RowAccess:
    """Over the files of the warehouse."""
    row_groups = RowGroupCache(lambda shard, file: storage.store.local_path(f"{shard}/{file.name}"))
    index = KeyIndex(
        partial(read_columns, storage.store),
        row_groups.read,
        row_groups.is_warm,
        row_groups.warm_row,
    )
    return RowAccess(
        index,
        lambda shard, schema: ParquetSpooler(storage.store, shard, schema),
        Upstreams(secret_rules(settings), stash=storage.cluster),
    )


def build_services(
    settings: Settings, storage: Storage, timelines: Timelines, clock: Clock, parts: RowAccess
) -> Services:
    """The services that all sessions share."""
    limits = ExecutionLimits(
        inline_bytes_max=settings.inline_bytes_max,
        transaction_inline_bytes_max=settings.transaction_inline_bytes_max,
        statements_max=settings.statements_max,
        portals_max=settings.portals_max,
        returning_bytes_max=settings.returning_bytes_max,
        attempts_max=settings.attempts_max,
        local_bytes_max=CLUSTER_BYTES_MIN if settings.has_spark_cluster else UNBOUNDED_BYTES,
        local_held_bytes_max=(settings.local_memory_mb << 20) + settings.local_spill_bytes_max,
    )
    engines = open_engines(settings, storage)
    return Services(
        coordination=timelines,
        clock=clock,
        engine=engines.main,
        in_process=ReferenceInProcess(),
        spool=parts.spool,
        plans=PlanCache(entries_max=settings.plan_cache_entries),
        key_index=parts.key_index,
        limits=limits,
        local=engines.local,
        has_warm_engine=engines.has_warm_engine,
        upstreams=parts.upstreams,
    )


def _view_maintenance(services: Services) -> MaintainEffect:
    """Runs the programs of views; a server starts without it."""
    made: list[MaintainEffect] = []

    async def maintain(effect: MaintainViews) -> ViewsMaintained:
        if not made:
            from coordinator.execution.views.maintain import ViewMaintenance

            made.append(ViewMaintenance(services).maintain)
        return await made[0](effect)

    return maintain


def secret_rules(settings: Settings) -> SecretRules:
    """Which secrets connections may read, and where they may go."""
    return SecretRules(
        _listed(settings.secret_names), settings.secret_files_dir, _listed(settings.source_hosts)
    )


def _listed(text: str) -> tuple[str, ...]:
    return tuple([part.strip() for part in text.split(",") if part.strip()])


def _tune_interpreter() -> None:
    """What is there now stays: the collector of cycles need not look at it again. Threads with
    large work let the loop run (`coordinator/large_work.py`).
    """
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD_OBJECTS)
    gc.enable()
    sys.setswitchinterval(SWITCH_SECONDS)
    sys.setrecursionlimit(RECURSION_MAX)
    threading.stack_size(THREAD_STACK_BYTES)


async def _run(
    server: Server,
    services: Services,
    timelines: Timelines,
    storage: Storage,
    observer: ServerObserver,
    signals: _Signals,
) -> bool:
    """Serve until a signal; whether everything was brought to its end (U3)."""
    watchdog = Watchdog(asyncio.get_running_loop())
    try:
        async with asyncio.TaskGroup() as group:
            driving = group.create_task(timelines.run())
            _tune_interpreter()
            await drop_leftover_temporaries(timelines)
            server.access.begin(
                await take_first_password(server.settings, storage.stash, timelines)
            )
            signals.reload = server.access.reload
            await server.accept(group, services)
            timelines.system.on_views = server.views_changed
            timelines.system.maintain_views = _view_maintenance(services)
            signals.starting = None
            watchdog.start()
            jvm = partial(observed_jvm, server.settings, services.engine)
            scratch = storage.directory.scratch
            observer.served = ServedParts(
                server.services, watchdog, jvm, scratch, ServedPages(server)
            )
            observer.health.state = HealthState.READY
            _say_ready(server.settings.addresses[0][0], server.port)
            group.create_task(_import_the_rest())
            if server.settings.starts_spark_early and isinstance(services.engine, LateEngine):
                group.create_task(_warm(services.engine))
            await signals.stopping.wait()
            observer.health.state = HealthState.STOPPING
            latest = asyncio.get_running_loop().time() + signals.stop_s - _CLEAN_END_S
            await server.stop()
            stopped = group.create_task(timelines.stop())
            settled = await _settled([stopped, driving], server.settings.shutdown_flush_s)
            settled = settled and _all_flushed(timelines)
            # Engines are closed now, and threads joined; some of them may not come to an end.
            left = latest - asyncio.get_running_loop().time()
            _end_at_latest(max(_CLEAN_END_S, min(left, STOP_S)), 0 if settled else 1)
            return settled
    except BaseExceptionGroup as group:
        if find_fenced(group) is not None:
            _end_at_latest(DEPOSED_EXIT_S)
        raise
    finally:
        observer.health.state = HealthState.STOPPING
        watchdog.stop()
        await services.engine.close()
        if services.local is not None:
            await services.local.close()


async def _settled(tasks: Sequence[asyncio.Task[None]], seconds: float) -> bool:
    """Wait until everything is in the tables; False if that takes too long (U3)."""
    _, pending = await asyncio.wait(tasks, timeout=seconds)
    if not pending:
        return True
    log.warning("not everything is in the tables yet: the next start sees to it")
    # A thread may stand still with its disk, a call with its stash.
    _end_at_latest(DEPOSED_EXIT_S)
    for task in tasks:
        task.cancel()
    return False


def _all_flushed(timelines: Timelines) -> bool:
    """Whether the tables have all that is acknowledged; says which have not (U3)."""
    behind = timelines.behind()
    if behind:
        log.warning(
            "could not be written to their tables, the stash keeps what is missing and the next"
            " start writes it: %s",
            ", ".join(behind),
        )
    return not behind


def find_fenced(group: BaseExceptionGroup[BaseException]) -> Fenced | None:
    """The Fenced error among the reasons, if another coordinator leads."""
    return _find_in(group, Fenced)


def _find_in(group: BaseExceptionGroup[BaseException], kind: type[_Error]) -> _Error | None:
    for error in group.exceptions:
        found = _find_in(error, kind) if isinstance(error, BaseExceptionGroup) else error
        if isinstance(found, kind):
            return found
    return None


def _end_at_latest(seconds: float, exit_code: int = 1) -> None:
    """Whatever a clean end waits for (an engine, a disk, a stash that is away) may stand still."""
    timer = threading.Timer(seconds, os._exit, [exit_code])
    timer.daemon = True
    timer.start()


async def _import_the_rest() -> None:
    """Import what a start does without before the first statement asks for it: then, everybody
    would wait.
    """
    for module in _THE_REST:
        await asyncio.to_thread(import_module, module)


async def _warm(engine: LateEngine) -> None:
    """Start the engine before the first query asks for it; that query tells what went wrong."""
    try:
        await engine.warm()
    except EngineUnavailable as error:
        log.warning("the engine has not started: %s", error)


def _say_ready(host: str, port: int) -> None:
    host = "127.0.0.1" if host in EVERY_ADDRESS else host
    shown = f"[{host}]" if ":" in host else host
    sys.stdout.write(f"ready postgresql://meridian@{shown}:{port}/meridian\n")
    sys.stdout.flush()
