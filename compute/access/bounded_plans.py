"""Which plans cost no more for a row than the row is long: those may run between two commits.

A group of commits is gathered on the event loop, and everybody waits for it. So what is computed
there is chosen from the lists below (E4 of `coordinator/core/short_writes/`).

INVARIANTS
  C1  a plan that is bounded maps rows of one scan one by one, and every function of it is in these
      lists, over types whose values are computed in time linear in their length. No function
      makes a value that is longer than its arguments together, but for texts of numbers and dates.
  C2  what needs a time zone, the clock or the session is not bounded.
"""

from typing import Final

from compute.simple_plans import is_row_by_row
from sql.functions.table import Function, FunctionKind
from sql.plan.nodes import (
    Call,
    Case,
    Coalesce,
    ColumnRef,
    Const,
    Distinct,
    Expr,
    Extreme,
    Filter,
    InList,
    IsTest,
    Logical,
    Param,
    Plan,
    Project,
    Scan,
)
from sql.plan.traverse import has_more_nodes, walk

BOUNDED_NODES_MAX: Final = 200
"""Nodes of a plan that runs for a row at the gather. Larger: longer stalls of the loop."""

_TEXTS: Final = frozenset({"text", "varchar", "name"})

_TYPES: Final = _TEXTS | {
    "bool", "int2", "int4", "int8", "oid", "float4", "float8", "numeric", "date", "timestamp",
    "timestamptz", "uuid",
}  # fmt: skip
"""Numbers have at most 38 digits here, so that their arithmetic is bounded, too."""

_OPERATORS: Final = frozenset(
    {"+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "||", "&", "|", "#", "~", "@"}
)

_FUNCTIONS: Final = frozenset(
    {"abs", "sign", "mod", "lower", "upper", "length", "char_length", "character_length",
     "octet_length", "btrim", "ltrim", "rtrim", "assign", "narrow"}
)  # fmt: skip

_NODES: Final = (
    Scan, Project, Filter, Const, Param, ColumnRef, Logical, IsTest, Distinct, Case, Coalesce,
    Extreme, InList,
)  # fmt: skip


def is_bounded(plan: Plan) -> bool:
    """Whether it may run at the gather (C1)."""
    if not is_row_by_row(plan) or has_more_nodes(plan, BOUNDED_NODES_MAX):
        return False
    return all(map(_is_bounded_node, walk(plan)))


def _is_bounded_node(node: Plan | Expr) -> bool:
    if isinstance(node, Call):
        return node.type.name in _TYPES and _is_bounded_function(node.function)
    return isinstance(node, _NODES)


def _is_bounded_function(function: Function) -> bool:
    if function.zone or function.variadic or function.volatility == "volatile":
        return False
    if function.rewrite is not None or not _TYPES.issuperset((*function.args, function.result)):
        return False
    match function.kind:
        case FunctionKind.OPERATOR:
            return function.name in _OPERATORS
        case FunctionKind.CAST:
            # Reading a text may make more of it than it is long.
            return function.args[0] not in _TEXTS or function.result in _TEXTS
        case FunctionKind.FUNCTION:
            return function.name in _FUNCTIONS
        case _:
            return False
