"""The reference evaluator's functions in DuckDB: over Arrow, a row at a time.

INVARIANTS
  F1  a function is registered once, under a name that says its row and types
      (`sql/emit/scope.py`, M3), before a statement that calls it runs.
"""

import threading
from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import TypeAlias, cast

import duckdb
import pyarrow as pa

from compute.local_errors import tagged
from compute.reference_arrow import to_array, to_values
from compute.reference_expressions import Frame, Source, compile_expression
from sql.emit.duckdb_types import duckdb_type
from sql.errors import SqlError
from sql.plan import Call, ColumnId, Plan

_Column: TypeAlias = "pa.ChunkedArray[pa.Scalar[pa.DataType]]"
_Array: TypeAlias = "pa.Array[pa.Scalar[pa.DataType]]"


class _Failed(Exception):
    """Carries an SqlError through DuckDB, as text."""


class LocalFunctions:
    """What is registered with a database. Thread-safe."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._names: set[str] = set()

    def register(self, calls: Mapping[str, Call]) -> None:
        """Make functions known (F1)."""
        if calls.keys() <= self._names:
            return
        with self._lock:
            for name, call in calls.items():
                if name not in self._names:
                    self._create(name, call)
                    self._names.add(name)

    def _create(self, name: str, call: Call) -> None:
        self._connection.create_function(
            name,
            evaluator(call),
            [duckdb_type(arg.type) for arg in call.args],
            duckdb_type(call.type),
            type=cast("duckdb.func.PythonUDFType", "arrow"),
            null_handling=cast("duckdb.func.FunctionNullHandling", "special"),
        )


def evaluator(call: Call) -> Callable[..., _Array]:
    """The call as a function of columns."""
    columns = {ColumnId(index): index for index in range(len(call.args))}
    evaluate = compile_expression(call, Frame(columns, (), _no_subplan))
    types = [arg.type for arg in call.args]

    def over_columns(*arrays: _Column) -> _Array:
        values = [to_values(array, type_) for array, type_ in zip(arrays, types, strict=True)]
        try:
            return to_array([evaluate(row) for row in zip(*values, strict=True)], call.type)
        except SqlError as error:
            raise _Failed(tagged(error)) from error

    # DuckDB looks for as many parameters as there are types, and would evaluate annotations.
    over_columns.__annotations__.clear()
    parameters = [Parameter(f"a{index}", Parameter.POSITIONAL_ONLY) for index in range(len(types))]
    vars(over_columns)["__signature__"] = Signature(parameters)
    return over_columns


def _no_subplan(_plan: Plan, _frame: Frame) -> Source:
    raise AssertionError("M3: a call is over columns")
