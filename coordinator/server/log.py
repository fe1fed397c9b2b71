"""Log to stderr, one line a record: time in UTC, level, logger, text.

Metrics: `coordinator/monitoring/`.

INVARIANTS
  G1  a record is one line: newlines in the logged text are escaped.
"""

import logging
import sys
import time
from typing import Final

_FORMAT: Final = "%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s"


class _OneLine(logging.Formatter):
    """One line a record (G1), in UTC."""

    converter = staticmethod(time.gmtime)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  logging's name
        return super().formatMessage(record).replace("\r", "\\r").replace("\n", "\\n")


def start_logging(level: str) -> None:
    """Log to stderr from now on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine(_FORMAT, datefmt="%Y-%m-%dT%H:%M:%S"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # Spark's bridge logs its failures before it raises them; who catches them says what matters.
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
