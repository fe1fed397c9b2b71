"""Bind arguments to variables where nested templates would repeat them exponentially often.

    round(round(round(x)))  ─▶  x as often as the cube of what one template says: instead, where
                                that is too often, (e -> <template of e.f0>) of a struct (f0 := x)

INVARIANTS
  R1  where something would be written more than COPIES_MAX times, the call and all calls around it
      that repeat their arguments are over variables: texts do not grow exponentially with the
      depth. Writing a template once over a variable shows how often it repeats an argument.
  R2  frequently planned expressions are not deep, and are not examined.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from sql.emit.state import Scope
from sql.errors import SqlError
from sql.plan.nodes import Call, Const, Expr, Param
from sql.plan.traverse import child_expressions

COPIES_MAX: Final = 64
_SHALLOW: Final = 3
"""Calls within each other that are not looked at (R2)."""

CallWriter: TypeAlias = Callable[[Call, Scope], str]
VariableBinder: TypeAlias = Callable[[str, Sequence[str], str], str]
"""A body over a variable that is a struct of fields `f0`, `f1` ..: from the variable's name, the
texts of the fields, and the body.
"""


def write_call(call: Call, scope: Scope, write: CallWriter, bind: VariableBinder) -> str:
    """The text of a call by `write`, or by `bind` over a variable (R1)."""
    if not _is_deep(call, _SHALLOW) or not _copies(call, scope, write)[1]:
        return write(call, scope)
    found = _over_variable(call, scope, write)
    assert found is not None, "it was written before"
    name, given, body, _ = found
    return bind(name, [scope.emit(arg) for arg in given], body)


def _is_deep(expr: Expr, levels: int) -> bool:
    if levels == 0:
        return True
    below = levels - isinstance(expr, Call)
    return any(_is_deep(part, below) for part in child_expressions(expr))


def _copies(expr: Expr, scope: Scope, write: CallWriter) -> tuple[int, bool]:
    """How often the part of it that is written most often is, and whether for that a call is
    written over a variable.
    """
    if not isinstance(expr, Call):
        return max(
            [_copies(part, scope, write)[0] for part in child_expressions(expr)], default=1
        ), False
    known = scope.statement.copies.get(id(expr))
    if known is None:
        known = scope.statement.copies[id(expr)] = (expr, *_counted(expr, scope, write))
    return known[1:]


def _counted(call: Call, scope: Scope, write: CallWriter) -> tuple[int, bool]:
    found = _over_variable(call, scope, write)
    if found is None:
        return 1, False
    _, given, _, counts = found
    pairs = zip(given, counts, strict=True)
    total = max([count * _copies(arg, scope, write)[0] for arg, count in pairs], default=1)
    return total, total > COPIES_MAX and max(counts) > 1


def _over_variable(
    call: Call, scope: Scope, write: CallWriter
) -> tuple[str, list[Expr], str, list[int]] | None:
    """The call over a variable: its name, the arguments that are its fields, the body, and how
    often it has each. None if the engine cannot.
    """
    given: list[Expr] = [arg for arg in call.args if not isinstance(arg, Const | Param)]
    name, fields, inside = scope.fields(given)
    columns = iter(fields)
    args = tuple([arg if isinstance(arg, Const | Param) else next(columns) for arg in call.args])
    try:
        body = write(replace(call, args=args), inside)
    except SqlError:
        return None
    counts = [body.count(inside.columns[field.id]) for field in fields]
    return name, given, body, counts
