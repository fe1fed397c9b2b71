"""Archives of data directories: written by the program of today, opened by those of later.

python -m tests.resilience.versions.archives NAME      write `testdata/versions/NAME.tar.gz`
"""

import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import psycopg

from tests.resilience.versions.contents import CHANGED, FLUSHED, QUESTIONS, TAIL
from tests.support.servers import Meridian

TESTDATA = Path(__file__).parents[1] / "testdata" / "versions"
OPTIONS = ("--spark-master", "none")
BYTES_MAX = 1 << 20
"""Of an archive: it stays in the repository for ever."""


def archives() -> list[str]:
    """The names of those that there are."""
    return sorted(path.name.removesuffix(".tar.gz") for path in TESTDATA.glob("*.tar.gz"))


def unpacked(name: str, place: Path) -> None:
    """The data directory of a version, as `place/data`."""
    with tarfile.open(TESTDATA / f"{name}.tar.gz") as archive:
        archive.extractall(place, filter="data")


def recorded(name: str) -> str:
    """What the version answered to the questions."""
    return (TESTDATA / f"{name}.answers").read_text()


def run(dsn: str, statements: tuple[str, ...]) -> None:
    """Each statement in a transaction of its own."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def answers(dsn: str) -> str:
    """The questions with their answers, as text."""
    lines: list[str] = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        found = connection.execute(
            "select ts from meridian.read_holds where name = 'before_changes'"
        ).fetchone()
        hold = found[0] if found else "none"
        for question in QUESTIONS:
            cursor = psycopg.ClientCursor(connection)
            cursor.execute(question.replace("{hold}", str(hold)).encode())
            lines += [question, "----", *map(_line, cursor.fetchall()), ""]
    return "\n".join(lines)


def _line(row: tuple[Any, ...]) -> str:
    return " | ".join("NULL" if value is None else str(value) for value in row)


def write(name: str) -> None:
    """Fill a directory, kill the server, and pack what it left."""
    with tempfile.TemporaryDirectory(prefix="version-") as place:
        server = Meridian(Path(place), OPTIONS)
        for statements in (FLUSHED, CHANGED):
            run(server.start(), statements)
            assert server.stop() == 0, server.log
        try:
            dsn = server.start()
            run(dsn, TAIL)
            found = answers(dsn)
        finally:
            server.kill()
        path = TESTDATA / f"{name}.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            archive.add(server.data, "data", filter=_nobody)
    (TESTDATA / f"{name}.answers").write_text(found)
    assert path.stat().st_size <= BYTES_MAX, f"{path.stat().st_size} bytes"


def _nobody(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    write(sys.argv[1])
