"""pg_hba.conf: parse its lines into rules, and load it, whole or not at all.

    type  database  user  [address [mask]]  method  [name=value ..]

INVARIANTS
  D2 of the package: a file with a broken line gives no rules.
  B1  a line is a rule, or has PostgreSQL's reason why it is none: a method that we lack is one.
  B2  `password` needs hostssl: the client sends the password itself. PostgreSQL does not insist.
  B3  a rule that can never match is loaded, and its `remark` says why.

`md5` is scram-sha-256: all our verifiers are SCRAM's. `ident` under `local` is `peer`, as in
PostgreSQL.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from coordinator.authentication.hba_addresses import (
    AddressKind,
    HbaAddress,
    mask_of_bits,
    numeric_address,
)
from coordinator.authentication.hba_file import (
    FileBroken,
    FileLine,
    LineProblem,
    read_file_lines,
    split_file_lines,
)
from coordinator.authentication.hba_options import OptionRefused, parse_options
from coordinator.authentication.hba_rules import ConnectionType, HbaMethod, HbaRule, HbaRules
from coordinator.authentication.hba_tokens import HbaToken, InvalidToken

_LACKING: Final = ("ident", "gss", "sspi", "pam", "bsd", "ldap", "radius", "oauth")
_ADDRESS_WORDS: Final = {
    kind.value: kind for kind in (AddressKind.ALL, AddressKind.SAME_HOST, AddressKind.SAME_NETWORK)
}


@dataclass(frozen=True, slots=True)
class HbaEntry:
    """A line with the rule that it is, or the reason why it is none."""

    line: FileLine
    rule: HbaRule | None
    error: str | None


@dataclass(frozen=True, slots=True)
class HbaFile:
    """All lines of a file and those that it includes."""

    name: str
    entries: tuple[HbaEntry, ...]

    def rules(self) -> HbaRules:
        """The rules. Raises FileBroken, with all problems, if a line is none, or there is none."""
        problems = tuple(
            LineProblem(entry.line.file, entry.line.number, entry.error)
            for entry in self.entries
            if entry.error is not None
        )
        if problems:
            raise FileBroken(f'configuration file "{self.name}" contains errors', problems)
        if not self.entries:
            raise FileBroken(f'configuration file "{self.name}" contains no entries')
        return HbaRules([entry.rule for entry in self.entries if entry.rule is not None])


def read_hba_file(path: Path, *, has_tls: bool) -> HbaFile:
    """The lines of a file. `has_tls`: the server has a certificate. Raises FileBroken if it cannot
    be read.
    """
    return _parsed(str(path.absolute()), read_file_lines(path), has_tls=has_tls)


def parse_hba(text: str, name: str, *, has_tls: bool) -> HbaFile:
    """The lines of a text that is in no file: rules that are built in."""
    return _parsed(name, split_file_lines(text, name), has_tls=has_tls)


def _parsed(name: str, lines: tuple[FileLine, ...], *, has_tls: bool) -> HbaFile:
    return HbaFile(name, tuple(_entry(line, has_tls=has_tls) for line in lines))


def _entry(line: FileLine, *, has_tls: bool) -> HbaEntry:
    if line.error is not None:
        return HbaEntry(line, None, line.error)
    try:
        return HbaEntry(line, _rule(line, has_tls=has_tls), None)
    except (_NoRule, InvalidToken, OptionRefused) as error:
        return HbaEntry(line, None, str(error))


class _NoRule(Exception):
    """A line is no rule; `args[0]` is PostgreSQL's reason."""


def _rule(line: FileLine, *, has_tls: bool) -> HbaRule:
    fields = iter(line.fields)
    kind = _connection_type(_only(next(fields), "connection type"))
    databases = _compiled(next(fields, None), "database")
    users = _compiled(next(fields, None), "role")
    address = None if kind is ConnectionType.LOCAL else _address(fields)
    name = _only(_needed(fields, "authentication method"), "authentication type").text
    method = _method(name, kind)
    rest = tuple(token for tokens in fields for token in tokens)
    options = parse_options(rest, kind, method)
    remark = None
    if kind is ConnectionType.HOST_SSL and not has_tls:
        remark = "hostssl record cannot match because SSL is disabled"
    elif kind is ConnectionType.HOST_GSS_ENC:
        build = "GSSAPI is not supported by this build"
        remark = f"hostgssenc record cannot match because {build}"
    return HbaRule(
        line.file, line.number, line.text, kind, databases, users, address, method, options, remark
    )


def _needed(fields: Iterator[tuple[HbaToken, ...]], what: str) -> tuple[HbaToken, ...]:
    """The next field."""
    tokens = next(fields, None)
    if tokens is None:
        raise _NoRule(f"end-of-line before {what}")
    return tokens


def _only(tokens: tuple[HbaToken, ...], what: str) -> HbaToken:
    """The one token of a field."""
    if len(tokens) > 1:
        raise _NoRule(f"multiple values specified for {what}")
    assert tokens, "a field has a token"
    return tokens[0]


def _compiled(tokens: tuple[HbaToken, ...] | None, what: str) -> tuple[HbaToken, ...]:
    if tokens is None:
        raise _NoRule(f"end-of-line before {what} specification")
    return tuple(token.compiled() for token in tokens)


def _connection_type(token: HbaToken) -> ConnectionType:
    try:
        return ConnectionType(token.text)
    except ValueError:
        raise _NoRule(f'invalid connection type "{token.text}"') from None


def _method(name: str, kind: ConnectionType) -> HbaMethod:
    is_local = kind is ConnectionType.LOCAL
    if name == "ident" and is_local:
        return HbaMethod.PEER
    if name in _LACKING:
        raise _NoRule(f'invalid authentication method "{name}": not supported by this build')
    try:
        method = HbaMethod(name)
    except ValueError:
        raise _NoRule(f'invalid authentication method "{name}"') from None
    if method is HbaMethod.PEER and not is_local:
        raise _NoRule("peer authentication is only supported on local sockets")
    over_tls_only = (HbaMethod.CERT, HbaMethod.PASSWORD)
    if method in over_tls_only and kind is not ConnectionType.HOST_SSL:  # B2
        raise _NoRule(f"{method} authentication is only supported on hostssl connections")
    return method


def _address(fields: Iterator[tuple[HbaToken, ...]]) -> HbaAddress:
    """The address, with the mask if that is a field of its own."""
    token = _only(_needed(fields, "IP address specification"), "host address")
    if not token.is_quoted and token.text in _ADDRESS_WORDS:
        return HbaAddress(_ADDRESS_WORDS[token.text])
    text, slash, bits = token.text.partition("/")
    network = numeric_address(text)
    if network is None:
        if slash:
            words = "specifying both host name and CIDR mask is invalid"
            raise _NoRule(f'{words}: "{token.text}"')
        return HbaAddress(AddressKind.HOST_NAME, name=text)
    if slash:
        mask = mask_of_bits(bits, network.version)
        if mask is None:
            raise _NoRule(f'invalid CIDR mask in address "{token.text}"')
        return HbaAddress(AddressKind.NETWORK, network, mask)
    text = _only(_needed(fields, "netmask specification"), "netmask").text
    mask = numeric_address(text)
    if mask is None:
        raise _NoRule(f'invalid IP mask "{text}": Name or service not known')
    if mask.version != network.version:
        raise _NoRule("IP address and mask do not match")
    return HbaAddress(AddressKind.NETWORK, network, mask)
