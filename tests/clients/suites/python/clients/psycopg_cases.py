"""psycopg 3."""

import psycopg
from cases import Cases, same, url

cases = Cases("psycopg", psycopg.__version__)


@cases.case
def connect_with_a_url() -> None:
    with psycopg.connect(url()) as connection:
        same(connection.execute("select 1").fetchone(), (1,))


if __name__ == "__main__":
    cases.run()
