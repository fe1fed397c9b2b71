"""int2vector and oidvector: catalog arrays that begin at 0 and are displayed without braces.

Such a column is bound as an ordinary array, which begins at 1. This module corrects the operations
that depend on the lower bound or on the display, as long as they apply to the column itself.
"""

from sql.binder.expressions.calls import operator
from sql.binder.resolve.sql_functions import inline_sql_function
from sql.binder.state import Binding
from sql.catalog.system_catalogs import vector_columns
from sql.functions.table import function_by_id
from sql.plan.nodes import Call, Case, Coalesce, ColumnRef, Const, Expr, SetCall
from sql.types.sql_type import INT4, SqlType


def is_vector(binding: Binding, expr: Expr) -> bool:
    """Whether it is a column of a vector type, or that column cast to an array, which keeps its
    bound.
    """
    if isinstance(expr, Coalesce) and len(expr.args) == 1:
        expr = expr.args[0]
    return isinstance(expr, ColumnRef) and binding.origins.get(expr.id, (0, 0)) in vector_columns()


def cast_vector(binding: Binding, vector: Expr, target: SqlType) -> Expr:
    """A cast of a vector: text without braces, an array with them."""
    if target.name not in ("text", "varchar", "bpchar"):
        return Coalesce((vector,), vector.type)
    return inline_sql_function(binding, "pg_catalog.array_to_string($1, ' ')", (vector,))


def subscript_of_vector(binding: Binding, index: Expr) -> Expr:
    """The array subscript that corresponds to a vector subscript."""
    return operator(binding, "+", (index, Const(1, INT4)), [None, None], None)


def vector_subscripts(binding: Binding, vector: Expr, dimension: Expr) -> SetCall:
    """generate_subscripts(vector, dimension); a vector has one dimension."""
    one = Const(1, INT4)
    first = operator(binding, "=", (dimension, one), [None, None], None)
    count = Call(function_by_id("cardinality(anyarray)"), (vector,), INT4)
    last = operator(binding, "-", (count, one), [None, None], None)
    last = Case(((first, last),), Const(-1, INT4), INT4)
    return SetCall(function_by_id("generate_series(int4,int4)"), (Const(0, INT4), last), INT4)
