"""pg_hba.conf and pg_ident.conf: PostgreSQL's own views of the same files are the reference."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import sql
from psycopg.rows import dict_row, tuple_row

from coordinator.authentication.file_rules import hba_file_rules, ident_file_mappings
from coordinator.authentication.hba import parse_hba, read_hba_file
from coordinator.authentication.ident_map import read_ident_file
from coordinator.authentication.verifier import is_password_of, parse_verifier
from tests.postgres.authentication.lines import ALIKE, IDENT, OURS, TLS, TLS_ROWS
from tests.support.servers import Postgres, postgres_server

_PLACES = {
    "names": 'one two\nthree,four # five\n"all"\n',
    "one": "single",
    "nested": "@names six",
    "itself": "@itself",
    "empty": "# nothing\n",
    "broken": "a\n@missing\n",
    "parts/one.conf": "local one all trust\n\nlocal two all reject\n",
    "parts/two.conf": "local three all trust\nlocal @../names all trust\n",
    "parts/.hidden.conf": "local hidden all trust\n",
    "parts/other.txt": "local other all trust\n",
    "parts/broken.conf": "local broken\n",
    "parts/folder.conf/x": "",
    "itself.conf": "local all all trust\ninclude itself.conf\n",
    "idents/one.conf": "n user role\n",
}


class _Reference:
    """PostgreSQL with a connection; its views read the files anew each time."""

    def __init__(self, server: Postgres, folder: Path) -> None:
        self.folder = folder
        self.connection = psycopg.connect(server.dsn, autocommit=True, row_factory=dict_row)
        for name, text in _PLACES.items():
            path = folder / name
            if path.parent != folder and not path.parent.exists():
                path.parent.mkdir(parents=True)
                path.parent.chmod(0o755)
            path.write_text(text)
            path.chmod(0o644)
        self.hba = folder / "pg_hba.conf"
        self.stock = self.hba.read_text()
        self.ident = folder / "pg_ident.conf"

    def rows(self, view: str) -> list[dict[str, Any]]:
        return self.connection.execute(f"select * from {view}".encode()).fetchall()


@pytest.fixture(scope="module")
def reference() -> Iterator[_Reference]:
    with postgres_server() as server:
        reference = _Reference(server, server.directory)
        yield reference
        reference.connection.close()


def test_lines_are_rules_or_have_postgresqls_reason(reference: _Reference) -> None:
    reference.hba.write_text(ALIKE)
    expected = [_without_ssl(row) for row in reference.rows("pg_hba_file_rules")]
    found = hba_file_rules(read_hba_file(reference.hba, has_tls=False))
    assert len(expected) > 150
    assert sum(row["error"] is None for row in expected) > 60
    for row, ours in zip(expected, found, strict=True):
        assert ours == row


def _without_ssl(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a PostgreSQL without TLS as one with TLS shows it, where it is switched off."""
    error = row["error"]
    if error == 'invalid authentication method "cert": not supported by this build':
        error = "cert authentication is only supported on hostssl connections"
    return {**row, "error": error}


def test_lines_that_are_rules_for_postgresql_only() -> None:
    file = parse_hba("\n".join(OURS), "ours", has_tls=True)
    assert [entry.error for entry in file.entries] == list(OURS.values())


def test_lines_for_tls_are_as_recorded() -> None:
    rows = hba_file_rules(parse_hba(TLS, "pg_hba.conf", has_tls=True))
    assert rows == json.loads(TLS_ROWS.read_text())


def test_without_tls_its_lines_are_loaded_with_a_remark() -> None:
    file = parse_hba("hostssl all all all trust\nlocal all all peer", "f", has_tls=False)
    assert len(file.rules().rules) == 2
    (tls, local) = hba_file_rules(file)
    assert tls["error"] == "hostssl record cannot match because SSL is disabled"
    assert (tls["rule_number"], local["rule_number"]) == (None, 1)


@pytest.mark.parametrize("method", ["trust", "scram-sha-256", "md5", "reject"])
def test_the_stock_file_loads(reference: _Reference, method: str) -> None:
    reference.hba.write_text(reference.stock.replace("trust\n", f"{method}\n"))
    file = read_hba_file(reference.hba, has_tls=False)
    assert hba_file_rules(file) == reference.rows("pg_hba_file_rules")
    rules = file.rules().rules
    assert len(rules) == 6
    assert {rule.method for rule in rules} == {method}


def test_mappings_are_those_of_postgresql(reference: _Reference) -> None:
    reference.ident.write_text(IDENT)
    expected = reference.rows("pg_ident_file_mappings")
    assert ident_file_mappings(read_ident_file(reference.ident)) == expected
    assert len(expected) > 20


_WORDS = st.sampled_from(
    ["local", "host", "hostnossl", "hostnogssenc", "hostgssenc", "all", "sameuser", "replication",
     "trust", "reject", "md5", "scram-sha-256", "peer", "gss", "map=x", "map=", "x=y", "=",
     "10.0.0.0/8", "10.0.0.0", "255.0.0.0", "::1/128", "::1", "ffff::", "samenet", "samehost",
     ".example", "/a+", "/(", "/[[:alpha:]]", "+x", "@names", "@one", "@missing", "include",
     "include_if_exists", "include_dir", "parts", "parts/one.conf", '"', '""', '"a b"', "#", ",",
     "\\", " ", "\t", "\r", "\\\n", "é"]
)  # fmt: skip
_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\n"), max_size=6)
_ADDRESS = st.from_regex(r"[0-9a-fx.:%/]{1,12}", fullmatch=True)
_LINE = st.lists(_WORDS | _TEXT | _ADDRESS, max_size=9).map(" ".join) | st.lists(
    _WORDS | _TEXT, max_size=9
).map("".join)
_RULE = st.builds(
    "host {} {} {} {}".format, _WORDS | _TEXT, _WORDS | _TEXT, _ADDRESS | _WORDS, _WORDS
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_LINE | _RULE, min_size=40, max_size=80))
def test_any_lines_are_what_they_are_for_postgresql(
    reference: _Reference, lines: list[str]
) -> None:
    reference.hba.write_bytes("\n".join(lines).encode())
    expected = [_without_ssl(row) for row in reference.rows("pg_hba_file_rules")]
    assert hba_file_rules(read_hba_file(reference.hba, has_tls=False)) == expected


_PASSWORD = st.text(
    st.sampled_from(
        "a1é\u00ad\u200b\u3000\u2168\u00aa\u0627\u0628\u0661\u0221\ufdd0\u0340\u0007ﬁ한"
    )
    | st.characters(codec="utf-8", exclude_characters="\0"),
    min_size=1,
    max_size=5,
)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_PASSWORD, min_size=100, max_size=200))
def test_passwords_are_prepared_as_by_postgresql(
    reference: _Reference, passwords: list[str]
) -> None:
    with reference.connection.cursor(row_factory=tuple_row) as cursor:
        cursor.execute("set scram_iterations = 1; drop role if exists x; create role x")
        for password in passwords:
            cursor.execute(sql.SQL("alter role x password {}").format(password))
            cursor.execute("select rolpassword from pg_authid where rolname = 'x'")
            (text,) = cursor.fetchone() or ("",)
            verifier = parse_verifier(text)
            assert verifier is not None
            assert is_password_of(password, verifier), ascii(password)


@given(st.binary(max_size=200))
def test_any_bytes_are_lines_or_errors(tmp_path_factory: Any, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.conf"
    path.write_bytes(content)
    for row in hba_file_rules(read_hba_file(path, has_tls=True)):
        assert (row["error"] is None) == (row["rule_number"] is not None)
    for row in ident_file_mappings(read_ident_file(path)):
        assert (row["error"] is None) == (row["map_number"] is not None)
