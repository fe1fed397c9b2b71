"""Print a jsonpath in PostgreSQL's canonical form (printJsonPathItem).

INVARIANTS
  J2  a value of type jsonpath is its canonical text: `text_of(parse_path(text)) == text`.
  J3  PostgreSQL shows some paths as a text with another meaning: `($.a * 5).abs() + 1` without its
      parentheses. The value keeps them; its display does not.

Not here: parsing (`path_parser.py`).
"""

from decimal import Decimal
from functools import lru_cache
from typing import Final

from sql.types.json.parser import json_number_text, quote_json
from sql.types.json.path_parser import (
    LAST_LEVEL,
    PATH_OPERATOR_PRIORITIES,
    JsonPath,
    PathStep,
    parse_jsonpath,
)

_OPEN: Final = frozenset({*PATH_OPERATOR_PRIORITIES, "like_regex", "!", "is unknown", "exists"})
"""Kinds that need parentheses, or a method would apply to their last operand only."""


def canonical_path_text(path: JsonPath) -> str:
    """The canonical text of a path (J2)."""
    return _mode(path) + _Writer(exact=True).text(path.root)


@lru_cache(maxsize=512)
def displayed_path_text(text: str) -> str:
    """The text that PostgreSQL displays for a canonical text (J3)."""
    path = parse_jsonpath(text)
    return _mode(path) + _Writer(exact=False).text(path.root)


def _mode(path: JsonPath) -> str:
    return "strict " if path.strict else ""


class _Writer:
    """`exact`: with the parentheses that keep the meaning (J3)."""

    def __init__(self, *, exact: bool) -> None:
        self._exact = exact

    def text(self, step: PathStep, *, in_key: bool = False, brackets: bool = True) -> str:
        """A step and what is applied to it."""
        if step.next is None:
            return self._own(step, in_key=in_key, brackets=brackets)
        if step.kind == "number" or (self._exact and step.kind in _OPEN):
            own = f"({self._own(step, in_key=in_key, brackets=False)})"
        else:
            own = self._own(step, in_key=in_key, brackets=brackets)
        return own + self.text(step.next, in_key=True)

    def _argument(self, step: PathStep, number: int) -> str:
        arg = step.args[number]
        assert arg is not None, "operators have all of their arguments"
        mine = PATH_OPERATOR_PRIORITIES.get("==" if step.kind == "like_regex" else step.kind, 6)
        return self.text(arg, brackets=PATH_OPERATOR_PRIORITIES.get(arg.kind, 6) <= mine)

    def _inside(self, step: PathStep) -> str:
        arg = step.args[0]
        assert arg is not None, "it has an argument"
        return self.text(arg, brackets=False)

    def _own(self, step: PathStep, *, in_key: bool, brackets: bool) -> str:
        dot = "." if in_key else ""
        match step.kind, step.value:
            case "null" | "last", _:
                return step.kind
            case "bool", value:
                return "true" if value else "false"
            case "number", Decimal() as number:
                return json_number_text(number)
            case "string", str() as text:
                return quote_json(text)
            case "variable", str() as name:
                return f"${quote_json(name)}"
            case "root", _:
                return "$"
            case "current", _:
                return "@"
            case "key", str() as name:
                return dot + quote_json(name)
            case "any_key", _:
                return f"{dot}*"
            case "any", (int() as first, int() as last):
                return dot + _levels_text(first, last)
            case "elements", _:
                return "[*]"
            case "method", name:
                given = [self.text(arg, brackets=False) for arg in step.args if arg]
                return f".{name}({','.join(given)})"
            case "index", _:
                return f"[{','.join(self._bounds(step))}]"
            case "filter", _:
                return f"?({self._inside(step)})"
            case "!", _:
                return f"!({self._inside(step)})"
            case "is unknown", _:
                return f"({self._inside(step)}) is unknown"
            case "exists", _:
                return f"exists ({self._inside(step)})"
            case _:
                text = self._operator(step)
                return f"({text})" if brackets else text

    def _operator(self, step: PathStep) -> str:
        match step.kind, step.value:
            case "+x" | "-x", _:
                return step.kind[0] + self._argument(step, 0)
            case "like_regex", (str() as pattern, str() as flags):
                flag = f' flag "{flags}"' if flags else ""
                return f"{self._argument(step, 0)} like_regex {quote_json(pattern)}{flag}"
            case _:
                return f"{self._argument(step, 0)} {step.kind} {self._argument(step, 1)}"

    def _bounds(self, step: PathStep) -> list[str]:
        found: list[str] = []
        for first, last in zip(step.args[::2], step.args[1::2], strict=True):
            assert first is not None, "a subscript begins somewhere"
            text = self.text(first, brackets=False)
            if last is not None:
                text += f" to {self.text(last, brackets=False)}"
            found.append(text)
        return found


def _levels_text(first: int, last: int) -> str:
    if (first, last) == (0, LAST_LEVEL):
        return "**"
    levels = ["last" if level == LAST_LEVEL else str(level) for level in (first, last)]
    return f"**{{{levels[0]}}}" if first == last else f"**{{{levels[0]} to {levels[1]}}}"
