"""Verifiers: made, read, and compared with passwords."""

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.authentication.saslprep import prepared_password
from coordinator.authentication.verifier import (
    ITERATIONS_MAX,
    STORED_ITERATIONS_MAX,
    ScramVerifier,
    is_password_of,
    mock_verifier,
    new_verifier,
    parse_verifier,
    stored_password,
)
from sql.errors import SqlError

_SALT = b"0123456789abcdef"
_KEY = "A" * 43 + "="
_SECRET = b"s" * 32
_MOCK = mock_verifier("nobody", secret=_SECRET, iterations=4096)


def _text(iterations: int | str, salt: str = "AAAA", key: str = _KEY) -> str:
    return f"SCRAM-SHA-256${iterations}:{salt}${key}:{_KEY}"


def test_a_verifier_is_read_as_it_was_written() -> None:
    made = new_verifier("secret", iterations=4096, salt=_SALT)
    assert parse_verifier(str(made)) == made
    assert str(made).startswith("SCRAM-SHA-256$4096:MDEyMzQ1Njc4OWFiY2RlZg==$")
    assert "stored_key" not in repr(made)


def test_the_verifier_of_the_rfc() -> None:
    """RFC 7677, section 3: user `user`, password `pencil`."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    made = new_verifier("pencil", iterations=4096, salt=salt)
    assert base64.b64encode(made.stored_key) == b"WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
    assert base64.b64encode(made.server_key) == b"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="


@pytest.mark.parametrize(
    "text",
    [
        "", "secret", "SCRAM-SHA-256$", _text(0), _text(-1), _text(" 1"), _text("1_0"),
        _text(STORED_ITERATIONS_MAX + 1), _text("9" * 40), _text("٤"), _text(1, salt="AAA"),
        _text(1, salt="A=A="), _text(1, key="AAAA"), _text(1) + "=", _text(1) + "\n",
        " " + _text(1), _text(1).replace("256", "1"), _text(1, salt=""),
    ],
)  # fmt: skip
def test_what_is_no_verifier(text: str) -> None:
    assert parse_verifier(text) is None


def test_costly_verifiers_are_taken_but_not_computed() -> None:
    costly = parse_verifier(_text(STORED_ITERATIONS_MAX))
    assert costly is not None
    assert costly.iterations == STORED_ITERATIONS_MAX
    assert not is_password_of("secret", costly)
    most = new_verifier("secret", iterations=ITERATIONS_MAX, salt=_SALT)
    assert is_password_of("secret", most)
    salted = hashlib.pbkdf2_hmac("sha256", b"secret", _SALT, ITERATIONS_MAX + 1)
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    beyond = ScramVerifier(ITERATIONS_MAX + 1, _SALT, b"", server_key)
    assert not is_password_of("secret", beyond)


@pytest.mark.parametrize("iterations", [0, 1023, 100_001])
def test_new_verifiers_have_bounds(iterations: int) -> None:
    with pytest.raises(SqlError) as caught:
        new_verifier("secret", iterations=iterations, salt=_SALT)
    assert caught.value.sqlstate == "22023"
    assert caught.value.message == (
        f'{iterations} is outside the valid range for parameter "scram_iterations" (1024 .. 100000)'
    )


def test_a_verifier_is_stored_as_it_is() -> None:
    made = stored_password("secret", iterations=4096, salt=_SALT)
    assert made == str(new_verifier("secret", iterations=4096, salt=_SALT))
    assert stored_password(made, iterations=5000, salt=_SALT) == made
    assert stored_password(_text(1), iterations=5000, salt=_SALT) == _text(1)
    plain = stored_password(_text(0), iterations=4096, salt=_SALT)
    assert is_password_of(_text(0), parse_verifier(plain) or _MOCK)
    with pytest.raises(SqlError, match="too many iterations"):
        stored_password(_text(STORED_ITERATIONS_MAX + 1), iterations=4096, salt=_SALT)
    with pytest.raises(SqlError, match="MD5"):
        stored_password("md5" + "0" * 32, iterations=4096, salt=_SALT)


def test_a_mock_depends_on_the_name_and_the_secret() -> None:
    assert mock_verifier("nobody", secret=_SECRET, iterations=4096) == _MOCK
    assert _MOCK.salt != mock_verifier("somebody", secret=_SECRET, iterations=4096).salt
    assert _MOCK.salt != mock_verifier("nobody", secret=b"t" * 32, iterations=4096).salt
    assert len(_MOCK.salt) == len(_SALT)


def test_no_password_is_that_of_a_mock() -> None:
    right = new_verifier("secret", iterations=4096, salt=_MOCK.salt)
    forged = ScramVerifier(4096, _MOCK.salt, right.stored_key, right.server_key, is_mock=True)
    assert is_password_of("secret", right)
    assert not is_password_of("secret", forged)
    assert not is_password_of("secret", _MOCK)


@pytest.mark.parametrize(
    ("given_password", "prepared"),
    [
        (b"secret", b"secret"),
        (b"\x07\x7f", b"\x07\x7f"),  # ASCII is not looked at
        ("I\u00adX".encode(), b"IX"),
        ("\u2168".encode(), b"IX"),
        ("\u00aa".encode(), b"a"),
        ("a\u3000b".encode(), b"a b"),
        ("\u00ad".encode(), "\u00ad".encode()),  # nothing would be left
        ("\u00e9\u0007".encode(), "\u00e9\u0007".encode()),  # forbidden
        ("\u0627\u0031".encode(), "\u0627\u0031".encode()),  # right to left, but not at the end
        ("\u0627\u0031\u0628".encode(), "\u0627\u0031\u0628".encode()),
        ("\u0627a\u0628\u2168".encode(), "\u0627a\u0628\u2168".encode()),  # both directions
        ("\u0221\u2168".encode(), "\u0221\u2168".encode()),  # unassigned in Unicode 3.2
        (b"\xff\xe9", b"\xff\xe9"),
    ],
)
def test_saslprep(given_password: bytes, prepared: bytes) -> None:
    assert prepared_password(given_password) == prepared


@given(st.text(max_size=20) | st.binary(max_size=20))
def test_any_password_has_a_verifier(password: str | bytes) -> None:
    try:
        raw = password.encode() if isinstance(password, str) else password
    except UnicodeEncodeError:
        return
    made = new_verifier(raw, iterations=1024, salt=_SALT)
    assert is_password_of(password, made)
    assert not is_password_of(raw + b"x", made)
