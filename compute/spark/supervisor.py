"""Keep one JVM running: start it in the background, and again when it dies.

    starting ──prepared──▶ ready ──process ends──▶ dead ──back-off──▶ starting ..
       └──────failed────────────────────────────▶ dead

INVARIANTS
  S1  `current()` is the JVM that is, or will next be, ready. When that JVM dies a new one takes its
      place, and only then `gone` of the old one is set: a caller that waited for `gone` never gets
      the dead JVM again.
  S2  nothing here blocks a caller: launching, preparing and waiting happen in the supervisor's
      thread, which is also the thread that the JVM's life depends on (J1 of `jvm.py`).
  S3  after `close` there is no JVM and there will be none.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Final, Generic, TypeVar

from compute.executor import EngineUnavailable
from compute.spark.class_archive import ClassArchive
from compute.spark.jvm import Jvm, JvmSettings, find_java, launch

log = logging.getLogger(__name__)

T = TypeVar("T")

BACK_OFF_SECONDS: Final = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Waits before the next start, by the number of deaths in a row. A JVM that served is started at
once."""
ARCHIVE_DELAY_SECONDS: Final = 20.0
"""Time after the start until the class archive is built; earlier would compete with the first
queries."""


class JvmState(StrEnum):
    """The state of the supervised JVM."""

    STARTING = "starting"
    READY = "ready"
    DEAD = "dead"


class Generation(Generic[T]):
    """The life of one JVM, as futures that only the supervisor sets or cancels."""

    def __init__(self) -> None:
        self.ready: Future[T] = Future()
        self.gone: Future[None] = Future()


class JvmSupervisor(Generic[T]):
    """See the module. `prepare` turns a new JVM into the value that callers wait for; it may
    fail.
    """

    def __init__(
        self,
        settings: JvmSettings,
        prepare: Callable[[Jvm], T],
        *,
        archive_directory: Path | None = None,
        archive_delay_s: float = ARCHIVE_DELAY_SECONDS,
    ) -> None:
        self._settings = settings
        self._prepare = prepare
        self._archive_directory = archive_directory
        self._archive_delay_s = archive_delay_s
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._current: Generation[T] = Generation()
        self._state = JvmState.STARTING
        self._jvm: Jvm | None = None
        self.starts = 0
        self._thread = threading.Thread(target=self._run, name="jvm-supervisor", daemon=True)
        self._archiver: threading.Thread | None = None
        self._thread.start()

    @property
    def state(self) -> JvmState:
        """For status pages and metrics."""
        return self._state

    @property
    def pid(self) -> int | None:
        """The process id of the JVM, if there is one."""
        jvm = self._jvm
        return None if jvm is None else jvm.pid

    def current(self) -> Generation[T]:
        """The JVM that is ready or will be (S1)."""
        with self._lock:
            return self._current

    def close(self) -> None:
        """End the JVM and the thread (S3)."""
        self._closing.set()
        jvm = self._jvm
        if jvm is not None:
            jvm.stop()
        self._thread.join()
        if self._archiver is not None:
            self._archiver.join()
        self._renew(EngineUnavailable("the engine is shut down"), forever=True)

    def _run(self) -> None:
        failures = 0
        while not self._closing.is_set():
            if self._closing.wait(BACK_OFF_SECONDS[min(failures, len(BACK_OFF_SECONDS) - 1)]):
                return
            served = self._live()
            failures = 0 if served else failures + 1

    def _live(self) -> bool:
        """Run one JVM from launch to death; whether it was ever ready."""
        self._state = JvmState.STARTING
        jvm: Jvm | None = None
        ready = False
        try:
            jvm = self._launch()
            self._jvm = jvm
            # `close` sets the event before it looks for a JVM: one of the two sees the other.
            if self._closing.is_set():
                raise EngineUnavailable("the engine is shutting down")
            prepared = self._prepare(jvm)
            ready = True
            self._state = JvmState.READY
            log.info("jvm ready pid=%s", jvm.pid)
            self.current().ready.set_result(prepared)
            code = jvm.wait()
            if not self._closing.is_set():
                log.warning("jvm died pid=%s code=%s", jvm.pid, code)
            self._renew(None)
        # A task boundary: whatever went wrong, those who wait are told and the next start is tried.
        except Exception as error:
            if not self._closing.is_set():
                log.warning("jvm did not start", exc_info=error)
            if jvm is not None:
                jvm.kill()
                jvm.wait()
            reason = error if isinstance(error, EngineUnavailable) else None
            self._renew(reason or EngineUnavailable("spark did not start"))
        finally:
            self._state = JvmState.DEAD
            self._jvm = None
            if jvm is not None:
                jvm.disconnect()
        return ready

    def _launch(self) -> Jvm:
        self.starts += 1
        settings = self._settings
        if self._archive_directory is None:
            return launch(settings, self._closing)
        archive = ClassArchive(self._archive_directory, find_java(settings.java_home))
        options = (*settings.options, *archive.options())
        jvm = launch(replace(settings, options=options), self._closing)
        if self._archiver is None and not archive.path.exists():
            self._archiver = threading.Thread(
                target=self._build, args=(archive,), name="jvm-archive", daemon=True
            )
            self._archiver.start()
        return jvm

    def _build(self, archive: ClassArchive) -> None:
        if self._closing.wait(self._archive_delay_s):
            return
        try:
            if archive.build(self._closing):
                log.info("class archive made")
        except OSError as error:
            # Starts stay slow; nothing else depends on it.
            log.warning("class archive not made", exc_info=error)

    def _renew(self, error: EngineUnavailable | None, *, forever: bool = False) -> None:
        """Begin a new generation; callers that still wait for the old one get `error`."""
        following: Generation[T] = Generation()
        if forever:
            following.ready.set_exception(EngineUnavailable("the engine is shut down"))
        with self._lock:
            old, self._current = self._current, following
        if not old.ready.done():
            old.ready.set_exception(error or EngineUnavailable("the jvm died"))
        old.gone.set_result(None)
