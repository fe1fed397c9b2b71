"""What may be a password or a token is hidden in texts that others see, and nothing else is."""

import pytest

from coordinator.hidden_secrets import without_secrets, without_secrets_of

TEXTS = {
    "create role ann password 'hunter2'": "create role ann password <hidden>",
    "ALTER USER ann WITH PASSWORD $$hunter2$$ LOGIN": "ALTER USER ann WITH PASSWORD <hidden>",
    "create role ann password 'hunter2": "create role ann password <hidden>",
    "create user mapping for a server s options (user 'a', password 'hunter2')":
        "create user mapping for a server s options (user 'a', password <hidden>",
    "set app.api_token = 'hunter2'": "set app.api_token = <hidden>",
    "set app.secret to hunter2": "set app.secret to <hidden>",
    "select set_config('app.password', 'hunter2', false)":
        "select set_config('app.password', <hidden>, false)",
    "select set_config('app.password', e'hunter''2', false), 1":
        "select set_config('app.password', <hidden>, false), 1",
    "postgresql://ann:hunter2@host/db": "postgresql://ann:<hidden>@host/db",
    "postgresql://ann:hunt@er2@host/db?x=1": "postgresql://ann:<hidden>@host/db?x=1",
    "postgresql://:hunter2@host": "postgresql://:<hidden>@host",
    "postgresql://host:5432/db?password=hunter2&a=b":
        "postgresql://host:5432/db?password=<hidden>&a=b",
    "select dblink('host=h password=hunter2 user=ann')":
        "select dblink('host=h password=<hidden> user=ann')",
    "select dblink('password=''hunter 2'' user=ann')":
        "select dblink('password=<hidden> user=ann')",
    "create subscription s connection 'host=h sslpassword=hunter2' publication p":
        "create subscription s connection 'host=h sslpassword=<hidden>' publication p",
    """select '{"access_key": "hunter2", "n": 1}'""":
        """select '{"access_key": <hidden>, "n": 1}'""",
    r"select dblink(E'host=h password=\'hunt\\\'er2\' user=ann')":
        "select dblink(E'host=h password=<hidden>",
    r"""select E'{\"password\": \"hunter2\"}'""":
        r"""select E'{\"password\": <hidden>""",
    "update users set password = crypt('hunter2)', gen_salt('bf')) where id = 3":
        "update users set password = <hidden> where id = 3",
    "update users set password = crypt('hunter2'": "update users set password = <hidden>",
    "select 'Driver=x;Uid=ann;Pwd=hunter2;'": "select 'Driver=x;Uid=ann;Pwd=<hidden>;'",
    "set app.private_key = 'hunter2'": "set app.private_key = <hidden>",
    "aws_secret_key=hunter2 x-api-key: hunter2": "aws_secret_key=<hidden> x-api-key: <hidden>",
    "select 'Authorization: Bearer hunter2hunter2.hunter2'":
        "select 'Authorization: Bearer <hidden>'",
    "SCRAM-SHA-256$4096:c2FsdA==$c3RvcmVk:c2VydmVy": "SCRAM-SHA-256$<hidden>",
    "select 1 from users where password = 'hunter2' and id = 3":
        "select 1 from users where password = <hidden> and id = 3",
}  # fmt: skip

PLAIN = [
    "select 1",
    "create table users (name text, password text, token int)",
    "select password from users where password = $1 and token is null",
    "insert into users (name, password) values ($1, $2)",
    "select password::text as token from users",
    "create role ann login",
    "select 'http://host:80/path', tokens, secretary from t",
    "grant select on passwords to public",
    "select 'the bearer of this', pwd, api_keys from t",
]


@pytest.mark.parametrize(("text", "shown"), TEXTS.items())
def test_secrets_are_hidden_once_and_for_all(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
    assert without_secrets(shown) == shown


@pytest.mark.parametrize("text", ["select 'postgresql://ann:hunt", "select 'https://ann:hunt@er"])
def test_a_password_whose_end_is_cut_off_is_hidden(text: str) -> None:
    shown = without_secrets(text, is_cut=True)
    assert shown == f"{text.partition('hunt')[0]}<hidden>"
    assert without_secrets(shown, is_cut=True) == shown
    whole = "select 'http://host:80/path' or 'http://host:80'"
    assert without_secrets(whole, is_cut=True) == whole


@pytest.mark.parametrize("text", PLAIN)
def test_other_texts_stay(text: str) -> None:
    assert without_secrets(text) == text


def test_a_message_tells_nothing_that_its_statement_hides() -> None:
    statement = "create role ann password 'hunter2"
    message = 'unterminated quoted string at or near "\'hunter2"'
    hidden = 'unterminated quoted string at or near "<hidden>"'
    assert without_secrets_of(message, statement) == hidden
    told = 'role "ann" already exists'
    assert without_secrets_of(told, "create role ann password 'hunter2'") == told
    assert without_secrets_of(message, "select 'hunter2") == message
    # The password is in what was cut off of the statement, or the message's end was cut off.
    assert without_secrets_of(message, "create role ann", is_cut=True) == hidden
    begun = hidden.removesuffix('"')
    assert without_secrets_of(message[:-3], statement[:-1], is_cut=True) == begun


@pytest.mark.parametrize(
    "piece",
    [
        "create role ", "password = ", "password''", "password '", "://a:", "token $$ ", "secret\"",
        "SCRAM-SHA-256$1:", "password", "://", "create role a password ", "x'password'", "://a:b@",
        "password = f(", "password = f(''", "password=\\'", "bearer ",
    ],
)  # fmt: skip
def test_long_texts_of_anybody_are_hidden_once(piece: str) -> None:
    """With time that grows with the square of the length, this would take hours."""
    shown = without_secrets(piece * 5_000)
    assert without_secrets(shown) == shown
