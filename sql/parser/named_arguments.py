"""Reorder named arguments into positional ones, and add defaults (MatchNamedCall).

    make_date(day => 3, year => 2020, month => 1) ─▶ make_date(2020, 1, 3)

INVARIANTS
  G1  names and defaults are those of a real server; `sql/data/argument_names.txt` is written by
      `tests/unit/sql/postgresql_names.py`. A line is a function: its arguments in order, `=` and a
      default, `*` after the name of one that repeats.
  G2  a call is reordered only if one of the function's lines has all of its names, and a default
      for every argument that is left out (PostgreSQL's MatchNamedCall).
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from pglast import ast, parser

from sql.errors import SqlError
from sql.parser.syntax import Node, is_a, node_position, offset_to_position

_FILE: Final = Path(__file__).parents[1] / "data" / "argument_names.txt"
_FILLED: Final = frozenset(
    {
        "make_interval", "pg_stat_reset_shared", "pg_stat_reset_slru",
        "pg_stat_statements_reset", "random_normal",
    }
)  # fmt: skip
"""Functions that may omit arguments, and have a single row in our table."""

_Signature = tuple[tuple[str, str], ...]
"""Names and defaults; "": none."""


def has_named_arguments(args: Sequence[Node]) -> bool:
    """Whether some argument is given by name."""
    return any(is_a(arg, ast.NamedArgExpr) for arg in args)


def positional_arguments(name: str, args: Sequence[Node], *, variadic: bool) -> Sequence[Node]:
    """The arguments by position; unchanged if the function has no such names (G2). `variadic`: the
    last one is an array of the repeated argument, which can be named only then.

    Raises 42601 for a name that comes twice, and for an argument without a name after one.
    """
    if not has_named_arguments(args) and name not in _FILLED:
        return args
    _check(args)
    before = [arg for arg in args if not is_a(arg, ast.NamedArgExpr)]
    named = {arg.name: arg.arg for arg in args if is_a(arg, ast.NamedArgExpr)}
    for signature in _signatures().get(name, ()):
        found = _ordered(signature, before, named)
        if found is not None and variadic == signature[-1][0].endswith("*"):
            return found
    return args


def _ordered(
    signature: _Signature, before: Sequence[Node], named: Mapping[str, Node]
) -> Sequence[Node] | None:
    rest = [(argument.removesuffix("*"), text) for argument, text in signature[len(before) :]]
    if len(before) > len(signature) or not named.keys() <= {argument for argument, _ in rest}:
        return None
    if any(argument not in named and not default for argument, default in rest):
        return None
    left = [named[argument] if argument in named else _node(text) for argument, text in rest]
    return [*before, *left]


def _check(args: Sequence[Node]) -> None:
    seen: set[str] = set()
    for arg in args:
        if not is_a(arg, ast.NamedArgExpr):
            if seen:
                message = "positional argument cannot follow named argument"
                raise SqlError("42601", message, node_position(arg))
            continue
        if arg.name in seen:
            message = f'argument name "{arg.name}" used more than once'
            raise SqlError("42601", message, offset_to_position(arg.location))
        seen.add(arg.name)


def _node(text: str) -> Node:
    (tree,) = parser.parse_sql(f"SELECT {text}")
    statement: Node = tree.stmt
    return statement.targetList[0].val


@cache
def _signatures() -> dict[str, list[_Signature]]:
    found: dict[str, list[_Signature]] = {}
    for line in _FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            continue
        name, _, arguments = line.partition(": ")
        parts = [part.partition("=") for part in arguments.split(",")]
        found.setdefault(name, []).append(tuple((part[0], part[2]) for part in parts))
    return found
