"""Wait until all that upstreams had committed is readable here, whatever they commit meanwhile.

    AwaitUpstreams ─▶ AskUpstream ─▶ UpstreamReported ─▶ the source is read to there ─▶ reply
                          ▲                                      │
                          └────── another attempt of the source ─┘

INVARIANTS
  W1  each source is asked after the request has come. So a strict read that begins after the reply
      sees all that was committed upstream when the request was made.
  W2  a request ends: with its time, or when a source stands that only a person lets go on.
"""

from typing import Final

from coordinator.core.effects import Effect, Reply
from coordinator.core.messages.identities import RequestId
from coordinator.core.messages.replies import Refused, RefusedReason, UpstreamsReached
from coordinator.core.messages.requests import AwaitUpstreams
from coordinator.core.sources.completions import UpstreamReported
from coordinator.core.sources.effects import AskUpstream
from coordinator.core.sources.observed import shown_position
from coordinator.core.sources.running import (
    STANDING,
    AwaitedPosition,
    RecencyWait,
    RunningSource,
    SourceState,
)
from coordinator.core.state import CoreState
from storage.types import Timestamp

_AGAIN_US: Final = 200_000
"""After which an upstream that has not told its position is asked again."""


def await_upstreams(core: CoreState, message: AwaitUpstreams, now: Timestamp) -> list[Effect]:
    """Begin to wait; the sources are asked with the same step (`answer_waits`)."""
    deadline = Timestamp(now + message.timeout_us)
    left = {oid: AwaitedPosition() for oid in message.sources}
    core.sources.waits[message.request] = RecencyWait(deadline, message.timeout_us, left)
    return []


def upstream_reported(core: CoreState, message: UpstreamReported, now: Timestamp) -> None:
    """An upstream has said how far it is, or could not."""
    wait = core.sources.waits.get(message.request)
    asked = None if wait is None else wait.left.get(message.source)
    if asked is None or asked.attempt != message.attempt:
        return
    asked.position, asked.failure = message.position, message.failure
    if message.position is None:
        asked.attempt, asked.not_before = 0, Timestamp(now + _AGAIN_US)


def answer_waits(core: CoreState, now: Timestamp) -> list[Effect]:
    """Ask upstreams, and answer who has waited for them (W1, W2)."""
    effects: list[Effect] = []
    for request, wait in list(core.sources.waits.items()):
        for oid, asked in list(wait.left.items()):
            source = core.sources.get(oid)
            if source is None or source.state is SourceState.IDLE or _is_reached(source, asked):
                # One that is gone, or feeds nothing any more, brings nothing.
                del wait.left[oid]
            elif source.state in STANDING:
                effects += _ended(core, request, _stands(source))
                break
            elif now >= wait.deadline:
                effects += _ended(core, request, _too_late(wait, source, asked))
                break
            elif _is_to_be_asked(source, asked, now):
                asked.attempt = source.attempt
                effects.append(AskUpstream(oid, source.attempt, request))
        else:
            if not wait.left:
                effects += _ended(core, request, UpstreamsReached())
    return effects


def _is_to_be_asked(source: RunningSource, asked: AwaitedPosition, now: Timestamp) -> bool:
    if source.state is not SourceState.RUNNING or asked.position is not None:
        return False
    return asked.attempt != source.attempt and now >= asked.not_before


def _is_reached(source: RunningSource, asked: AwaitedPosition) -> bool:
    wanted = asked.position
    return wanted is not None and all(source.read_to.get(p, 0) >= n for p, n in wanted.items())


def _ended(core: CoreState, request: RequestId, value: UpstreamsReached | Refused) -> list[Effect]:
    del core.sources.waits[request]
    return [Reply(request, value)]


def _stands(source: RunningSource) -> Refused:
    message = f'source "{source.definition.name}" is {source.state}'
    if source.reason:
        message = f"{message}: {source.reason}"
    hint = source.hint or "ALTER SOURCE .. RESUME goes on, or SET real_time_recency = off."
    return Refused(RefusedReason.OTHER, "57014", message, None, hint)


def _too_late(wait: RecencyWait, source: RunningSource, asked: AwaitedPosition) -> Refused:
    seconds = wait.timeout_us / 1_000_000
    message = (
        f'source "{source.definition.name}" has not come to what upstream has within {seconds:g} s'
    )
    there = "is not known" if asked.position is None else f"is {shown_position(asked.position)}"
    here = shown_position(source.read_to) if source.read_to else "nowhere"
    detail = f"Upstream's position {there}, the source is at {here} and {source.state}."
    why = asked.failure or source.reason
    if why:
        detail = f"{detail} It says: {why}."
    hint = "A larger real_time_recency_timeout waits longer."
    return Refused(RefusedReason.OTHER, "57014", message, detail, hint)
