"""SCRAM beside PostgreSQL 18: the same bytes get the same answers, whatever is wrong with them."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scramp import ScramClient

from coordinator.authentication.scram import (
    NONCE_BYTES,
    ScramExchange,
    offered_mechanisms,
)
from coordinator.authentication.verifier import (
    ScramVerifier,
    mock_verifier,
    new_verifier,
    parse_verifier,
)
from sql.errors import SqlError
from tests.unit.authentication.scram_client import (
    CLIENT_NONCE,
    PASSWORD,
    ServerFirst,
    client_first,
    initial_response,
)

_FRAMES: dict[str, Any] = json.loads(
    (Path(__file__).parent / "testdata" / "scram_frames.json").read_text()
)
_LOG_INS = [(kind, log_in) for kind, found in _FRAMES.items() for log_in in found["log_ins"]]
_NONCE = bytes(range(NONCE_BYTES))
_SECRET = b"s" * 32
_VERIFIER = new_verifier(PASSWORD, iterations=4096, salt=b"0123456789abcdef")


def _payload(parts: list[Any]) -> bytes:
    texts = (part if isinstance(part, str) else part[0] * part[1] for part in parts)
    return "".join(texts).encode("latin-1")


def _answer(exchange: ScramExchange, payload: bytes) -> list[str]:
    try:
        reply = exchange.receive(payload)
    except SqlError as error:
        return ["error", error.sqlstate, error.message, error.detail or ""]
    return ["final" if reply.is_final else "continue", reply.data.decode("latin-1")]


def _recorded_nonce(log_in: dict[str, Any]) -> bytes:
    """The bytes that PostgreSQL drew; the last 24 characters of what it answered, in base64."""
    for _, reply in log_in["steps"]:
        if reply[0] == "continue" and reply[1]:
            return base64.b64decode(reply[1].split(",")[0][-24:])
    return _NONCE


@pytest.mark.parametrize(
    ("kind", "log_in"), _LOG_INS, ids=[log_in["case"] for _, log_in in _LOG_INS]
)
def test_the_bytes_of_a_client_get_postgresqls_answers(kind: str, log_in: dict[str, Any]) -> None:
    recorded = _FRAMES[kind]
    user = log_in["user"]
    secret = bytes.fromhex(recorded["mock_secret"])
    kept = parse_verifier(recorded["verifiers"].get(user, ""))
    verifier = kept or mock_verifier(user, secret=secret, iterations=4096)
    certificate_hash = bytes.fromhex(recorded["certificate_hash"]) or None
    assert list(offered_mechanisms(certificate_hash)) == log_in["mechanisms"]
    exchange = ScramExchange(
        user, verifier, nonce=_recorded_nonce(log_in), certificate_hash=certificate_hash
    )
    answers = [_answer(exchange, _payload(parts)) for parts, _ in log_in["steps"]]
    assert answers == [reply for _, reply in log_in["steps"]]
    assert exchange.is_over


def test_the_recorded_log_ins_hold_what_they_are_for() -> None:
    ends = [log_in["steps"][-1][1] for _, log_in in _LOG_INS]
    assert sum(end[0] == "final" for end in ends) >= 10
    assert {end[1] for end in ends if end[0] == "error"} == {"08P01", "0A000", "28000", "28P01"}
    assert sum(kind == "tls" for kind, _ in _LOG_INS) >= 10


def _exchange(
    verifier: ScramVerifier = _VERIFIER, nonce: bytes = _NONCE, bound: bytes | None = None
) -> ScramExchange:
    return ScramExchange("alice", verifier, nonce=nonce, certificate_hash=bound)


def _begun(exchange: ScramExchange) -> ServerFirst:
    return ServerFirst(exchange.receive(initial_response(client_first())).data)


def _refusal(exchange: ScramExchange, payload: bytes) -> SqlError:
    with pytest.raises(SqlError) as caught:
        exchange.receive(payload)
    return caught.value


def test_a_last_message_is_worth_nothing_in_the_next_log_in() -> None:
    once = _exchange()
    final = _begun(once).final()
    assert once.receive(final).is_final
    again = _exchange(nonce=b"another nonce here"[:NONCE_BYTES])
    assert _begun(again).salt == _VERIFIER.salt
    assert _refusal(again, final).detail == "Nonce does not match."


def test_a_proof_for_another_nonce_is_refused_though_it_is_right() -> None:
    exchange = _exchange()
    server = _begun(exchange)
    refused = _refusal(exchange, server.final(nonce=CLIENT_NONCE + b"A" * 24))
    assert (refused.sqlstate, refused.detail) == ("08P01", "Nonce does not match.")


def test_all_that_is_no_password_looks_like_a_wrong_one() -> None:
    mock = mock_verifier("alice", secret=_SECRET, iterations=4096)
    answers: list[tuple[int, SqlError]] = []
    for verifier, password in ((_VERIFIER, "wrong"), (mock, PASSWORD)):
        exchange = _exchange(verifier)
        server = _begun(exchange)
        answers.append((len(server.text), _refusal(exchange, server.final(password=password))))
    assert answers[0] == answers[1]
    assert answers[0][1] == SqlError("28P01", 'password authentication failed for user "alice"')


def test_no_proof_fits_a_mock() -> None:
    mock = mock_verifier("alice", secret=_SECRET, iterations=4096)
    salted = new_verifier(PASSWORD, iterations=4096, salt=mock.salt)
    forged = ScramVerifier(4096, mock.salt, salted.stored_key, salted.server_key, True)
    exchange = _exchange(forged)
    server = _begun(exchange)
    assert _refusal(exchange, server.final()).sqlstate == "28P01"


def test_nothing_is_received_behind_the_end() -> None:
    exchange = _exchange()
    _refusal(exchange, b"")
    with pytest.raises(AssertionError, match="M5"):
        exchange.receive(b"")


@pytest.mark.parametrize("bound", [None, b"h" * 32])
def test_another_client_logs_in(bound: bytes | None) -> None:
    binding = None if bound is None else ("tls-server-end-point", bound)
    client = ScramClient(
        list(offered_mechanisms(bound)), "ignored", PASSWORD, channel_binding=binding
    )
    exchange = _exchange(bound=bound)
    first = client.get_client_first().encode()
    reply = exchange.receive(initial_response(first, client.mechanism_name.encode()))
    client.set_server_first(reply.data.decode())
    reply = exchange.receive(client.get_client_final().encode())
    assert reply.is_final
    client.set_server_final(reply.data.decode())
    assert client.mechanism_name == offered_mechanisms(bound)[0]


def test_another_client_bound_to_another_server_is_refused() -> None:
    binding = ("tls-server-end-point", b"x" * 32)
    client = ScramClient(["SCRAM-SHA-256-PLUS"], "x", PASSWORD, channel_binding=binding)
    exchange = _exchange(bound=b"h" * 32)
    first = initial_response(client.get_client_first().encode(), b"SCRAM-SHA-256-PLUS")
    client.set_server_first(exchange.receive(first).data.decode())
    refused = _refusal(exchange, client.get_client_final().encode())
    assert refused == SqlError("28000", "SCRAM channel binding check failed")


_PIECES = st.sampled_from(
    [b"n,,", b"y,,", b"p=tls-server-end-point,,", b"n=", b"r=", b"c=biws", b"p=", b",", b"=",
     b"a=", b"m=", CLIENT_NONCE, b"\0", b"\xff", b"SCRAM-SHA-256\0", b"SCRAM-SHA-256-PLUS\0",
     b"\0\0\0\x05", b"\xff\xff\xff\xff", b"A" * 43 + b"=", b"x" * 1000]
)  # fmt: skip
_BYTES = st.binary(max_size=80) | st.lists(_PIECES, max_size=10).map(b"".join)
_MESSAGE = _BYTES.map(initial_response) | _BYTES


@given(st.lists(_MESSAGE, max_size=4), st.sampled_from([None, b"h" * 32]), st.booleans())
def test_any_bytes_are_an_answer_or_an_error(
    payloads: list[bytes], bound: bytes | None, is_known: bool
) -> None:
    verifier = _VERIFIER if is_known else mock_verifier("x", secret=_SECRET, iterations=4096)
    exchange = _exchange(verifier, bound=bound)
    for payload in payloads:
        if exchange.is_over:
            break
        kind, *texts = _answer(exchange, payload)
        assert kind != "final", "nobody guesses a proof"
        if kind == "error":
            assert texts[0] in {"08P01", "0A000", "28000", "28P01"}
            assert "".join(texts).isprintable()
            assert exchange.is_over


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_any_last_message_is_an_error(before: bytes, behind: bytes) -> None:
    exchange = _exchange()
    final = _begun(exchange).final(password="wrong")
    assert _refusal(exchange, before + final + behind).sqlstate in {"08P01", "28P01"}
