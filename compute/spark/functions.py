"""Register functions of the reference evaluator in Spark, as Arrow UDFs of Python.

    EmittedQuery.functions ─▶ pickled ─▶ registered with the session while a statement is analysed
                                           ─▶ Spark forks workers (`worker_daemon.py`), which answer

INVARIANTS
  F1  a function is registered before a statement that calls it is analysed, and stays until the
      analysis is done; afterwards the analysed plan holds it.
  F2  only pickles of Meridian's own plan nodes travel, written here and read by its own workers.
"""

import pickle
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from compute.spark.python_functions import ArrowFunction, spark_type_of_json
from compute.spark.session import SparkSession
from sql.emit.spark.types import spark_type
from sql.emit.state import WorkerFunction
from sql.plan.nodes import Aggregate, WindowCall
from sql.plan.traverse import is_volatile_expression

REGISTERED_MAX: Final = 256
"""Functions that stay registered with a session for the next statement: each is some kilobytes."""


@dataclass(frozen=True, slots=True)
class _Returned:
    """Becomes Spark's type where it is read: this process does not load PySpark's classes."""

    json: str

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return spark_type_of_json, (self.json,)


class SparkFunctions:
    """The functions that are registered with a session. Thread-safe."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._names: OrderedDict[str, None] = OrderedDict()
        self._in_use: Counter[str] = Counter()

    @contextmanager
    def registered(self, functions: Mapping[str, WorkerFunction]) -> Generator[None]:
        """Register functions until the context ends (F1)."""
        with self._lock:
            for name, function in functions.items():
                if name not in self._names:
                    self._register(name, function)
                self._names[name] = None
                self._names.move_to_end(name)
            self._in_use.update(functions.keys())
        try:
            yield
        finally:
            with self._lock:
                self._in_use.subtract(functions.keys())
                self._forget()

    def _register(self, name: str, function: WorkerFunction) -> None:
        session, expr = self._session, function.expr
        volatile = not isinstance(expr, Aggregate | WindowCall) and is_volatile_expression(expr)
        type_ = session.struct(result_struct_fields(function))
        answer = (ArrowFunction(name, function), _Returned(str(type_.json())))
        session.register(name, pickle.dumps(answer), type_, deterministic=not volatile)

    def _forget(self) -> None:
        unused = [name for name in self._names if not self._in_use[name]]
        for name in unused[: max(0, len(self._names) - REGISTERED_MAX)]:
            self._session.unregister(name)
            del self._names[name], self._in_use[name]


def result_struct_fields(function: WorkerFunction) -> str:
    """The fields of a function's result (O2 of `sql/emit/spark/worker_functions.py`)."""
    value = spark_type(function.expr.type)
    return f"v {f'array<{value}>' if function.makes_list else value}, e string"
