"""The daemon that forks Spark's Python workers, with their modules already loaded.

    JVM ─starts once─▶ this daemon ─forks─▶ worker of a task ─▶ `python_functions.py`

Spark's own daemon loads nothing, so that each worker would spend half a second on imports. The
modules loaded here start no thread that a fork would lose (numpy is configured to start none, and
Arrow's allocator handles forks by itself).

INVARIANTS
  D1  it ends when the JVM does, because its standard input closes then, and ends the workers too.
  D2  a worker takes no more memory than MEMORY_MAX: beyond it its query fails (53200), not the
      coordinator next to it.
"""

import resource
from pathlib import Path
from typing import Final

from pyspark import worker
from pyspark.daemon import manager

from compute.reference.function_table import implementations
from compute.spark import python_functions as outside_functions
from sql.functions.table import all_functions

MEMORY_MAX: Final = 1 << 30
"""Bytes that a worker may take beyond what is loaded. A batch of long texts or the rows of a group
must fit; there are as many workers as cores, for each function of a running statement.
"""


def limit_memory() -> None:
    """Limit the memory of this process and of those that it forks (D2)."""
    taken = Path("/proc/self/statm")
    if not taken.exists():
        # Other systems than Linux have nothing alike.
        return
    pages = int(taken.read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY_MAX
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    assert worker.main is not None, "loaded for the workers"
    assert outside_functions.ArrowFunction is not None, "loaded for the workers"
    assert implementations().keys() <= {row.id for row in all_functions()}, "both tables are loaded"
    limit_memory()
    manager()
