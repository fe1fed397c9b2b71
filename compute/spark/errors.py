"""Translate Spark's exceptions by error condition and SQLSTATE.

INVARIANTS
  X1  no text of an exception reaches a client, except messages of Meridian's own `raise_error` and
      values of the data that PostgreSQL shows too; paths, host names and stacks stay in the log.
  X2  decisions depend on conditions and parameters of exceptions, never on texts that data could
      imitate.
"""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

from compute.reference.tagged_errors import decode_error
from compute.spark.gateway import JavaObject
from compute.spark.jvm import Jvm
from sql.emit.spark.types import HINT
from sql.errors import (
    SqlError,
    division_by_zero,
    invalid_text_representation,
    not_supported,
    out_of_range,
    statement_too_complex,
)
from sql.types.text_input import field_overflow

log = logging.getLogger(__name__)

_CAUSES_MAX: Final = 20
_FRAMES_MAX: Final = 8
_LEFT_OVER: Final = "Unable to rewrite domain join"
"""An internal error of Spark: a branch of a correlated subquery turned out to be empty."""
_OVERFLOW: Final = "java.lang.ArithmeticException"
_CAST: Final = re.compile(r" as (smallint|int|bigint)\)")
_TYPES: Final[dict[str, str]] = {
    "BOOLEAN": "boolean", "TINYINT": "smallint", "SMALLINT": "smallint", "INT": "integer",
    "BIGINT": "bigint", "FLOAT": "real", "DOUBLE": "double precision", "DATE": "date",
    "TIMESTAMP_NTZ": "timestamp", "TIMESTAMP": "timestamp with time zone", "STRING": "text",
    "BINARY": "bytea",
}  # fmt: skip


class JvmDied(Exception):
    """The JVM ended, or stopped working, during a call."""


class Cancelled(Exception):
    """Spark reports that the job was cancelled."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One exception of the chain of causes."""

    class_name: str
    condition: str = ""
    sqlstate: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])
    message: str = ""
    fragment: str = ""
    """The part of the statement that failed; the statement's text is all ours."""
    methods: tuple[str, ...] = ()
    """Where a Java program's own arithmetic overflowed, innermost first."""


def translate_spark_error(error: Exception, jvm: Jvm) -> Exception:
    """The exception that the engine raises for an exception of py4j."""
    if isinstance(error, Py4JJavaError):
        return translate_failures(cause_chain(error, jvm), str(error))
    if isinstance(error, Py4JNetworkError | OSError) or not jvm.alive:
        return JvmDied()
    if isinstance(error, Py4JError):
        # The gateway refused the call itself: our bug, or the JVM is going down.
        return _unknown(str(error))
    return error


def translating_errors(jvm: Jvm) -> "ErrorTranslation":
    """A context that translates py4j's exceptions."""
    return ErrorTranslation(jvm)


class ErrorTranslation:
    """See `translating_errors`."""

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm

    def __enter__(self) -> None:
        pass

    def __exit__(self, _type: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, Py4JError | OSError):
            try:
                found = translate_spark_error(error, self._jvm)
            except (Py4JError, OSError):
                # It died while it was asked for the cause.
                found = JvmDied()
            if found is not error:
                raise found from error


def cause_chain(error: Py4JJavaError, jvm: Jvm) -> list[Failure]:
    """The chain of causes, outermost first."""
    found: list[Failure] = []
    thrown: JavaObject = error.java_exception
    throwable = jvm.java.java.lang.Class.forName("org.apache.spark.SparkThrowable")
    while thrown is not None and len(found) < _CAUSES_MAX:
        found.append(_failure(thrown, spark=throwable.isInstance(thrown)))
        thrown = thrown.getCause()
    return found


def _failure(thrown: JavaObject, *, spark: bool) -> Failure:
    name = str(thrown.getClass().getName())
    message = str(thrown.getMessage() or "")
    if not spark:
        methods = _methods(thrown) if name == _OVERFLOW else ()
        return Failure(name, message=message, methods=methods)
    condition = thrown.getCondition()
    if not condition:
        return Failure(name, message=message)
    parameters = {
        str(key): str(value) for key, value in dict(thrown.getMessageParameters()).items()
    }
    sqlstate = str(thrown.getSqlState() or "")
    contexts = thrown.getQueryContext()
    fragment = str(contexts[0].fragment()) if len(contexts) else ""
    return Failure(name, str(condition), sqlstate, parameters, message, fragment)


def _methods(thrown: JavaObject) -> tuple[str, ...]:
    frames = list(thrown.getStackTrace())[:_FRAMES_MAX]
    return tuple(str(frame.getMethodName()) for frame in frames)


def translate_failures(failures: Sequence[Failure], detail: str) -> Exception:
    """The exception that the engine raises for a chain of causes; `detail` is only logged (X1)."""
    # The innermost condition is the reason; the outer ones say where it occurred.
    for failure in reversed(failures):
        if (found := _known(failure)) is not None:
            return found
    if any(_stopped(failure) for failure in failures):
        return JvmDied()
    if any("cancelled" in failure.message for failure in failures[:1]):
        return Cancelled()
    return _unknown(detail)


def _stopped(failure: Failure) -> bool:
    """Whether the Spark context stopped: it does not start again, so the JVM is of no use any
    more.
    """
    return (
        failure.class_name == "java.lang.IllegalStateException"
        and (
            "stopped SparkContext" in failure.message
            or "LiveListenerBus is stopped" in failure.message
        )
    ) or (
        failure.class_name == "org.apache.spark.SparkException"
        and "SparkContext was shut down" in failure.message
    )


def _unknown(detail: str) -> SqlError:
    log.error("the engine failed: %s", detail)
    return SqlError("XX000", "the engine failed")


def _known(failure: Failure) -> SqlError | None:
    if failure.class_name in _BY_CLASS:
        return _BY_CLASS[failure.class_name]()
    if "daysToMicros" in failure.methods:
        return SqlError("22008", "date out of range for timestamp")
    if "instantToMicros" in failure.methods:
        return _datetime(failure)
    # A subcondition is written behind a dot.
    make = _BY_CONDITION.get(failure.condition.partition(".")[0])
    if make is not None:
        return make(failure)
    # Data exceptions that have no words of ours yet; the class of the SQLSTATE is right as it
    # comes.
    if failure.sqlstate.startswith("22"):
        return SqlError(failure.sqlstate, "data exception", detail=None)
    if failure.sqlstate == "0A000":
        log.warning("spark refuses a query: %s", failure.condition)
        return not_supported("a query of this form on the spark engine", hint=HINT)
    if failure.parameters.get("message", "").startswith(_LEFT_OVER):
        return not_supported("a query of this form on the spark engine", hint=HINT)
    if "No space left on device" in failure.message:
        return SqlError("53100", "could not write temporary file: no space left on device")
    return None


def out_of_memory() -> SqlError:
    """SQLSTATE 53200."""
    return SqlError("53200", "out of memory", detail="The query needs more memory than Spark has.")


def _raised(failure: Failure) -> SqlError | None:
    return decode_error(failure.parameters.get("errorMessage", ""))


def _arithmetic(failure: Failure) -> SqlError:
    # The operands have the type of the result, by explicit casts.
    casts = _CAST.findall(failure.fragment)
    return out_of_range(_TYPES[casts[-1].upper()] if casts else "value")


def _binary_arithmetic(failure: Failure) -> SqlError:
    del failure
    return out_of_range("smallint")


def _cast_overflow(failure: Failure) -> SqlError:
    return out_of_range(_target(failure))


def _numeric(failure: Failure) -> SqlError:
    precision, scale = failure.parameters.get("precision"), failure.parameters.get("scale")
    if precision is None or scale is None:
        return SqlError("22003", "numeric field overflow")
    return field_overflow(int(precision), int(scale))


def _cast_input(failure: Failure) -> SqlError:
    target = _target(failure)
    text = failure.parameters.get("expression", "''")
    error = invalid_text_representation(target, text[1:-1] if text.startswith("'") else text)
    if target.startswith(("date", "timestamp")):
        error.sqlstate = "22007"
    return error


def _target(failure: Failure) -> str:
    """The name of the type in quotes, e.g. `"INT"` or `"DECIMAL(10,2)"`, as PostgreSQL calls it."""
    name = failure.parameters.get("targetType", "").strip('"')
    return _TYPES.get(name, "numeric" if name.startswith("DECIMAL") else "value")


def _datetime(failure: Failure) -> SqlError:
    del failure
    return SqlError("22008", "timestamp out of range")


def _many_rows(failure: Failure) -> SqlError:
    del failure
    return SqlError("21000", "more than one row returned by a subquery used as an expression")


def _not_supported(failure: Failure) -> SqlError | None:
    if not failure.condition.endswith(".PYTHON_UDF_IN_ON_CLAUSE"):
        return None
    what = "a function that Spark lacks, over both sides of an outer join or of EXISTS,"
    return not_supported(f"{what} on the spark engine", hint=HINT)


def _recursive(failure: Failure) -> SqlError:
    del failure
    return not_supported("this form of WITH RECURSIVE on the spark engine", hint=HINT)


def _volatile(failure: Failure) -> SqlError:
    del failure
    return not_supported("a volatile function here on the spark engine", hint=HINT)


_BY_CONDITION: Final[dict[str, Callable[[Failure], SqlError | None]]] = {
    "USER_RAISED_EXCEPTION": _raised,
    "DIVIDE_BY_ZERO": lambda _: division_by_zero(),
    "REMAINDER_BY_ZERO": lambda _: division_by_zero(),
    "ARITHMETIC_OVERFLOW": _arithmetic,
    "BINARY_ARITHMETIC_OVERFLOW": _binary_arithmetic,
    "CAST_OVERFLOW": _cast_overflow,
    "NUMERIC_VALUE_OUT_OF_RANGE": _numeric,
    "NUMERIC_OUT_OF_SUPPORTED_RANGE": _numeric,
    "CAST_INVALID_INPUT": _cast_input,
    "DATETIME_OVERFLOW": _datetime,
    "SCALAR_SUBQUERY_TOO_MANY_ROWS": _many_rows,
    "UNSUPPORTED_FEATURE": _not_supported,
    "AGGREGATE_FUNCTION_WITH_NONDETERMINISTIC_EXPRESSION": _volatile,
    "INVALID_NON_DETERMINISTIC_EXPRESSIONS": _volatile,
    "INVALID_RECURSIVE_REFERENCE": _recursive,
    "UNABLE_TO_ACQUIRE_MEMORY": lambda _: out_of_memory(),
    "FAILED_TO_PARSE_TOO_COMPLEX": lambda _: statement_too_complex(),
}
_BY_CLASS: Final[dict[str, Callable[[], SqlError]]] = {
    "java.lang.OutOfMemoryError": out_of_memory,
    "org.apache.spark.memory.SparkOutOfMemoryError": out_of_memory,
    "java.lang.StackOverflowError": statement_too_complex,
}
