"""The text being written, and what its writers know of the place (deparse_context).

INVARIANTS
  P1  without `bare` every operator stands in parentheses; with it only those that need them.
  P2  a keyword begins a line; a list breaks where a line would grow beyond `wrap` bytes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from sql.deparse.constants import constant_text
from sql.deparse.nodes import Constant, Entry, FuncExpr, QueryTree, TypedExpr
from sql.deparse.types import Type

STEP: Final = 8
JOIN_STEP: Final = 4
VAR_STEP: Final = 4
_INDENT_MAX: Final = 40


@dataclass(frozen=True, slots=True)
class Style:
    """`bare`: as with `pretty`; `wrap`: 0 breaks always, -1 never."""

    bare: bool = False
    wrap: int = 0


PLAIN: Final = Style()
PRETTY: Final = Style(bare=True)


@dataclass(slots=True)
class Printer:
    """See the module. A subquery has a printer of its own with the same text."""

    style: Style
    write_expression: "Callable[[Printer, TypedExpr, bool], None]"
    write_query: "Callable[[Printer, QueryTree, Sequence[str] | None, bool], None]"
    relation_name: Callable[[Entry, "Printer"], str]
    type_text: Callable[[Type], str]
    function_name: Callable[[FuncExpr], str]
    text: str = ""
    indent: int = 0
    prefixes: bool = False
    """Whether columns are qualified."""
    names: frozenset[str] = frozenset()
    """The names of entries of this query and those around."""
    query: QueryTree | None = None
    result: Sequence[str] | None = None
    names_visible: bool = True
    grouping: bool = False
    sorting: bool = False
    cte_names: frozenset[str] = field(default=frozenset())

    def add(self, text: str) -> None:
        """Write."""
        self.text += text

    def keyword(self, word: str, before: int, after: int, plus: int) -> None:
        """Begin a line with a word (appendContextKeyword)."""
        self.indent += before
        self.text = self.text.rstrip(" ") + "\n"
        depth = max(self.indent, 0)
        if depth >= _INDENT_MAX:
            # As PostgreSQL: deep levels move on slowly, and not beyond all bounds.
            depth = _INDENT_MAX + (depth - _INDENT_MAX) // (STEP // 2)
            depth %= _INDENT_MAX
        self.text += " " * (depth + plus) + word
        self.indent = max(self.indent + after, 0)

    def expression(self, expr: TypedExpr, *, implicit: bool) -> None:
        """An expression; `implicit`: conversions that nobody wrote are shown."""
        self.write_expression(self, expr, implicit)

    def constant(self, constant: Constant, *, typed: int) -> None:
        """A constant; see `constant_text`."""
        self.add(constant_text(constant, self.type_text(constant.type), typed=typed))

    def apart(self) -> "Printer":
        """The same place with an empty text."""
        return replace(self, text="")

    def line_length(self) -> int:
        """The bytes of the line so far."""
        return len(self.text.rpartition("\n")[2].encode())

    def subquery(
        self, query: QueryTree, result: Sequence[str] | None, *, names_visible: bool
    ) -> None:
        """A query inside (get_query_def)."""
        self.write_query(self, query, result, names_visible)

    def listed(self, exprs: Sequence[TypedExpr], *, implicit: bool = True) -> None:
        """Expressions with commas."""
        for at, expr in enumerate(exprs):
            self.add(", " if at else "")
            self.expression(expr, implicit=implicit)
