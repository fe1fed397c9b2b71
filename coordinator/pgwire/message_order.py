"""Which message may come when: the states of a conversation, and what becomes of a message in each.

    STARTUP ──StartupMessage──▶ AUTHENTICATING ──AuthenticationOk──▶ READY ◀──CopyDone, CopyFail─┐
       │ CancelRequest                                    ErrorResponse │ ▲ Sync    │ CopyInResponse
       ▼                                                  (extended)    ▼ │         ▼            │
     CLOSED ◀─── FATAL, Terminate, violations ───────────────────────  SKIPPING    COPY_IN ──────┘

The machine that moves from one state to the next is `protocol.py`.
"""

from enum import Enum, IntEnum, auto
from typing import Final, get_args

from coordinator.pgwire.messages import (
    CancelRequest,
    CopyData,
    CopyDone,
    CopyFail,
    Flush,
    FrontendMessage,
    GssEncRequest,
    Malformed,
    PasswordMessage,
    SslRequest,
    StartupMessage,
    Sync,
    Terminate,
)


class State(IntEnum):
    """Where the conversation stands."""

    STARTUP = auto()
    AUTHENTICATING = auto()
    READY = auto()
    SKIPPING = auto()
    COPY_IN = auto()
    CLOSED = auto()


class MessageFate(Enum):
    """What becomes of a message."""

    TAKE = auto()
    DROP = auto()
    REFUSE = auto()


_COPY: Final = (CopyData, CopyDone, CopyFail)

# The first row that names its class; `object` names all.
_RULES: Final[dict[State, tuple[tuple[tuple[type, ...], MessageFate], ...]]] = {
    State.STARTUP: (
        ((StartupMessage, CancelRequest, SslRequest, GssEncRequest), MessageFate.TAKE),
        ((object,), MessageFate.REFUSE),
    ),
    State.AUTHENTICATING: (
        ((PasswordMessage, Terminate), MessageFate.TAKE),
        ((object,), MessageFate.REFUSE),
    ),
    State.READY: (
        # A client may still be sending a COPY that has failed.
        (_COPY, MessageFate.DROP),
        ((PasswordMessage,), MessageFate.REFUSE),
        ((object,), MessageFate.TAKE),
    ),
    State.SKIPPING: (
        ((Sync, Terminate, Malformed), MessageFate.TAKE),
        ((object,), MessageFate.DROP),
    ),
    State.COPY_IN: (
        # Libraries send Flush and Sync out of habit behind Execute.
        ((*_COPY, Flush, Sync), MessageFate.TAKE),
        ((object,), MessageFate.REFUSE),
    ),
    State.CLOSED: (((object,), MessageFate.DROP),),
}


def _fate_of(state: State, kind: type[FrontendMessage]) -> MessageFate:
    return next(fate for classes, fate in _RULES[state] if issubclass(kind, classes))


MESSAGE_FATES: Final = {
    state: {kind: _fate_of(state, kind) for kind in get_args(FrontendMessage)} for state in State
}
"""By state and class of the message."""
