"""Steps that several subscribers are told are read once, and encoded once.

    (statement, its parameters, after, upto) ─▶ batches, and up to where ─▶ the same to everybody

A thousand subscribers of one statement are woken by one commit, and stand at one timestamp. The
first of them reads the step. The others get its batches, and the bytes that they were encoded to.

INVARIANTS
  G1  a step is shared by subscriptions that were bound as one statement, with equal parameters, and
      by those only that stand at one timestamp: what they are told depends on nothing else.
  G2  all that is kept is bounded: STEPS_MAX steps of SHARED_BYTES_MAX. A larger step is streamed to
      each subscriber (F4).
  G3  nobody waits for one who was stopped: it is read again by the next.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from coordinator.core.change_streams.steps import ChangeStep
from coordinator.transaction.following import Encodings
from sql.statements.bound import Subscribe
from sql.types.sql_type import Value
from storage.types import Timestamp

STEPS_MAX: Final = 64
"""Larger: more memory. Smaller: subscribers who are a little behind read what others have read."""

SHARED_BYTES_MAX: Final = 256 << 10
"""Larger: more memory for what may never be asked for again. Smaller: steps of many rows are read
by every subscriber."""


@dataclass(frozen=True, slots=True)
class SharedStep:
    """The rows of a step, which comes to its end at `reached`. `rest`: what comes behind the first
    batches, if it is too large to share. `encodings`: of the one batch, by format.
    """

    subscribe: Subscribe
    reached: Timestamp
    batches: tuple[pa.RecordBatch, ...]
    rest: AsyncGenerator[pa.RecordBatch, None] | None = None
    encodings: Encodings = field(default_factory=Encodings)

    def shared(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, Encodings] | None:
        """The batch with its encodings; None if there are others, which have none."""
        return (batch, self.encodings) if self.rest is None and len(self.batches) == 1 else None


@dataclass(frozen=True, slots=True)
class StepKey:
    """Which step of what (G1)."""

    statement: int
    parameters: tuple[Value, ...]
    after: Timestamp
    upto: Timestamp


class SharedSteps:
    """See the module; one for all sessions of a server."""

    def __init__(self) -> None:
        # None: it is too large (G2).
        self._steps: OrderedDict[StepKey, SharedStep | None] = OrderedDict()
        self._reading: dict[StepKey, asyncio.Event] = {}

    async def find(self, key: StepKey) -> SharedStep | None:
        """A step that somebody has read, or reads at this moment."""
        while key not in self._steps:
            reading = self._reading.get(key)
            if reading is None:
                return None
            await reading.wait()
        return self._steps[key]

    async def read(
        self,
        key: StepKey,
        subscribe: Subscribe,
        reached: Timestamp,
        batches: AsyncGenerator[pa.RecordBatch, None],
    ) -> SharedStep:
        """A step that nobody has read; its owner reads the rest of it."""
        with self._announced(key):
            first: list[pa.RecordBatch] = []
            nbytes = 0
            async for batch in batches:
                if not batch.num_rows:
                    continue
                first.append(batch)
                nbytes += batch.nbytes
                if nbytes > SHARED_BYTES_MAX:
                    self._keep(key, None)
                    return SharedStep(subscribe, reached, tuple(first), batches)
            step = SharedStep(subscribe, reached, _together(first))
            self._keep(key, step)
            return step

    @contextmanager
    def _announced(self, key: StepKey) -> Generator[None]:
        """Others wait meanwhile, also if it fails (G3)."""
        if key in self._reading:
            yield
            return
        self._reading[key] = asyncio.Event()
        try:
            yield
        finally:
            self._reading.pop(key).set()

    def _keep(self, key: StepKey, step: SharedStep | None) -> None:
        self._steps[key] = step
        while len(self._steps) > STEPS_MAX:
            self._steps.popitem(last=False)


class StepSharing:
    """What one subscription shares with others."""

    def __init__(
        self, shared: SharedSteps, subscribe: Subscribe, parameters: tuple[Value, ...] = ()
    ) -> None:
        try:
            hash(parameters)
        except TypeError:
            shared = SharedSteps()  # they cannot be compared: nobody else has this one
            parameters = ()
        self._shared = shared
        self._subscribe = subscribe
        self._parameters = parameters

    async def find(self, step: ChangeStep) -> SharedStep | None:
        """A step that somebody has read, or reads at this moment."""
        return await self._shared.find(self._key(step))

    async def read(
        self, step: ChangeStep, reached: Timestamp, batches: AsyncGenerator[pa.RecordBatch, None]
    ) -> SharedStep:
        """A step that nobody has read."""
        key = self._key(step)
        del step  # F4
        return await self._shared.read(key, self._subscribe, reached, batches)

    def _key(self, step: ChangeStep) -> StepKey:
        return StepKey(id(self._subscribe), self._parameters, step.after, step.upto)


def _together(batches: list[pa.RecordBatch]) -> tuple[pa.RecordBatch, ...]:
    """As one batch at most."""
    if len(batches) < 2:
        return tuple(batches)
    return tuple(pa.Table.from_batches(batches).combine_chunks().to_batches())
