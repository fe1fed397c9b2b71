"""A browser's requests to the page, without a browser: cookies, origin and token by hand."""

import http.client
import http.cookies
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.session.monitoring.http_client import PATIENCE_S


@dataclass(frozen=True)
class PageAnswer:
    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def told(self) -> Any:
        return json.loads(self.text)


class PageClient:
    """One browser. `tls`: it asks by https, and trusts these."""

    def __init__(self, port: int, tls: ssl.SSLContext | None = None) -> None:
        self._port = port
        self._tls = tls
        self.cookies = http.cookies.SimpleCookie()
        self.token = ""
        scheme = "http" if tls is None else "https"
        self.origin = f"{scheme}://localhost:{port}"

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str | None] | None = None,
    ) -> PageAnswer:
        """As a browser's page would; `headers` on top, None for one that is left out."""
        usual: dict[str, str | None] = {
            "Host": self.origin.partition("://")[2],
            "Sec-Fetch-Site": "same-origin",
            "Cookie": "; ".join(f"{m.key}={m.value}" for m in self.cookies.values()) or None,
        }
        if method == "POST":
            usual |= {"Origin": self.origin, "Content-Type": "application/json"}
            usual["X-Meridian-Token"] = self.token or None
        usual |= headers or {}
        sent = {name: value for name, value in usual.items() if value is not None}
        connection = (
            http.client.HTTPConnection("localhost", self._port, timeout=PATIENCE_S)
            if self._tls is None
            else http.client.HTTPSConnection(
                "localhost", self._port, timeout=PATIENCE_S, context=self._tls
            )
        )
        try:
            connection.request(method, path, body, headers=sent)
            response = connection.getresponse()
            answer = PageAnswer(
                response.status, dict(response.getheaders()), response.read().decode()
            )
        finally:
            connection.close()
        if "Set-Cookie" in answer.headers:
            self.cookies.load(answer.headers["Set-Cookie"])
        return answer

    def get(self, path: str, **headers: str | None) -> PageAnswer:
        return self.request("GET", path, None, headers)

    def post(
        self, path: str, body: object, headers: Mapping[str, str | None] | None = None
    ) -> PageAnswer:
        return self.request("POST", path, json.dumps(body).encode(), headers)

    def log_in(self, user: str, password: str = "") -> PageAnswer:
        answer = self.post("/page/login", {"user": user, "password": password})
        if answer.status == 200:
            self.token = answer.told["token"]
        return answer

    def section(self, name: str) -> list[dict[str, str | None]]:
        """The rows of a section, which has no error."""
        answer = self.get("/page/data")
        assert answer.status == 200, answer.text
        found = answer.told[name]
        assert found["error"] is None, found
        return [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
