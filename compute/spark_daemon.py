"""The process that forks Spark's Python workers, with everything loaded that they need.

    JVM ─starts once─▶ this daemon ─forks─▶ worker of a task ─▶ `outside_functions.py`

Spark's own daemon loads nothing, so that each worker would spend half a second on imports. What is
loaded here starts no thread that a fork would lose (numpy is told to start none, and Arrow's
allocator minds forks by itself).

INVARIANTS
  D1  it ends when the JVM does, because its standard input closes then, and takes the workers
      along.
"""

from pyspark import worker
from pyspark.daemon import manager

from compute import outside_functions
from compute.reference_functions import makers
from sql.functions import all_functions

if __name__ == "__main__":
    assert worker.main is not None, "loaded for the workers"
    assert outside_functions.ArrowFunction is not None, "loaded for the workers"
    assert makers().keys() <= {row.id for row in all_functions()}, "both tables are loaded"
    manager()
