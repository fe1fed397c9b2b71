"""Visits of the page: a cookie for each session of somebody who has logged in.

INVARIANTS
  V1  a visit ends when nobody has asked for VISIT_IDLE_S, at the latest after VISIT_S, or with its
      session; its session ends with it.
  V2  VISITS_MAX of them are there at once: for one more the one that was idle the longest goes.
  V3  the cookie and the token are 32 random bytes each. The cookie's hash is kept, not the cookie.
"""

import asyncio
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Final

from coordinator.monitoring.page_sessions import PageSession

VISIT_IDLE_S: Final = 600.0
"""Larger: a browser that was left has a session for longer."""
VISIT_S: Final = 12 * 3600.0
"""Larger: a cookie that was stolen is good for longer."""
VISITS_MAX: Final = 32
"""Larger: more sessions for browsers, of `connections_max`."""


@dataclass(eq=False, slots=True)
class Visit:
    """One log-in. `token`: what its actions bring, beside the cookie."""

    session: PageSession
    token: str
    latest: float
    """By the loop's clock."""
    timer: asyncio.TimerHandle | None = None

    def has_token(self, given: str) -> bool:
        """Whether that is its token; in constant time."""
        return hmac.compare_digest(given.encode(errors="replace"), self.token.encode())


class Visits:
    """See the module."""

    def __init__(self) -> None:
        self._by_hash: dict[bytes, Visit] = {}
        """By the time of the last request."""

    def begin(self, session: PageSession) -> tuple[Visit, str]:
        """A visit, and its cookie."""
        if len(self._by_hash) >= VISITS_MAX:
            self._end(next(iter(self._by_hash)))
        cookie = secrets.token_urlsafe(32)
        latest = asyncio.get_running_loop().time() + VISIT_S
        visit = Visit(session, secrets.token_urlsafe(32), latest)
        self._keep(_hash(cookie), visit)
        return visit, cookie

    def find(self, cookie: str | None) -> Visit | None:
        """The visit of a cookie; it is not idle."""
        key = _hash(cookie or "")
        visit = self._by_hash.get(key)
        if visit is None:
            return None
        if visit.session.is_over:
            self._end(key)
            return None
        self._keep(key, visit)
        return visit

    def end(self, cookie: str | None) -> None:
        """Somebody leaves."""
        self._end(_hash(cookie or ""))

    def end_all(self) -> None:
        """The listener closes."""
        for key in list(self._by_hash):
            self._end(key)

    def _keep(self, key: bytes, visit: Visit) -> None:
        """V1, V2: the ones that were idle the longest are the first."""
        loop = asyncio.get_running_loop()
        if visit.timer is not None:
            visit.timer.cancel()
        visit.timer = loop.call_at(min(loop.time() + VISIT_IDLE_S, visit.latest), self._end, key)
        self._by_hash.pop(key, None)
        self._by_hash[key] = visit

    def _end(self, key: bytes) -> None:
        visit = self._by_hash.pop(key, None)
        if visit is not None:
            if visit.timer is not None:
                visit.timer.cancel()
            visit.session.leave()


def _hash(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode(errors="replace")).digest()
