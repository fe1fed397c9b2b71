"""All calls over values at the edges, on PostgreSQL and on one engine.

    python -m tests.postgres.cross                                   all, on the local engine
    python -m tests.postgres.cross --engine spark --only jsonb functions
    python -m tests.postgres.cross --set "datestyle = 'SQL, DMY'" --zone America/New_York
    python -m tests.postgres.cross --rows 400 --seed 2 groups        aggregates, windows

What is printed as different is the statement with constants; it was asked over columns of tables,
unless PostgreSQL fails.
"""

import argparse
import random
import sys
import tempfile
from pathlib import Path

from tests.postgres.cross import groups
from tests.postgres.cross.calls import calls, stored_types
from tests.postgres.cross.judging import Tally
from tests.postgres.cross.peers import Peers, peers
from tests.postgres.cross.running import Asking

PARTS = ("functions", "groups")
REFUSED_MAX = 60
"""Calls that are named because of refusals, those with most of them."""


def main() -> None:
    """Compare what was asked for; exit code 1 if anything differs."""
    parser = argparse.ArgumentParser(
        prog="tests.postgres.cross",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", help="functions, groups; both if none is named")
    parser.add_argument("--engine", default="local", choices=("local", "spark"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=100, help="of arguments of a call; of members")
    parser.add_argument("--only", default="", help="what has this text in its name or its types")
    parser.add_argument("--set", action="append", default=[], help="a setting for both servers")
    parser.add_argument("--zone", default="UTC")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(unknown)}")
    tally = Tally()
    settings = (f"timezone = '{arguments.zone}'", *arguments.set)
    with (
        tempfile.TemporaryDirectory(prefix="sqlcross-") as place,
        peers(Path(place), arguments.engine, settings, stored_types()) as both,
    ):
        source = random.Random(arguments.seed)
        if "functions" in (arguments.parts or PARTS):
            _functions(both, Asking(both, tally, source, arguments.rows), arguments.only)
        if "groups" in (arguments.parts or PARTS):
            both.make(groups.members(source, arguments.rows))
            _groups(both, tally, arguments.only)
    _summarize(tally)
    sys.exit(bool(tally.different))


def _functions(both: Peers, asking: Asking, only: str) -> None:
    for call in calls(both.postgresql):
        if only in call.label:
            asking.compare(call)


def _groups(both: Peers, tally: Tally, only: str) -> None:
    for statement in groups.statements(both.postgresql):
        if only in statement.label:
            groups.compare(both, tally, statement)


def _summarize(tally: Tally) -> None:
    for label, count in tally.refused.most_common(REFUSED_MAX):
        print(f"refused {count} times, {label}")
    for label, count in tally.different.most_common():
        print(f"different {count} times, {label}")
    print(
        f"compared {tally.compared}, known {tally.known},"
        f" different {tally.different.total()} of {len(tally.different)} kinds,"
        f" refused {len(tally.refused)} kinds,"
        f" not found {len(tally.unknown)} kinds"
    )


if __name__ == "__main__":
    main()
