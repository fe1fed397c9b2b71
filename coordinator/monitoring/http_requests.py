"""Who may ask the HTTP listener for what: the Host header, the token, loopback, the own origin.

INVARIANTS
  A1  a page that somebody visits must not read metrics: its name is not among the hosts, even if it
      resolves to this machine (DNS rebinding). A Host that is an address is nobody's name.
  A2  the token is compared in constant time. Without one only loopback is answered.
  A3  another site's page does not use the page at `/`: its Origin is not the Host, and browsers say
      `Sec-Fetch-Site`. Passwords and cookies beyond loopback are encrypted.
"""

import hmac
import secrets
from collections.abc import Collection
from ipaddress import ip_address


class HttpRules:
    """See the module. `hosts`: names that the listener answers to."""

    def __init__(self, hosts: Collection[str], token: str | None) -> None:
        self._hosts = {"localhost", *(_without_port(host).lower() for host in hosts)}
        self._token = None if token is None else token.encode()
        self._no_token = secrets.token_bytes(32)

    def refusal(
        self, *, host: str | None, local_address: str | None, authorization: str | None
    ) -> tuple[int, str] | None:
        """The status and the reason why metrics are refused; None if they are not."""
        if not self._is_known(host):
            return 421, "this name is not among http_hosts"
        if self._token is None:
            if _is_loopback(local_address):
                return None
            return 403, "metrics beyond loopback need http_token_file"
        scheme, _, given = (authorization or "").partition(" ")
        expected = self._token if scheme.lower() == "bearer" else self._no_token
        if not hmac.compare_digest(given.strip().encode(errors="replace"), expected):
            return 401, "the token is wrong, or is missing"
        return None

    def page_refusal(
        self,
        *,
        host: str | None,
        local_address: str | None,
        is_encrypted: bool,
        origin: str | None,
        site: str | None,
        acts: bool,
    ) -> tuple[int, str] | None:
        """The status and the reason why the page is refused; None if it is not (A1, A3). `site`:
        as the browser says; None: it says nothing, or it does not matter. `acts`: by POST.
        """
        if not self._is_known(host):
            return 421, "this name is not among http_hosts"
        if not is_encrypted and not _is_loopback(local_address):
            return 403, (
                "the page beyond loopback needs TLS: set ssl_cert_file and ssl_key_file, and ask"
                " for it by https"
            )
        if site not in (None, "same-origin", "none"):
            return 403, "another site asks"
        scheme, _, asking = (origin or "").lower().partition("://")
        if origin is not None and asking != (host or "").lower():
            return 403, "the Origin is another one"
        if origin is not None and is_encrypted and scheme != "https":
            return 403, "the Origin is not encrypted, so anybody may have made that page"
        if acts and origin is None:
            return 403, "the Origin is missing"
        return None

    def _is_known(self, host: str | None) -> bool:
        """A1."""
        name = _without_port(host or "").lower()
        return name in self._hosts or _is_address(name)


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if host.count(":") == 1 else host


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(address: str | None) -> bool:
    try:
        return address is not None and ip_address(address.partition("%")[0]).is_loopback
    except ValueError:
        return False
