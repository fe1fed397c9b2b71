"""Call the reference evaluator from DuckDB, row by row, where DuckDB would answer otherwise.

Correct by the same proof as the reference engine itself, and slow: about a microsecond a row, one
row at a time in the whole process. So a template computes natively whatever DuckDB computes as
PostgreSQL does, and calls the evaluator only for the rest.
"""

from collections.abc import Sequence

from sql.emit.state import EvaluatorCall, Scope
from sql.functions.table import function_by_id
from sql.plan.nodes import Call, ColumnId, ColumnRef
from sql.types.sql_type import SqlType


def evaluator_call(call: Call, scope: Scope) -> str:
    """The call, which the reference evaluator computes for every row."""
    scope.statement.row_by_row = True
    return evaluator_call_over(call, [scope.emit(arg) for arg in call.args], scope)


def evaluator_call_over(call: EvaluatorCall, args: Sequence[str], scope: Scope) -> str:
    """The same over texts of arguments that are already written."""
    return f"{scope.statement.called(call)}({', '.join(args)})"


def function_table_call(id_: str, args: Sequence[SqlType], result: SqlType) -> Call:
    """A call of a row of the function table, for `evaluator_call_over`."""
    columns = tuple(ColumnRef(ColumnId(index), type_) for index, type_ in enumerate(args))
    return Call(function_by_id(id_), columns, result)
