"""Run statement files by hand, record them, list what is refused: `-m tests.postgres.queries`.

python -m tests.postgres.queries                          all files on the local engine
python -m tests.postgres.queries --engine spark joins     one file on Spark
python -m tests.postgres.queries --record joins           PostgreSQL's answers into the file
python -m tests.postgres.queries --refusals               write the lists of what is refused
"""

import argparse
import contextlib
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from compute.spark.session import SessionPoolName
from tests.postgres.queries import lists
from tests.postgres.queries.comparing import Verdict
from tests.postgres.queries.running import Outcome, record, run
from tests.postgres.queries.statement_files import areas
from tests.support.servers import meridian, postgres


def main() -> None:
    """Do what the arguments say; exit code 1 if an answer is wrong."""
    parser = argparse.ArgumentParser(prog="tests.postgres.queries", description=__doc__)
    parser.add_argument("areas", nargs="*", default=areas())
    parser.add_argument("--engine", default="local", choices=("local", "spark"))
    parser.add_argument(
        "--lane", choices=list(SessionPoolName), help="Spark's, whatever the inputs"
    )
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--refusals", action="store_true")
    parser.add_argument("--server", help="the DSN of a running one: PostgreSQL to record")
    arguments = parser.parse_args()
    with _server(arguments) as dsn:
        if arguments.record:
            for area in arguments.areas:
                record(dsn, area)
            return
        on_purpose = lists.deviating()
        outcomes = [
            outcome
            for area in arguments.areas
            for outcome in _told(area, run(dsn, area, arguments.engine), on_purpose)
        ]
    if arguments.refusals:
        lists.write(arguments.engine, outcomes, arguments.areas)
    print(dict(Counter(outcome.verdict.value for outcome in outcomes)))
    sys.exit(any(outcome.verdict is Verdict.WRONG for outcome in outcomes))


@contextlib.contextmanager
def _server(arguments: argparse.Namespace) -> Iterator[str]:
    if arguments.server:
        yield arguments.server
    elif arguments.record:
        with postgres() as dsn:
            yield dsn
    else:
        options = () if arguments.engine == "spark" else ("--spark-master", "none")
        with (
            tempfile.TemporaryDirectory() as place,
            meridian(Path(place), options, lane=arguments.lane) as server,
        ):
            yield server.dsn


def _told(area: str, outcomes: Iterator[Outcome], on_purpose: frozenset[str]) -> Iterator[Outcome]:
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        if outcome.key in on_purpose:
            continue
        counts[outcome.verdict.value] += 1
        if outcome.verdict is Verdict.WRONG:
            print(outcome.story)
        yield outcome
    print(area, dict(counts), flush=True)


if __name__ == "__main__":
    main()
