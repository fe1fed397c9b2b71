"""Play PostgreSQL's regression tests on PostgreSQL and on Meridian, and print what differs.

python -m tests.postgres.regress DIRECTORY                       all of DIRECTORY/sql, without Spark
python -m tests.postgres.regress DIRECTORY select join           these files
python -m tests.postgres.regress DIRECTORY --engine spark select

DIRECTORY is src/test/regress of PostgreSQL's sources, with the files of data/ that shall be loaded.
Not here: a verdict for good. Ties of an ORDER BY, random numbers and whatever is refused on purpose
under another SQLSTATE look wrong; a person has to judge.
"""

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.postgres.queries.answers import show
from tests.postgres.regress.playing import SETTINGS, Played, counts_of, play
from tests.support.servers import meridian, postgres

LINES_MAX = 12
"""Of an answer that is printed."""


def main() -> None:
    """Play the files that were asked for."""
    parser = argparse.ArgumentParser(prog="tests.postgres.regress", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--engine", default="local")
    parser.add_argument("--refused", action="store_true", help="print what is refused, too")
    parser.add_argument("--plain", action="store_true", help="not in the styles of pg_regress")
    arguments = parser.parse_args()
    names = [f"{name.removesuffix('.sql')}.sql" for name in arguments.files] or [
        path.name for path in sorted((arguments.directory / "sql").glob("*.sql"))
    ]
    total: Counter[str] = Counter()
    with postgres() as peer:
        for name in names:
            counts: Counter[str] = Counter()
            settings = () if arguments.plain else SETTINGS
            for played in _played(arguments.directory, name, arguments.engine, settings, peer):
                counts[played.verdict] += 1
                _report(name, played, refused=arguments.refused)
            total += counts
            print(f"=== {name}: {counts_of(counts)}\n", flush=True)
    print(f"=== all: {counts_of(total)}")


def _played(
    directory: Path, name: str, engine: str, settings: Sequence[str], peer: str
) -> Iterator[Played]:
    """A file on a Meridian of its own: it has one database."""
    options = () if engine == "spark" else ("--spark-master", "none")
    with (
        tempfile.TemporaryDirectory(prefix="regress-") as place,
        meridian(Path(place), options) as server,
    ):
        ours = f"{server.dsn}?options=-cengine%3D{engine}"
        yield from play(directory, name, settings, ours, peer)


def _report(name: str, played: Played, *, refused: bool) -> None:
    where = f"{name}:{played.statement.line}"
    if played.verdict == "refused" and refused:
        print(f"# {where}: {show(played.found[-1:])}\n{played.statement.text}\n", flush=True)
    if played.verdict.startswith("WRONG"):
        print(f"# {where}: {played.verdict}\n{played.statement.text}")
        print(f"---- PostgreSQL\n{_short(show(played.expected))}")
        print(f"---- Meridian\n{_short(show(played.found))}\n", flush=True)


def _short(text: str) -> str:
    lines = text.splitlines()
    left = len(lines) - LINES_MAX
    return "\n".join([*lines[:LINES_MAX], *([f".. {left} more"] if left > 0 else [])])


if __name__ == "__main__":
    main()
