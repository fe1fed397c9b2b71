"""`meridian` with a Spark to which every query is as large as its lane is made for.

    python -m tests.engines.spark.forced_lane large serve --data-dir ..

Tables of tests are small; adaptive execution, generated code and rows in files are for large ones.
"""

import sys

from compute.spark.session import SessionPoolName
from coordinator.main import main
from tests.engines.spark.shared_engine import forced

if __name__ == "__main__":
    with forced(SessionPoolName(sys.argv[1])):
        sys.exit(main(sys.argv[2:]))
