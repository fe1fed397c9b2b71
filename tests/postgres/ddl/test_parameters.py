"""A definition takes no parameters: what is kept would be those of the statements that use it."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.support.stack import serving

DEFINITIONS = (
    "create table d (a int default {})",
    "create table d (a int, check (a > {}))",
    "create table d (a int, b int generated always as (a + {}) stored)",
    "alter table t add column c int default {}",
    "alter table t add check (a > {})",
    "alter table t alter a set default {}",
    "alter table t alter a type bigint using a + {}",
    "create index on t ((a + {}))",
    "create index on t (a) where a > {}",
    "create domain d as int default {}",
    "create domain d as int check (value > {})",
    "alter domain p add check (value > {})",
    "alter domain p set default {}",
    "create view d as select a + {} as b from t",
)


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with serving() as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("create table t (a int)")
            connection.execute("create domain p as int")
        yield dsn


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_no_parameter(dsn: str, definition: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        with pytest.raises(psycopg.Error) as caught:
            connection.execute(definition.format("%s").encode(), (7,))
        assert caught.value.sqlstate == "42P02"
        assert caught.value.diag.message_primary == "there is no parameter $1"
        connection.execute("insert into t values (%s)", (1,))
