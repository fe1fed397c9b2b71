"""`make demo`: run the flights demo on a server of its own, or on one that runs already.

make demo
make demo ARGS='--dsn postgresql://meridian@127.0.0.1:7432/meridian'
"""

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path

import psycopg

from tests.clients.demo import flights
from tests.support.servers import meridian


def main() -> None:
    """Load, ask, correct, ask again, look back."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--dsn", help="a running server; default: start one for the demo")
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        dsn = arguments.dsn
        if dsn is None:
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="meridian-demo-"))
            dsn = stack.enter_context(meridian(Path(directory))).dsn
        connection = stack.enter_context(psycopg.connect(dsn, autocommit=True))
        tell(f"connected to {dsn}")
        story = flights.run(connection, tell)
        tell(f"\n== The same questions as of {story.moment}, before the corrections ==")
        looked_back = flights.ask(connection, lambda _: None, story.moment)
        same = sum(looked_back[question] == story.before[question] for question in story.before)
        tell(f"{same} of {len(story.before)} answers are those from before the corrections")
        sys.exit(same != len(story.before))


def tell(text: str) -> None:
    """Print at once, also into a pipe."""
    print(text, flush=True)


if __name__ == "__main__":
    main()
