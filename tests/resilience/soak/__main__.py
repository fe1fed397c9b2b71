"""Soak a server: `python -m tests.resilience.soak --seconds 1800`.

--plant NAME puts a bug into the server, which must be found (`served.py`).
"""

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

from tests.resilience.soak.running import soak
from tests.resilience.soak.served import PLANTS


def main() -> int:
    """0 if nothing was found."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--spark-master", default="none")
    parser.add_argument("--plant", default="none", choices=sorted(PLANTS))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as place:
        soaked = soak(
            Path(place),
            arguments.seconds,
            spark_master=arguments.spark_master,
            plant=arguments.plant,
            tell=partial(print, flush=True),
        )
    print(soaked)
    return bool(soaked.findings)


if __name__ == "__main__":
    sys.exit(main())
