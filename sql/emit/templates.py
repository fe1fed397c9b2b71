"""Fill the templates of the function table with the texts of arguments.

numeric / numeric  `{0} / {1}`  ─▶  `(x) / (y)`        f({0})  ─▶  f(distinct x) filter (where ..)
ERR(22012,division by zero)     ─▶  an engine's expression that fails so
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sql.functions.table import Function, FunctionKind
from sql.plan.nodes import SortKey

_ERR: Final = re.compile(r"ERR\((\w{5}),([^()']*)\)")
_ARGUMENT: Final = re.compile(r"\{(\d)\}")


@dataclass(frozen=True, slots=True)
class AggregateSurroundings:
    """The texts around an aggregate: `distinct ` or nothing; ` filter (where ..)`, ` over (..)` or
    nothing. `windowed`: whether it is a window call.
    """

    distinct: str
    behind: str
    windowed: bool = False

    def of(self, text: str) -> str:
        """`f(x)` as `f(distinct x) filter (where ..)`."""
        name, _, rest = text.partition("(")
        return f"{name}({self.distinct}{rest}{self.behind}"


OVERFLOWING_DISTANCE: Final = "1.3407807929942596e154"
"""A distance between floats whose square is beyond float8."""


def fill_template(template: str, args: Sequence[str], error: Callable[[str, str], str]) -> str:
    """A template with its arguments in place. `error` writes an expression that fails."""
    text = _ERR.sub(lambda match: error(match[1], match[2]), template)
    return _ARGUMENT.sub(lambda match: args[int(match[1])], text)


def mentions_arguments_once(template: str | None) -> bool:
    """Whether each argument stands in the text once, as far as the template alone shows."""
    if template is None or template.startswith("@"):
        return False
    found = _ARGUMENT.findall(template)
    return len(found) == len(set(found))


def template_failure(template: str) -> tuple[str, str] | None:
    """The SQLSTATE and the message of a template that does nothing but fail."""
    match = _ERR.fullmatch(template)
    return None if match is None else (match[1], match[2])


def function_description(function: Function) -> str:
    """The name of a function or operator in messages."""
    kind = "cast" if function.kind is FunctionKind.CAST else function.kind.value
    return f"{kind} {function.id}"


def sort_key_text(text: str, key: SortKey) -> str:
    """The text of a key, with its direction and the place of NULLs."""
    direction = "desc" if key.descending else "asc"
    return f"{text} {direction} nulls {'first' if key.nulls_first else 'last'}"
