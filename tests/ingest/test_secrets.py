"""Which secrets may be read and which hosts reached; and that no error has a password."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.postgres.libpq_link import LibpqLink, PostgresAddress, conninfo
from ingest.reader import ReaderFailure
from ingest.secrets import (
    EnvironmentSecret,
    FileSecret,
    SecretRules,
    allowed_address,
    read_connection_secret,
)
from tests.ingest.upstream_database import UpstreamDatabase, run

ENVIRONMENT = {"MERIDIAN_SECRET_SHOP": "s3cret", "PATH": "/bin"}


def refused(code: str, action: object) -> str:
    with pytest.raises(ReaderFailure) as failed:
        action()  # type: ignore[operator]
    assert failed.value.code == code
    return f"{failed.value.message} {failed.value.hint}"


def test_only_listed_variables_are_read() -> None:
    place = EnvironmentSecret("MERIDIAN_SECRET_SHOP")
    for listed in ("MERIDIAN_SECRET_SHOP", "MERIDIAN_SECRET_*", "*"):
        rules = SecretRules(secret_names=(listed,))
        assert read_connection_secret(place, rules, ENVIRONMENT) == "s3cret"
    for rules in (SecretRules(), SecretRules(secret_names=("MERIDIAN", "SECRET_*"))):
        told = refused(
            "42501", lambda rules=rules: read_connection_secret(place, rules, ENVIRONMENT)
        )
        assert "secret_names" in told
    rules = SecretRules(secret_names=("MISSING",))
    refused(
        "58P01", lambda: read_connection_secret(EnvironmentSecret("MISSING"), rules, ENVIRONMENT)
    )


def test_only_files_below_the_folder_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    folder.mkdir()
    (folder / "shop").write_text("s3cret\n")
    (tmp_path / "outside").write_text("other")
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "large").write_bytes(b"x" * (70 << 10))
    (folder / "binary").write_bytes(b"\xff\xfe")
    rules = SecretRules(secret_files_dir=str(folder))

    def read(path: str, rules: SecretRules = rules) -> str:
        return read_connection_secret(FileSecret(path), rules, {})

    assert read("shop") == "s3cret"
    assert read(str(folder / "shop")) == "s3cret"
    for outside in ("../outside", str(tmp_path / "outside"), "link", ".", ""):
        assert "secret_files_dir" in refused("42501", lambda path=outside: read(path))
    assert "secret_files_dir" in refused("42501", lambda: read("shop", SecretRules()))
    refused("58P01", lambda: read("missing"))
    refused("54000", lambda: read("large"))
    refused("22021", lambda: read("binary"))


ALLOWED = [
    ("loopback", "localhost", ["127.0.0.1", "::1"]),
    ("loopback", "127.9.9.9", ["127.9.9.9"]),
    ("loopback", "h", ["::ffff:127.0.0.1"]),
    ("10.0.0.0/8", "db", ["10.1.2.3"]),
    ("fe80::/10", "db", ["fe80::1%eth0"]),
    ("DB.example", "db.example", ["8.8.8.8"]),
    ("8.8.8.8", "h", ["8.8.8.8"]),
    ("*", "h", ["8.8.8.8"]),
]
REFUSED = [
    ("loopback", "h", ["8.8.8.8"]),
    ("loopback", "h", ["127.0.0.1", "169.254.169.254"]),
    ("10.0.0.0/8", "h", ["11.0.0.1"]),
    ("example", "db.example", ["8.8.8.8"]),
    ("loopback", "127.0.0.1", ["10.0.0.1"]),
]


@pytest.mark.parametrize(("entry", "host", "addresses"), ALLOWED)
def test_hosts_that_are_listed(entry: str, host: str, addresses: list[str]) -> None:
    rules = SecretRules(source_hosts=(entry,))
    assert allowed_address(host, addresses, rules) == addresses[0]


@pytest.mark.parametrize(("entry", "host", "addresses"), REFUSED)
def test_hosts_that_are_not(entry: str, host: str, addresses: list[str]) -> None:
    rules = SecretRules(source_hosts=(entry,))
    assert "source_hosts" in refused("42501", lambda: allowed_address(host, addresses, rules))


def test_sockets_and_unknown_hosts() -> None:
    for path in ("/tmp", "@abstract"):
        refused("42501", lambda path=path: allowed_address(path, [], SecretRules()))
    refused("08001", lambda: allowed_address("h", [], SecretRules()))


PASSWORD = "pa'ss w\\ord=x"


def test_no_error_has_the_password(database: UpstreamDatabase) -> None:
    """Whatever goes wrong: host, role, database, TLS, and what libpq says of it."""
    wrong = [
        {"user": "nobody"},
        {"database": "none"},
        {"port": 1},
        {"ssl_mode": "require"},
        {"ssl_mode": PASSWORD},
        {"host_address": "nonsense"},
        {"user": PASSWORD},
        {"database": PASSWORD},
    ]

    async def scenario() -> None:
        for others in wrong:
            address = database.address(password=PASSWORD, **others)
            assert PASSWORD not in repr(address)
            with pytest.raises(ReaderFailure) as failed:
                await LibpqLink.connect(address, "feed", replication=True)
            told = f"{failed.value!r} {failed.value.message} {failed.value.hint}"
            assert PASSWORD not in told
            assert failed.value.code in ("08001", "28P01", "28000")

    run(scenario())


def test_an_address_is_quoted() -> None:
    address = PostgresAddress("h", "d' host='evil", "u", password=PASSWORD)
    text = conninfo(address.parameters("feed", replication=False)).decode()
    assert r"dbname='d\' host=\'evil'" in text
    assert r"password='pa\'ss w\\ord=x'" in text


def test_a_password_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither is one of a password file: only what was given is there."""
    parameters = PostgresAddress("h", "d", "u").parameters("feed", replication=False)
    assert parameters["password"] == ""
    assert not Path(parameters["passfile"]).exists()
