"""The two servers with the tables of values, which are gone at the end."""

import contextlib
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.pq.abc import PGconn

from tests.postgres.cross.values import definitions
from tests.support.servers import meridian, postgres

_OUTCOME = """
create function outcome(expression text, out shown text, out failure text) language plpgsql as $$
begin
  execute 'select (' || expression || ')::text' into shown;
exception when others then
  failure := sqlstate;
end $$
"""
"""What an expression gives, and otherwise why not."""


@dataclass(frozen=True, slots=True)
class Peers:
    """PostgreSQL, and Meridian on one engine."""

    postgresql: PGconn
    meridian: PGconn

    def make(self, statements: Iterable[str]) -> None:
        """Run what both have to hold."""
        for text in statements:
            for connection in (self.postgresql, self.meridian):
                answer = connection.exec_(text.encode())
                assert not answer.error_message, f"{answer.error_message.decode()} {text}"


@contextlib.contextmanager
def peers(
    place: Path, engine: str, settings: Iterable[str], types: Iterable[str]
) -> Generator[Peers]:
    """Both, started, with the same settings and the tables of these types."""
    with contextlib.ExitStack() as stack:
        options = () if engine == "spark" else ("--spark-master", "none")
        server = stack.enter_context(meridian(place, options))
        peer = stack.enter_context(postgres())
        with psycopg.connect(peer, autocommit=True) as connection:
            connection.execute(
                "create database sqlcross template template0"
                " locale_provider builtin builtin_locale 'C.UTF-8' lc_collate 'C' lc_ctype 'C'"
            )
        postgresql = stack.enter_context(psycopg.connect(peer, autocommit=True, dbname="sqlcross"))
        ours = stack.enter_context(psycopg.connect(server.dsn, autocommit=True))
        both = Peers(postgresql.pgconn, ours.pgconn)
        # Before the settings: under some styles of intervals we refuse a sign, which is no
        # ambiguity in any of the values.
        both.make(definitions(types))
        both.make(f"set {setting}" for setting in settings)
        postgresql.execute(_OUTCOME)
        ours.execute(f"set engine = {engine}".encode())
        yield both
