"""Rules of pg_hba.conf without a PostgreSQL beside: TLS, host names, files that are broken."""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface, ip_address
from pathlib import Path

import pytest

from coordinator.authentication.hba import parse_hba, read_hba_file
from coordinator.authentication.hba_addresses import ClientAddress, IpAddress, IpInterface
from coordinator.authentication.hba_file import FileBroken
from coordinator.authentication.hba_rules import (
    ClientCertificate,
    ClientName,
    ConnectionFacts,
    HbaMethod,
    HbaRules,
    rule_refusal,
)
from coordinator.authentication.ident_map import IdentMap, identity_mismatch, parse_mappings
from sql.errors import SqlError

_BUILT_IN = "local all all peer\nhost all all samehost trust\n"


def _rules(text: str) -> HbaRules:
    return parse_hba(text, "pg_hba.conf", has_tls=True).rules()


class _Names:
    """A zone that can lie, and counts who asks."""

    def __init__(self, name: str | None, *addresses: str) -> None:
        self._name = name
        self._addresses = [ip_address(address) for address in addresses]
        self.asked: list[str] = []

    def name_of(self, address: IpAddress) -> str | None:
        self.asked.append(str(address))
        return self._name

    def addresses_of(self, name: str) -> Iterable[IpAddress]:
        self.asked.append(name)
        return self._addresses


def _from(
    address: str,
    *,
    tls: bool = False,
    names: _Names | None = None,
    interfaces: tuple[IpInterface, ...] = (),
) -> ConnectionFacts:
    client = ClientAddress(ip_address(address), names, interfaces)
    return ConnectionFacts("alice", "shop", client, is_tls=tls)


def _method(rules: HbaRules, facts: ConnectionFacts) -> str | None:
    rule = rules.match(facts)
    return None if rule is None else rule.method.value


def test_tls_chooses_among_the_types() -> None:
    rules = _rules(
        "hostgssenc all all all reject\nhostssl all all 10.0.0.0/8 cert\n"
        "hostnossl all all 10.0.0.0/8 reject\nhost all all 11.0.0.0/8 scram-sha-256\n"
        "hostnogssenc all all 12.0.0.0/8 trust"
    )
    assert [_method(rules, _from("10.1.1.1", tls=tls)) for tls in (True, False)] == [
        "cert",
        "reject",
    ]
    for tls in (True, False):
        assert _method(rules, _from("11.1.1.1", tls=tls)) == "scram-sha-256"
        assert _method(rules, _from("12.1.1.1", tls=tls)) == "trust"
        assert _method(rules, _from("13.1.1.1", tls=tls)) is None
    assert _method(rules, ConnectionFacts("alice", "shop")) is None


def test_a_network_holds_addresses_of_its_family_only() -> None:
    rules = _rules("host all all 0.0.0.0/0 trust")
    assert _method(rules, _from("1.2.3.4")) == "trust"
    assert _method(rules, _from("::1")) is None
    assert _method(rules, _from("::ffff:1.2.3.4")) is None
    rules = _rules("host all all 2001:db8::/33 trust")
    assert _method(rules, _from("2001:db8:7fff::1")) == "trust"
    assert _method(rules, _from("2001:db8:8000::1")) is None


def test_the_hosts_own_addresses_and_networks() -> None:
    own = (IPv4Interface("192.0.2.7/24"), IPv6Interface("2001:db8::7/64"))
    same_host, same_network = (_rules(f"host all all {w} trust") for w in ("samehost", "samenet"))
    cases = {
        "192.0.2.7": ("trust", "trust"),
        "192.0.2.8": (None, "trust"),
        "192.0.3.7": (None, None),
        "2001:db8::7": ("trust", "trust"),
        "2001:db8::8": (None, "trust"),
        "2001:db8:0:1::7": (None, None),
    }
    for address, methods in cases.items():
        facts = _from(address, interfaces=own)
        assert (_method(same_host, facts), _method(same_network, facts)) == methods
    assert _method(same_network, _from("192.0.2.7")) is None
    assert same_host.asks_for_interfaces
    assert not _rules("host all all all trust").asks_for_interfaces


@pytest.mark.parametrize(
    ("name", "addresses", "pattern", "is_match"),
    [
        ("db.example.org", ["192.0.2.7"], "db.example.org", True),
        ("DB.Example.ORG", ["192.0.2.7"], "db.EXAMPLE.org", True),
        ("db.example.org", ["192.0.2.7"], ".example.org", True),
        ("db.example.org", ["192.0.2.7"], "example.org", False),
        ("example.org", ["192.0.2.7"], ".example.org", False),
        ("badexample.org", ["192.0.2.7"], ".example.org", False),
        ("db.example.org", ["192.0.2.8"], "db.example.org", False),
        ("db.example.org", ["2001:db8::1", "192.0.2.7"], "db.example.org", True),
        ("db.example.org", [], "db.example.org", False),
        (None, ["192.0.2.7"], "db.example.org", False),
    ],
)
def test_a_host_name_counts_if_it_has_the_address(
    name: str | None, addresses: list[str], pattern: str, is_match: bool
) -> None:
    rules = _rules(f"host all all {pattern} trust")
    assert rules.asks_for_host_names
    names = _Names(name, *addresses)
    assert _method(rules, _from("192.0.2.7", names=names)) == ("trust" if is_match else None)
    assert _method(rules, _from("192.0.2.7")) is None


def test_names_are_looked_up_once_and_late() -> None:
    text = "host all all a.example trust\nhost all all .org reject\nhost all all db.example.org md5"
    names = _Names("db.example.org", "192.0.2.9")
    assert _method(_rules(text), _from("192.0.2.7", names=names)) is None
    assert names.asked == ["192.0.2.7", "db.example.org"]
    unnamed = _Names(None)
    assert _method(_rules(text), _from("192.0.2.7", names=unnamed)) is None
    assert unnamed.asked == ["192.0.2.7"]
    early = _Names("x")
    assert _method(_rules("host all all all trust\n" + text), _from("::1", names=early)) == "trust"
    assert not early.asked


def test_refusals_say_what_postgresql_says() -> None:
    rule = _rules("host all all all reject").rules[0]
    local = ConnectionFacts("a", "b")
    assert rule_refusal(None, local) == SqlError(
        "28000",
        'no pg_hba.conf entry for host "[local]", user "a", database "b", no encryption',
    )
    assert rule_refusal(None, _from("::1", tls=True)).message == (
        'no pg_hba.conf entry for host "::1", user "alice", database "shop", SSL encryption'
    )
    assert rule_refusal(rule, _from("192.0.2.1")).message == (
        'pg_hba.conf rejects connection for host "192.0.2.1", user "alice", database "shop",'
        " no encryption"
    )


def test_options_are_on_the_rule() -> None:
    (cert, scram, peer) = _rules(
        "hostssl all all all cert clientname=DN map=m\n"
        "hostssl all all all md5 clientcert=verify-ca\nlocal all all ident map=n"
    ).rules
    assert cert.options.user_map == "m"
    assert cert.options.client_name is ClientName.DISTINGUISHED_NAME
    assert cert.options.certificate is ClientCertificate.VERIFY_FULL
    assert (scram.method, scram.method.is_scram) == (HbaMethod.MD5, True)
    assert scram.options.certificate is ClientCertificate.VERIFY_CA
    assert (peer.method, peer.options.user_map, peer.address) == (HbaMethod.PEER, "n", None)


def test_rules_that_are_built_in() -> None:
    rules = parse_hba(_BUILT_IN, "built-in rules", has_tls=False).rules()
    assert _method(rules, ConnectionFacts("alice", "shop")) == "peer"
    loopback = (IPv4Interface("127.0.0.1/8"),)
    assert _method(rules, _from("127.0.0.1", interfaces=loopback)) == "trust"
    assert _method(rules, _from("192.0.2.1", interfaces=loopback)) is None


def test_one_broken_line_and_there_are_no_rules(tmp_path: Path) -> None:
    place = tmp_path / "pg_hba.conf"
    (tmp_path / "more.conf").write_text("\nhost all all all ldap\n")
    place.write_text("local all all trust\nhost all\ninclude more.conf\n")
    file = read_hba_file(place, has_tls=True)
    with pytest.raises(FileBroken) as caught:
        file.rules()
    more = tmp_path / "more.conf"
    assert str(caught.value).split("\n") == [
        f'configuration file "{place}" contains errors',
        f'end-of-line before role specification (line 2 of configuration file "{place}")',
        'invalid authentication method "ldap": not supported by this build'
        f' (line 2 of configuration file "{more}")',
    ]
    assert [(one.file, one.line) for one in caught.value.problems] == [
        (str(place), 2),
        (str(more), 2),
    ]


def test_files_that_are_not_there_or_empty(tmp_path: Path) -> None:
    missing = tmp_path / "missing.conf"
    with pytest.raises(FileBroken) as caught:
        read_hba_file(missing, has_tls=True)
    assert str(caught.value) == f'could not open file "{missing}": No such file or directory'
    with pytest.raises(FileBroken, match="Is a directory"):
        read_hba_file(tmp_path, has_tls=True)
    missing.write_text("# nothing\n")
    with pytest.raises(FileBroken, match="contains no entries"):
        read_hba_file(missing, has_tls=True).rules()
    assert parse_mappings("# nothing\n", "ident").mappings() == IdentMap()


@pytest.mark.parametrize("line", [b"local \xff all trust", b"local a\0b all trust"])
def test_text_that_is_no_utf8_breaks_its_line(tmp_path: Path, line: bytes) -> None:
    place = tmp_path / "pg_hba.conf"
    place.write_bytes(b"local all all trust\n" + line + b"\n")
    good, bad = read_hba_file(place, has_tls=True).entries
    assert good.error is None
    assert (bad.error or "").startswith('invalid byte sequence for encoding "UTF8": 0x')
    bad.line.text.encode()


def test_files_include_each_other_ten_deep(tmp_path: Path) -> None:
    for number in range(12):
        line = f"local d{number} all trust\ninclude f{number + 1}\n"
        (tmp_path / f"f{number}").write_text(line)
    entries = read_hba_file(tmp_path / "f0", has_tls=True).entries
    assert [entry.error for entry in entries[:11]] == [None] * 11
    (error,) = (entry.error for entry in entries[11:])
    assert error == f'could not open file "{tmp_path / "f11"}": maximum nesting depth exceeded'


def test_without_a_map_the_names_are_the_same() -> None:
    mappings = parse_mappings("m x all", "ident").mappings()

    def allows(name: str | None, system_user: str) -> bool:
        return mappings.allows(
            name, system_user=system_user, role="alice", is_member=lambda role: role == "alice"
        )

    assert [allows(None, who) for who in ("alice", "Alice", "x")] == [True, False, False]
    assert [allows("", who) for who in ("alice", "x")] == [True, False]
    assert [allows("m", who) for who in ("alice", "x")] == [False, True]
    assert not allows("n", "x")
    assert identity_mismatch(None, system_user="x", role="alice") == (
        "provided user name (alice) and authenticated user name (x) do not match"
    )
    assert identity_mismatch("n", system_user="x", role="alice") == (
        'no match in usermap "n" for user "alice" authenticated as "x"'
    )


def test_replication_is_the_name_of_a_database_only_in_quotes() -> None:
    def facts(database: str) -> ConnectionFacts:
        return ConnectionFacts("alice", database)

    rules = _rules("local replication all trust")
    assert _method(rules, facts("replication")) is None
    assert _method(_rules('local "replication" all trust'), facts("replication")) == "trust"
    assert _method(_rules("local all all trust"), facts("replication")) == "trust"


@pytest.mark.parametrize("name", ["all", "+staff", "/alice"])
def test_what_a_group_of_a_pattern_becomes_is_a_name(name: str) -> None:
    """A certificate for `all` must not open every role."""
    mappings = parse_mappings(r"m /^(.*)@example\.org$ \1", "ident").mappings()

    def allows(role: str) -> bool:
        return mappings.allows(
            "m", system_user=f"{name}@example.org", role=role, is_member=lambda _: True
        )

    assert allows(name)
    assert not allows("alice")


def test_an_address_is_shown_as_postgresql_shows_it() -> None:
    shown = {
        "::ffff:1.2.3.4": "::ffff:1.2.3.4",
        "::1.2.3.4": "::1.2.3.4",
        "::1": "::1",
        "2001:DB8::1": "2001:db8::1",
    }
    for address, text in shown.items():
        facts = ConnectionFacts("a", "b", ClientAddress(IPv6Address(address)))
        assert facts.host == text
    assert ConnectionFacts("a", "b", ClientAddress(IPv4Address("1.2.3.4"))).host == "1.2.3.4"
