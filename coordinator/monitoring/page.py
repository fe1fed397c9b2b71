"""The page at `/`: a file, its data as JSON, log-in by a password, and actions.

    GET /, /page.css, /page.js                  files, for everybody
    GET /page/state                             who has logged in, the token of actions
    POST /page/login, /page/logout              a cookie comes, goes
    GET /page/data                              the answers to `PAGE_QUERIES`, as who has logged in
    POST /page/cancel, /page/terminate          {"pid": 7}, with the token

INVARIANTS
  P1  everything but files follows `HttpRules.page_refusal`: Host from a list, TLS beyond loopback,
      nothing that another site's page asks for. There are no CORS headers.
  P2  the cookie is HttpOnly and SameSite=Strict, and with TLS Secure. It is no permission to act:
      actions bring the token, which only the page can read.
  P3  under `trust`, where nobody has proved anything, the page shows and does not act.
  P4  no text of a request comes into SQL: only the number of a process.
  P5  a body has BODY_BYTES_MAX at most, is JSON and says so.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import PayloadEncodingError

from coordinator.monitoring.http_requests import HttpRules
from coordinator.monitoring.observation import ServerObserver
from coordinator.monitoring.page_queries import ACTION_QUERIES, PAGE_QUERIES
from coordinator.monitoring.page_sessions import HttpPeer, PageSessions
from coordinator.monitoring.page_visits import VISIT_S, Visit, Visits
from sql.errors import SqlError

BODY_BYTES_MAX: Final = 4096
"""Larger: more memory for who sends nonsense. Smaller: a long password does not fit."""
PID_MAX: Final = (1 << 31) - 1
TOKEN_HEADER: Final = "X-Meridian-Token"
TLS_FACTS: Final = "meridian_tls"
"""What a transport tells of its encryption (`server/http_tls.py`)."""

_FILES: Final = {
    "/": ("page.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}
_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    # A page without any referrer would send no Origin with some requests.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class _Refused(Exception):
    """A request is refused: `args` are the status and the reason."""


class Page:
    """See the module."""

    def __init__(self, observer: ServerObserver, rules: HttpRules) -> None:
        self._observer = observer
        self._rules = rules
        self._visits = Visits()
        folder = Path(__file__).parent / "static"
        self._files = {
            path: ((folder / name).read_bytes(), kind) for path, (name, kind) in _FILES.items()
        }
        self._routes: Mapping[str, tuple[str, Callable[[web.BaseRequest], Awaitable[web.Response]]]]
        self._routes = {
            "/page/state": ("GET", self._state),
            "/page/data": ("GET", self._data),
            "/page/login": ("POST", self._log_in),
            "/page/logout": ("POST", self._log_out),
            **{f"/page/{name}": ("POST", self._act) for name in ACTION_QUERIES},
        }

    def close(self) -> None:
        """End all sessions."""
        self._visits.end_all()

    def method(self, path: str) -> str | None:
        """The method by which a path is asked for; None: it is not of the page."""
        if path in self._files:
            return "GET"
        return self._routes[path][0] if path in self._routes else None

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """The answer to a request for a path of the page."""
        try:
            response = await self._answered(request)
        except _Refused as refused:
            status, reason = refused.args
            response = _json({"error": reason}, status)
        response.headers.update(_HEADERS)
        return response

    async def _answered(self, request: web.BaseRequest) -> web.Response:
        peer, headers = _peer(request), request.headers
        name = request.get_extra_info("sockname")
        refusal = self._rules.page_refusal(
            host=headers.get("Host"),
            local_address=name[0] if isinstance(name, tuple) else None,
            is_encrypted=peer.tls is not None,
            origin=headers.get("Origin"),
            site=None if request.path in self._files else headers.get("Sec-Fetch-Site"),
            acts=request.method == "POST",
        )
        if refusal is not None:
            raise _Refused(*refusal)
        if request.path in self._files:
            body, kind = self._files[request.path]
            return web.Response(body=body, content_type=kind, charset="utf-8")
        return await self._routes[request.path][1](request)

    # --- who it is ------------------------------------------------------------------------------

    def _sessions(self) -> PageSessions:
        served = self._observer.served
        if served is None or not self._observer.health.is_ready:
            raise _Refused(503, f"the server is {self._observer.health.state.value}")
        return served.pages

    def _visit(self, request: web.BaseRequest) -> Visit:
        visit = self._visits.find(request.cookies.get(_cookie_name(request)))
        if visit is None:
            raise _Refused(401, "nobody has logged in, or for too long ago")
        return visit

    async def _state(self, request: web.BaseRequest) -> web.Response:
        sessions = self._sessions()
        visit = self._visits.find(request.cookies.get(_cookie_name(request)))
        return _json(_shown_state(sessions, visit))

    async def _log_in(self, request: web.BaseRequest) -> web.Response:
        given, sessions = await _body(request), self._sessions()
        user, password = given.get("user"), given.get("password", "")
        if not isinstance(user, str) or not isinstance(password, str) or not user:
            raise _Refused(400, "a name and a password are texts")
        if not _is_text(user + password):
            raise _Refused(400, "the name or the password is no text")
        try:
            session = await sessions.log_in(user, password, _peer(request))
        except SqlError as error:
            raise _Refused(_status(error), error.message) from error
        name = _cookie_name(request)
        self._visits.end(request.cookies.get(name))
        visit, cookie = self._visits.begin(session)
        response = _json(_shown_state(sessions, visit))
        response.set_cookie(
            name, cookie, max_age=int(VISIT_S), path="/", httponly=True, samesite="Strict",
            secure=_peer(request).tls is not None,
        )  # fmt: skip
        return response

    async def _log_out(self, request: web.BaseRequest) -> web.Response:
        self._check_token(request, self._visit(request))
        self._visits.end(request.cookies.get(_cookie_name(request)))
        response = _json({})
        response.del_cookie(_cookie_name(request), path="/")
        return response

    # --- what it sees and does ------------------------------------------------------------------

    async def _data(self, request: web.BaseRequest) -> web.Response:
        self._sessions()
        visit, found = self._visit(request), dict[str, object]()
        for name, query in PAGE_QUERIES.items():
            if request.transport is None:
                break  # nobody waits for the rest
            result = await visit.session.ask(query)
            found[name] = {
                "columns": result.columns, "rows": result.rows,
                "error": result.error, "sqlstate": result.sqlstate,
            }  # fmt: skip
        return _json(found)

    async def _act(self, request: web.BaseRequest) -> web.Response:
        self._sessions()
        visit = self._visit(request)
        self._check_token(request, visit)
        if not visit.session.is_proved:
            raise _Refused(403, "nobody was asked for a password, so the page only shows")
        pid = (await _body(request)).get("pid")
        if not isinstance(pid, int) or isinstance(pid, bool) or not 0 < pid <= PID_MAX:
            raise _Refused(400, "pid is a number")
        query = ACTION_QUERIES[request.path.rpartition("/")[2]].format(pid=pid)
        result = await visit.session.ask(query)
        if result.error is not None:
            raise _Refused(403 if result.sqlstate == "42501" else 400, result.error)
        return _json({"done": [list(row) for row in result.rows] == [["t"]]})

    def _check_token(self, request: web.BaseRequest, visit: Visit) -> None:
        if not visit.has_token(request.headers.get(TOKEN_HEADER, "")):
            raise _Refused(403, "the page's token is wrong, or is missing")


def _shown_state(sessions: PageSessions, visit: Visit | None) -> Mapping[str, object]:
    if visit is None:
        return {"open": sessions.is_open, "user": None}
    return {
        "open": sessions.is_open,
        "user": visit.session.user,
        "acts": visit.session.is_proved,
        "token": visit.token,
    }


def _status(error: SqlError) -> int:
    """Of a log-in that is refused: the client's fault, or too much at once."""
    return 401 if error.sqlstate.startswith("28") else 503


def _is_text(given: str) -> bool:
    """Whether it could come by the wire: UTF-8 without NUL."""
    try:
        given.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in given


def _cookie_name(request: web.BaseRequest) -> str:
    """Cookies of a host are those of all its ports: each server has its own."""
    name = f"meridian-{_peer(request).ports[1]}"
    return name if _peer(request).tls is None else f"__Host-{name}"


def _peer(request: web.BaseRequest) -> HttpPeer:
    ends = [request.get_extra_info(name) for name in ("peername", "sockname")]
    if not all(isinstance(end, tuple) for end in ends):
        raise _Refused(400, "the connection is gone")
    return HttpPeer(ends[0][0], (ends[0][1], ends[1][1]), request.get_extra_info(TLS_FACTS))


async def _body(request: web.BaseRequest) -> Mapping[str, object]:
    """P5."""
    if request.content_type != "application/json":
        raise _Refused(415, "the body is JSON")
    body = b""
    try:
        while piece := await request.content.readany():
            body += piece
            if len(body) > BODY_BYTES_MAX:
                raise _Refused(413, "the body is too long")
    except (OSError, PayloadEncodingError) as error:
        raise _Refused(400, "the body has no end") from error
    try:
        found = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _Refused(400, "the body is not JSON") from error
    if not isinstance(found, dict):
        raise _Refused(400, "the body is no object")
    return found


def _json(value: object, status: int = 200) -> web.Response:
    return web.Response(status=status, text=json.dumps(value), content_type="application/json")
