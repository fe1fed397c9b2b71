"""What the page needs of the server: somebody logs in by a password, and asks by SQL.

    page ── PageSessions.log_in ─▶ PageSession ── ask(query) ─▶ PageResult

Not here: how a session is made (`server/page_session.py`), who may ask for what over HTTP
(`page.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class HttpPeer:
    """How a browser is connected. `tls`: the server's own value for its encryption, if any."""

    address: str
    ports: tuple[int | None, int | None]
    """The browser's, and the server's."""
    tls: object | None


@dataclass(frozen=True, slots=True)
class PageResult:
    """The answer to a query, as texts. `error`: why there is none."""

    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str | None]] = ()
    error: str | None = None
    sqlstate: str | None = None


class PageSession(Protocol):
    """A session of somebody who has logged in."""

    @property
    def user(self) -> str:
        """The role."""
        ...

    @property
    def is_proved(self) -> bool:
        """Whether a password was asked for."""
        ...

    @property
    def is_over(self) -> bool:
        """Whether it was ended, by whomever."""
        ...

    async def ask(self, query: str) -> PageResult:
        """Run one query after the other."""
        ...

    def leave(self) -> None:
        """End it, as a client that says so."""
        ...


class PageSessions(Protocol):
    """Makes them."""

    @property
    def is_open(self) -> bool:
        """Whether the built-in rules trust this machine: no password is asked for."""
        ...

    async def log_in(self, user: str, password: str, peer: HttpPeer) -> PageSession:
        """Let somebody in. Raises SqlError, after a while if the password is wrong."""
        ...
