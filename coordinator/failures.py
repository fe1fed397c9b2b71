"""Map failures of storage and engines to SQLSTATEs; no other module does so.

    storage  Determinate     did not happen     58030, or 53100 when the disk is full
             Indeterminate   may have happened  40003 (the driver resolves commits itself)
             Fenced          another server     57P01, and the process exits
    engine   EngineUnavailable                  57P03: the statement may be repeated

INVARIANTS
  N1  no text of a storage or engine failure reaches a client: it names paths and hosts.
  N2  an unforeseen failure is XX000, is logged with its traceback, and ends the connection.
"""

import errno
import logging
from typing import Final

from compute.executor import EngineUnavailable, NoExecutors
from sql.errors import SqlError, statement_too_complex
from storage.errors import Fenced, ForeignWriter, Indeterminate, StorageError

log = logging.getLogger("meridian.errors")

_MANY_DIGITS: Final = "for integer string conversion"
"""Python's own words for an integer that would take too long to read or write."""

ADMIN_SHUTDOWN: Final = "57P01"


def storage_failure(error: StorageError) -> SqlError:
    """The failure of a storage operation, for the client whose statement needed it."""
    log.warning("storage failure: %s", error)
    match error:
        case Fenced():
            return admin_shutdown()
        case Indeterminate():
            return SqlError("40003", "the outcome of the statement is unknown")
        case ForeignWriter():
            return SqlError(
                "58030",
                "the table was changed by another writer",
                hint="Its Delta log was written by something other than this server.",
            )
        case _ if _is_disk_full(error):
            return SqlError("53100", "could not write: no space left on device")
        case _:
            return SqlError("58030", "could not read or write storage")


def staging_failure(error: StorageError | OSError) -> SqlError:
    """What is read, or staged for a commit that has not come: nothing has happened."""
    if isinstance(error, Fenced):
        return admin_shutdown()
    log.warning("storage failure: %s", error)
    if _is_disk_full(error):
        return SqlError("53100", "could not write: no space left on device")
    return SqlError("58030", "could not read or write storage")


def _is_disk_full(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if "disk is full" in str(cause):  # SQLite's own words; its exception has no errno
            return True
        cause = cause.__cause__
    return False


def engine_failure(error: EngineUnavailable) -> SqlError:
    """The engine did not answer."""
    log.warning("engine unavailable: %s", error)
    if isinstance(error, NoExecutors):
        return SqlError(
            "57P03",
            "the Spark cluster has no executors",
            hint="The server's log says what executors need; the statement may be repeated.",
        )
    return SqlError(
        "57P03",
        "the query engine is not available",
        hint="It is being started again; the statement may be repeated.",
    )


def admin_shutdown() -> SqlError:
    """57P01: the server ends the session."""
    return SqlError(ADMIN_SHUTDOWN, "terminating connection due to administrator command")


def query_canceled(reason: str = "user request") -> SqlError:
    """57014."""
    return SqlError("57014", f"canceling statement due to {reason}")


def statement_failure(error: Exception) -> SqlError:
    """Whatever a statement raised, as the client sees it (N1, N2)."""
    match error:
        case SqlError():
            return error
        case StorageError():
            return storage_failure(error)
        case EngineUnavailable():
            return engine_failure(error)
        case OSError() if _is_disk_full(error):
            return SqlError("53100", "could not write: no space left on device")
        case RecursionError():
            # Values nest as deep as their texts do. Logged, since it may be a loop of ours, too.
            log.warning("recursion without an end in sight", exc_info=error)
            return statement_too_complex("What the statement computes with is nested too deeply.")
        case OSError():
            log.warning("input or output failed: %s", error)
            return SqlError("58030", "could not read or write storage")
        case MemoryError():
            return SqlError("53200", "out of memory")
        case ValueError() if _MANY_DIGITS in str(error):
            return SqlError("54000", "a number has too many digits")
        case _:
            log.error("unexpected failure", exc_info=error)
            return SqlError("XX000", "internal error")
