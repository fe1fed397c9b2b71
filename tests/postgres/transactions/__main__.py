"""Record scripts in transactions, or show where a server differs from PostgreSQL.

python -m tests.postgres.transactions --record       PostgreSQL's answers for all scripts
python -m tests.postgres.transactions writing-merge  both servers, by statement, with states
"""

import argparse
import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.postgres.transactions.playing import Blocks, recorded_path, scripts, statements
from tests.postgres.transactions.states import State
from tests.support.servers import ON_SPARK, meridian, postgres
from tests.support.stack import WITHOUT_CUTS, serving
from tests.support.stage import stage


def main() -> None:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser(prog="tests.postgres.transactions", description=__doc__)
    parser.add_argument("names", nargs="*", default=sorted(scripts()))
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--engine", default="reference", choices=("reference", "local", "spark"))
    arguments = parser.parse_args()
    # It answers the same without waiting for the disk.
    with postgres(("fsync=off",)) as real:
        for name in arguments.names:
            if arguments.record:
                record(real, name)
            else:
                with _server(arguments.engine) as dsn:
                    print(name, differences(real, dsn, name), flush=True)


def record(dsn: str, name: str) -> None:
    """Write PostgreSQL's answers into the script's file."""
    with stage(dsn) as connection:
        blocks = Blocks(connection)
        told = [blocks.play(line) for line in statements(scripts()[name])]
    recorded_path(name).write_text("\n\n".join(told) + "\n")


def differences(real: str, dsn: str, name: str) -> int:
    """Tell all statements that differ, and how; their number."""
    count, told = 0, ""
    with stage(real) as theirs, stage(dsn) as ours:
        one, other = Blocks(theirs), Blocks(ours)
        for line in statements(scripts()[name]):
            expected = one.play(line)
            try:
                found = other.play(line)
            except AssertionError as error:
                found = str(error)
            if found == expected:
                continue
            states = State(one.state.shared, []), State(other.state.shared, [])
            difference = states[0].difference(states[1])
            if _answers(found) == _answers(expected) and difference == told:
                continue
            count, told = count + 1, difference
            print(f"--- PostgreSQL\n{expected}\n--- ours\n{found}\n{difference}")
    return count


def _answers(told: str) -> list[str]:
    return [line for line in told.splitlines() if not line.startswith("then ")]


@contextlib.contextmanager
def _server(engine: str) -> Iterator[str]:
    if engine == "reference":
        with serving(core=WITHOUT_CUTS) as dsn:
            yield dsn
        return
    options = ("--spark-master", "none") if engine == "local" else ON_SPARK
    with tempfile.TemporaryDirectory() as place, meridian(Path(place), options) as server:
        yield server.dsn


if __name__ == "__main__":
    main()
