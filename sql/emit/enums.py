"""Write enums as text, ordered by the position of their label in the type's definition.

INVARIANTS
  N1  equal labels are equal values (E1 of `sql/types/enums.py`): an engine compares the text.
      Sorting compares `label_position`; anything else is refused, so the order of the texts never
      shows.
"""

from sql.emit.error_tag import ERROR_TAG
from sql.emit.state import Scope
from sql.plan.nodes import Aggregate, Call, Const, Extreme
from sql.types.enums import enum_of
from sql.types.sql_type import SqlType

_TEXTS = SqlType("_text")
_PLACES = {"spark": "array_position", "local": "list_position"}


def enum_labels(type_: SqlType, scope: Scope) -> str:
    """The labels of an enum as an array."""
    return scope.statement.constant(enum_of(type_.name).labels, _TEXTS)


def label_position(text: str, type_: SqlType, scope: Scope) -> str:
    """The position that a value sorts by (N1)."""
    function = _PLACES[scope.statement.dialect.engine]
    found = f"{function}({enum_labels(type_, scope)}, {text})"
    # NULL has no place, and stands where ORDER BY says.
    return f"case when {text} is not null then {found} end"


def enum_first_or_last(call: Call, scope: Scope) -> str:
    """enum_first() and enum_last()."""
    known = enum_of(call.type.name).labels
    if not known:
        return scope.statement.dialect.error("55000", "enum contains no values")
    label = known[0 if call.function.name == "enum_first" else -1]
    return scope.statement.constant(label, call.type)


def enum_range_of_type(call: Call, scope: Scope) -> str:
    """enum_range() of a type."""
    known = enum_of(call.type.name.removeprefix("_")).labels
    return scope.statement.constant(known, call.type)


def enum_range_of_constants(call: Call, scope: Scope) -> str | None:
    """enum_range() between two constant labels; None for others."""
    found = [scope.statement.known(arg) for arg in call.args]
    if None in found:
        return None
    labels_ = enum_of(call.type.name.removeprefix("_")).labels
    first, last = (None if one is None else one[0] for one in found)
    start = 0 if first is None else labels_.index(str(first))
    end = len(labels_) if last is None else labels_.index(str(last)) + 1
    return scope.statement.constant(labels_[start:end], call.type)


def compare_enums(call: Call, scope: Scope) -> str:
    """`<`, `<=`, `>`, `>=`."""
    left, right = (label_position(scope.emit(arg), arg.type, scope) for arg in call.args)
    return f"({left}) {call.function.name} ({right})"


def domain_value_or_error(call: Call, scope: Scope) -> str:
    """A value of a domain: the value itself, or the error that it violates a constraint."""
    value, verdict, sqlstate, message, *_ = call.args
    assert isinstance(sqlstate, Const), "the binder knows the error"
    assert isinstance(message, Const), "the binder knows the error"
    function = "error" if scope.statement.dialect.engine == "local" else "raise_error"
    text = scope.statement.string(f"{ERROR_TAG}{sqlstate.value!s}:{message.value!s}")
    failure = f"{function}({text})"
    return f"case when not {scope.emit(verdict)} then {failure} else {scope.emit(value)} end"


def enum_greatest_or_least(expr: Extreme, scope: Scope) -> str:
    """GREATEST and LEAST."""
    places = ", ".join(label_position(scope.emit(arg), expr.type, scope) for arg in expr.args)
    found = f"{'greatest' if expr.greatest else 'least'}({places})"
    subscript = f"{found}" if scope.statement.dialect.engine == "local" else f"int({found}) - 1"
    listed = enum_labels(expr.type, scope)
    return f"case when {found} is not null then {listed}[{subscript}] end"


def enum_min_or_max(call: Aggregate, scope: Scope, functions: tuple[str, str]) -> str:
    """min() and max(), by the engine's functions for values with a sort key."""
    x = scope.emit(call.args[0])
    function = functions[call.function.name == "max"]
    return f"{function}({x}, {label_position(x, call.args[0].type, scope)})"
