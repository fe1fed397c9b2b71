"""COPY of all values, out and in, in text, CSV and binary."""

from psycopg.pq import DiagnosticField, ExecStatus
from psycopg.pq.abc import PGconn

from tests.postgres.places.kinds import Kind
from tests.postgres.places.running import Peers
from tests.postgres.queries.answers import ask
from tests.postgres.queries.comparing import Verdict

_FORMATS = ("", "(format csv)", "(format csv, force_quote *, null 'N')", "(format binary)")


def copies(peers: Peers, kind: Kind) -> None:
    """Compare the bytes that come out, and the rows that went in."""
    table = f"t_{kind.name}"
    for options in _FORMATS:
        text = f"copy (select id, v, w from {table} order by id) to stdout {options}"
        expected, found = copy_out(peers.postgresql, text), copy_out(peers.meridian, text)
        if _judged(peers, text, found, expected) and not kind.stored:
            _in(peers, kind, options, expected[1])


def _in(peers: Peers, kind: Kind, options: str, content: bytes) -> None:
    for connection in (peers.postgresql, peers.meridian):
        ask(connection, f"create table x1 (id int, v {kind.type}, w {kind.type})")
    text = f"copy x1 from stdin {options}"
    expected = copy_in(peers.postgresql, text, content)
    found = copy_in(peers.meridian, text, content)
    _judged(peers, text, (found, b""), (expected, b""))
    peers.compare("copy in", "select * from x1 order by id")
    for connection in (peers.postgresql, peers.meridian):
        ask(connection, "drop table if exists x1")


def _judged(peers: Peers, text: str, found: tuple[str, bytes], expected: tuple[str, bytes]) -> bool:
    if found == expected:
        peers.counts[Verdict.EQUAL.value] += 1
        return True
    if found[0] == "0A000":
        peers.counts[Verdict.REFUSED.value] += 1
        return False
    peers.counts[Verdict.WRONG.value] += 1
    peers.wrong["copy"].append(text)
    print(f"# copy\n{text}\n---- expected\n{expected}\n---- found\n{found}\n", flush=True)
    return False


def copy_out(connection: PGconn, text: str) -> tuple[str, bytes]:
    """The state, or the tag, and all bytes."""
    result = connection.exec_(text.encode())
    if result.status != ExecStatus.COPY_OUT:
        return (result.error_field(DiagnosticField.SQLSTATE) or b"").decode(), b""
    content = b""
    while True:
        count, data = connection.get_copy_data(0)
        if count < 0:
            break
        content += bytes(data)
    return _end(connection), content


def copy_in(connection: PGconn, text: str, content: bytes) -> str:
    """The state, or the tag."""
    result = connection.exec_(text.encode())
    if result.status != ExecStatus.COPY_IN:
        return (result.error_field(DiagnosticField.SQLSTATE) or b"").decode()
    connection.put_copy_data(content)
    connection.put_copy_end()
    return _end(connection)


def _end(connection: PGconn) -> str:
    state = ""
    while (result := connection.get_result()) is not None:
        state = (
            result.error_field(DiagnosticField.SQLSTATE) or result.command_status or b""
        ).decode()
    return state
