"""`make locks`: random schedules beside a PostgreSQL; what differs is made small and printed.

    python -m tests.postgres.locking --seconds 60 --seed 1
    python -m tests.postgres.locking --only advisory          one subject of `schedules.py`
    python -m tests.postgres.locking --only rows --replay 17  one schedule, told whole
    python -m tests.postgres.locking --without 'FOR (KEY )?SHARE'   no such statements
    python -m tests.postgres.locking --engine local           with DuckDB
    python -m tests.postgres.locking --cuts                   rows go into files at once

A difference is printed as a story for a file of `testdata`.
"""

import argparse
import contextlib
import itertools
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from coordinator.core.settings import CoreSettings
from tests.postgres.locking.lockstep import Lockstep
from tests.postgres.locking.schedules import SUBJECTS
from tests.postgres.locking.sessions import POSTGRES_SETTINGS
from tests.support.servers import meridian, postgres
from tests.support.stack import WITHOUT_CUTS, serving

CUTS = CoreSettings(cut_age_us=1)
"""Rows go into files, and are named anew there, as soon as may be."""


def main() -> None:
    """Do what the arguments say; exit code 1 if the servers differ."""
    parser = argparse.ArgumentParser(prog="tests.postgres.locking", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1, help="of the first schedule")
    parser.add_argument("--only", choices=SUBJECTS, help="default: all")
    parser.add_argument("--without", help="a regular expression")
    parser.add_argument("--replay", type=int, help="only this schedule of a subject")
    parser.add_argument("--engine", default="reference", choices=("reference", "local"))
    parser.add_argument("--cuts", action="store_true")
    arguments = parser.parse_args()
    subjects = [arguments.only] if arguments.only else SUBJECTS
    with (
        _server(arguments.engine, cuts=arguments.cuts) as ours,
        postgres(POSTGRES_SETTINGS) as theirs,
        contextlib.closing(Lockstep(theirs, ours)) as both,
    ):
        if arguments.replay is not None:
            played = both.draw(arguments.replay, subjects[0], arguments.without)
            print(played.shown())
            sys.exit(played.differs)
        sys.exit(_run(both, subjects, arguments))


def _run(both: Lockstep, subjects: list[str], arguments: argparse.Namespace) -> int:
    first: int = arguments.seed
    counts: Counter[str] = Counter()
    end = time.monotonic() + arguments.seconds
    for seed in itertools.count(first):
        for subject in subjects:
            if time.monotonic() > end:
                print(f"seeds {first} to {seed}:", dict(counts))
                return counts["different"] > 0
            counts[_verdict(both, seed, subject, arguments.without)] += 1
    return 0


def _verdict(both: Lockstep, seed: int, subject: str, without: str | None) -> str:
    played = both.draw(seed, subject, without)
    if not played.differs:
        return "equal"
    replay = f"--only {subject} --replay {seed}"
    if not both.is_certain(played):
        print(f"# {replay}: it was this, and is not any more\n{played.shown()}", flush=True)
        return "not judged"
    print(f"# {replay}: different, made smaller now", flush=True)
    print(both.smallest(played).shown(), flush=True)
    return "different"


@contextlib.contextmanager
def _server(engine: str, *, cuts: bool) -> Iterator[str]:
    if engine == "reference":
        with serving(core=CUTS if cuts else WITHOUT_CUTS) as dsn:
            yield dsn
        return
    options = ("--spark-master", "none")
    with tempfile.TemporaryDirectory() as place, meridian(Path(place), options) as server:
        yield server.dsn


if __name__ == "__main__":
    main()
