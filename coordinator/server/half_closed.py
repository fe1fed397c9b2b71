"""Tell a client that has shut its side, and still reads, from one that has left.

It is sent a parameter's status that it knows, less and less often: the second write to a client
that has left fails, and its connection is lost.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from coordinator.pgwire.codec import encode_backend
from coordinator.pgwire.messages import ParameterStatus

PROBE_FIRST_S: Final = 0.02
PROBE_S: Final = 1.0
"""The longest time between two. Larger: statements of clients that died hold locks longer."""

STATUS: Final = encode_backend(ParameterStatus("integer_datetimes", "on"))


def probe_later(probe: Callable[[bytes | memoryview], bool], wait_s: float = PROBE_FIRST_S) -> None:
    """Call `probe` with the message after a while, again and again until it is False."""

    def now() -> None:
        if probe(STATUS):
            probe_later(probe, min(4 * wait_s, PROBE_S))

    asyncio.get_running_loop().call_later(wait_s, now)
