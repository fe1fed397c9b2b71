"""The codec: what one side writes the other reads, and every message has a readable trace."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.pgwire.client_codec import decode_backend, encode_frontend
from coordinator.pgwire.codec import FRONTEND_TYPES, decode_frontend, decode_startup, encode_backend
from coordinator.pgwire.messages import (
    BackendKeyData,
    BackendMessage,
    Bind,
    CancelRequest,
    Close,
    CommandComplete,
    CopyData,
    CopyDone,
    CopyFail,
    CopyInResponse,
    CopyOutResponse,
    Describe,
    ErrorResponse,
    Execute,
    Field,
    Flush,
    FrontendMessage,
    GssEncRequest,
    NegotiateProtocolVersion,
    NoData,
    NoticeResponse,
    ParameterDescription,
    ParameterStatus,
    Parse,
    PasswordMessage,
    PortalSuspended,
    Query,
    ReadyForQuery,
    RowDescription,
    SslRequest,
    StartupMessage,
    Sync,
    Target,
    Terminate,
    TransactionStatus,
    error_response,
    expand_formats,
    notice_response,
    row_description,
)
from coordinator.pgwire.startup import split_options
from coordinator.pgwire.trace import trace_backend, trace_frontend
from sql.errors import SqlError
from sql.statements.bound import OutputColumn
from sql.types.sql_type import INT4, varchar

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
NAMES = TEXTS.filter(bool).filter(lambda name: name != "options" and not name.startswith("_pq_."))
OIDS = st.integers(0, 2**32 - 1)
INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
CODES = st.lists(st.sampled_from([0, 1]), max_size=3).map(tuple)
BYTES = st.binary(max_size=8)


@st.composite
def _binds(draw: st.DrawFn) -> Bind:
    parameters = tuple(draw(st.lists(st.one_of(st.none(), BYTES), max_size=3)))
    counts = [0, 1, len(parameters)]
    count = draw(st.sampled_from(counts))
    formats = tuple(draw(st.lists(st.sampled_from([0, 1]), min_size=count, max_size=count)))
    return Bind(draw(TEXTS), draw(TEXTS), formats, parameters, draw(CODES))


TARGETS = st.sampled_from(list(Target))
SESSION_MESSAGES: st.SearchStrategy[FrontendMessage] = st.one_of(
    st.builds(Query, TEXTS),
    st.builds(Parse, TEXTS, TEXTS, st.lists(OIDS, max_size=3).map(tuple)),
    _binds(),
    st.builds(Describe, TARGETS, TEXTS),
    st.builds(Close, TARGETS, TEXTS),
    st.builds(Execute, TEXTS, st.integers(0, 2**31 - 1)),
    st.builds(CopyData, BYTES),
    st.builds(CopyFail, TEXTS),
    st.builds(PasswordMessage, BYTES),
    st.sampled_from([Sync(), Flush(), CopyDone(), Terminate()]),
)
STARTUP_MESSAGES: st.SearchStrategy[FrontendMessage] = st.one_of(
    st.builds(
        StartupMessage,
        st.dictionaries(NAMES, TEXTS, max_size=3),
        st.just(3),
        st.integers(0, 9),
        st.lists(TEXTS.map(lambda text: "_pq_." + text), max_size=2).map(tuple),
    ),
    st.builds(CancelRequest, OIDS, st.binary(min_size=1, max_size=256)),
    st.sampled_from([SslRequest(), GssEncRequest()]),
)
FIELDS = st.builds(Field, TEXTS, OIDS, INT16, OIDS, INT16, INT32, st.sampled_from([0, 1]))
REPORTS = st.lists(st.tuples(st.sampled_from("SVCMDHP"), TEXTS), max_size=4).map(tuple)
BACKEND_MESSAGES: st.SearchStrategy[BackendMessage] = st.one_of(
    st.builds(NegotiateProtocolVersion, st.integers(0, 2), st.lists(TEXTS, max_size=2).map(tuple)),
    st.builds(ParameterStatus, TEXTS, TEXTS),
    st.builds(BackendKeyData, OIDS, st.binary(min_size=4, max_size=32)),
    st.builds(ReadyForQuery, st.sampled_from(list(TransactionStatus))),
    st.builds(RowDescription, st.lists(FIELDS, max_size=3).map(tuple)),
    st.builds(ParameterDescription, st.lists(OIDS, max_size=3).map(tuple)),
    st.builds(CommandComplete, TEXTS),
    st.builds(ErrorResponse, REPORTS),
    st.builds(NoticeResponse, REPORTS),
    st.builds(CopyInResponse, CODES, st.sampled_from([0, 1])),
    st.builds(CopyOutResponse, CODES, st.sampled_from([0, 1])),
    st.sampled_from([NoData(), PortalSuspended(), CopyDone()]),
)


@given(SESSION_MESSAGES)
def test_frontend_messages_come_back(message: FrontendMessage) -> None:
    data = encode_frontend(message)
    assert data[0] in FRONTEND_TYPES
    assert decode_frontend(data[0], data[5:]) == message
    assert trace_frontend(message).startswith(f"F {type(message).__name__}")


@given(STARTUP_MESSAGES)
def test_startup_messages_come_back(message: FrontendMessage) -> None:
    data = encode_frontend(message)
    assert int.from_bytes(data[:4], "big") == len(data)
    assert decode_startup(data[4:]) == message
    assert trace_frontend(message).startswith(f"F {type(message).__name__}")


@given(st.lists(BACKEND_MESSAGES, max_size=4))
def test_backend_messages_come_back(sent: list[BackendMessage]) -> None:
    data = b"".join(encode_backend(message) for message in sent)
    assert decode_backend(data) == sent


@given(st.sampled_from(sorted(FRONTEND_TYPES)), st.binary(max_size=40))
def test_any_payload_is_a_message_or_refused(kind: int, payload: bytes) -> None:
    try:
        message = decode_frontend(kind, payload)
    except SqlError as error:
        sqlstate = error.sqlstate
    else:
        sqlstate = ""
        assert trace_frontend(message)
    assert sqlstate in ("", "08P01", "22021", "22023")


def test_a_report_names_what_is_known() -> None:
    error = SqlError(
        "23502", "null value", 7, detail="D.", hint="H.", schema="s", table="t", column="c",
        constraint="n", context="W",
    )  # fmt: skip
    assert trace_backend(error_response(error)) == [
        'B ErrorResponse ERROR 23502 "null value" D="D." H="H." P="7" W="W" s="s" t="t" c="c" n="n"'
    ]
    assert notice_response(SqlError("00000", "x")).fields[:2] == (("S", "NOTICE"), ("V", "NOTICE"))


def test_secrets_are_not_traced() -> None:
    assert trace_frontend(PasswordMessage(b"hunter2")) == "F PasswordMessage (7 bytes)"
    assert trace_backend(BackendKeyData(1, b"keys")) == ["B BackendKeyData 1 (4 bytes)"]
    assert "keys" not in repr(BackendKeyData(1, b"keys"))


def test_a_nul_in_an_answer_does_not_end_it_early() -> None:
    sent = error_response(SqlError("22021", "bad\0name"))
    (received,) = decode_backend(bytes(encode_backend(sent)))
    assert isinstance(received, ErrorResponse)
    assert dict(received.fields)["M"] == "bad name"


def test_result_formats_are_none_one_or_each() -> None:
    columns = (OutputColumn("a", INT4, 5, 1), OutputColumn("b", varchar(3)))
    described = row_description(columns, (1,))
    assert [field.format for field in described.fields] == [1, 1]
    assert described.fields[1] == Field("b", 0, 0, 1043, -1, 7, 1)
    assert expand_formats((), 2) == (0, 0)
    assert expand_formats((1, 0), 2) == (1, 0)
    with pytest.raises(SqlError) as caught:
        expand_formats((1, 0), 3)
    assert caught.value.sqlstate == "08P01"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", {}),
        ("-c a=b", {"a": "b"}),
        ("-ca=b  -c  c=d=e --f-g=h", {"a": "b", "c": "d=e", "f_g": "h"}),
        (r"-c a=x\ y\\z", {"a": r"x y\z"}),
        ("-c a=", {"a": ""}),
    ],
)
def test_options_are_a_command_line(options: str, expected: dict[str, str]) -> None:
    assert split_options(options) == expected


@pytest.mark.parametrize("options", ["-c", "-c a", "--a", "-x", "a=b", "-c =b"])
def test_options_that_are_none(options: str) -> None:
    with pytest.raises(SqlError) as caught:
        split_options(options)
    assert caught.value.sqlstate == "42601"
