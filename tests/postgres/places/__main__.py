"""`python -m tests.postgres.places`: every type at every place, on PostgreSQL and on one engine.

python -m tests.postgres.places                                   all, on the local engine
python -m tests.postgres.places --engine spark --share 0.05       one statement in twenty
python -m tests.postgres.places --kinds itv,jsb --parts reading   some types, some places
"""

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

import psycopg

from tests.postgres.places.kinds import KINDS
from tests.postgres.places.playing import PARTS, Player
from tests.postgres.places.running import Peers
from tests.support.servers import meridian, postgres

_SETTINGS = ("set timezone = 'UTC'", "set statement_timeout = '60s'")


def main() -> None:
    """Play what was asked for; exit code 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="tests.postgres.places", description=__doc__)
    parser.add_argument("--engine", default="local", choices=("local", "spark"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=1.0, help="of the statements")
    parser.add_argument("--kinds", help="names of types, with commas")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--place", help="only places with this in their names")
    arguments = parser.parse_args()
    names = arguments.kinds.split(",") if arguments.kinds else [kind.name for kind in KINDS]
    with _peers(arguments.engine) as peers:
        kinds = peers.prepare([kind for kind in KINDS if kind.name in names])
        peers.meridian.exec_(f"set engine = {arguments.engine}".encode())
        player = Player(peers, kinds, arguments.seed, arguments.share, arguments.place or "")
        for part in arguments.parts.split(","):
            getattr(player, part)()
            print(f"# {part}: {dict(peers.counts)}", flush=True)
    for message, count in peers.refusals.most_common(60):
        print(f"refused {count} times, {message}")
    for place, texts in sorted(peers.wrong.items()):
        print(f"wrong {len(texts)} times at {place}")
    print(dict(peers.counts))
    sys.exit(bool(peers.wrong))


@contextlib.contextmanager
def _peers(engine: str) -> Generator[Peers]:
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="places-")))
        options = () if engine == "spark" else ("--spark-master", "none")
        server = stack.enter_context(meridian(place, options))
        peer = stack.enter_context(postgres())
        with psycopg.connect(peer, autocommit=True) as connection:
            connection.execute(
                "create database places template template0"
                " locale_provider builtin builtin_locale 'C.UTF-8' lc_collate 'C' lc_ctype 'C'"
            )
        postgresql = stack.enter_context(psycopg.connect(peer, autocommit=True, dbname="places"))
        ours = stack.enter_context(psycopg.connect(server.dsn, autocommit=True))
        for connection in (postgresql, ours):
            for text in _SETTINGS:
                connection.execute(text.encode())
        yield Peers(postgresql.pgconn, ours.pgconn)


if __name__ == "__main__":
    main()
