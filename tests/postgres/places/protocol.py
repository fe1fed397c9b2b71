"""Values as parameters and as results of the extended protocol, in text and in binary.

INVARIANTS
  X1  what is sent in binary is what PostgreSQL itself sent for the value. Where that has oids of
      users' types in it, Meridian gets what Meridian sent.
"""

from collections.abc import Iterator

from psycopg.pq import Format
from psycopg.pq.abc import PGconn

from tests.postgres.places.kinds import Kind
from tests.postgres.places.running import Parameters, Peers


def binary(connection: PGconn, text: str) -> Iterator[bytes | None]:
    """The first column of what PostgreSQL answers, in binary (X1)."""
    result = connection.exec_params(text.encode(), None, result_format=Format.BINARY)
    for at in range(result.ntuples):
        yield result.get_value(at, 0)


def texts(connection: PGconn, text: str) -> Iterator[bytes | None]:
    """The same in text."""
    result = connection.exec_params(text.encode(), None)
    for at in range(result.ntuples):
        yield result.get_value(at, 0)


def sent_values(peers: Peers, kind: Kind, text: str) -> Iterator[Parameters]:
    """Each value of a query as a parameter, in both formats."""
    for value in texts(peers.postgresql, text):
        yield Parameters((value,))
    theirs = list(binary(peers.postgresql, text))
    ours = list(binary(peers.meridian, text)) if kind.is_user else []
    for at, value in enumerate(theirs):
        mine = (ours[at],) if len(ours) == len(theirs) else None
        yield Parameters((value,), Format.BINARY, ours=mine)


def shows_alike(kind: Kind) -> bool:
    """An unconstrained numeric says how many zeros it shows, in binary too; arrays of users'
    types have oids in them.
    """
    return kind.type not in ("numeric", "numeric[]") and not kind.is_user
