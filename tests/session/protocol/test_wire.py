"""Wire sessions: what a client of single messages sees, message by message."""

from pathlib import Path

import pytest

from coordinator.pgwire.client_codec import encode_frontend
from coordinator.pgwire.messages import (
    Bind,
    Describe,
    ErrorResponse,
    Execute,
    Parse,
    Query,
    Sync,
    Target,
)
from tests.support.stack import serving
from tests.support.transcript import Command, run_transcript
from tests.support.wire import WireClient, parse_line, show

STORIES = sorted((Path(__file__).parent / "testdata").glob("*.txt"))


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_wire(path: Path) -> None:
    with serving() as dsn:
        clients: dict[str, WireClient] = {}

        def handler(command: Command) -> str:
            who = command.options.get("conn", "1")
            if command.name == "leave":
                clients.pop(who).close()
                return "left"
            assert command.name == "send", f"{command.position}: send or leave"
            if who not in clients:
                clients[who] = WireClient(dsn)
            messages = [parse_line(line) for line in command.body.splitlines()]
            clients[who].send(*messages)
            ready = sum(isinstance(message, Query | Sync) for message in messages)
            count = command.options.get("answers")
            answers = clients[who].answers(ready, count=int(count) if count else None)
            return "\n".join(map(show, answers))

        try:
            run_transcript(path, handler)
        finally:
            for client in clients.values():
                client.close()


def test_what_is_no_message_is_skipped_like_one() -> None:
    nonsense = b"D\0\0\0\6X\0"
    with serving() as dsn, WireClient(dsn) as client:
        # An Execute looks ahead for its Sync, so that what follows is read before the error.
        fails = [Parse("", "DEALLOCATE nothing"), Bind("", ""), Execute("")]
        wrong = b"".join(map(encode_frontend, fails))
        client.send_bytes(wrong + nonsense + encode_frontend(Sync()))
        found = [show(answer).split()[0] for answer in client.answers(1)]
        assert found == ["ParseComplete", "BindComplete", "ERROR", "ReadyForQuery"]
        client.send_bytes(nonsense + wrong + encode_frontend(Sync()))
        assert show(client.answers(1)[0]).startswith("ERROR 08P01")


def test_a_changed_plan_names_the_routine_by_which_pgjdbc_prepares_again() -> None:
    with serving() as dsn, WireClient(dsn) as client:
        client.send(Query("create table t (a int)"))
        client.answers(1)
        client.send(Parse("s", "select * from t"), Describe(Target.STATEMENT, "s"), Sync())
        client.answers(1)
        client.send(Query("alter table t add b int"))
        client.answers(1)
        client.send(Bind("", "s"), Execute(""), Sync())
        (error,) = [one for one in client.answers(1) if isinstance(one, ErrorResponse)]
        fields = dict(error.fields)
        assert (fields["C"], fields["R"]) == ("0A000", "RevalidateCachedQuery")
