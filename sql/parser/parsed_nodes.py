"""Take the nodes of pglast's trees as its parser makes them.

pglast's classes look at each attribute that is set: at its type, and whether it is a number that
stands for a name. The parser sets nothing that is otherwise, so nine tenths of the time that it
takes for a tree are spent for nothing, with the GIL.

INVARIANTS
  U1  trees are the same as with pglast's own classes (`tests/unit/sql/test_parsed_nodes.py`).
  U2  code of ours that makes or changes nodes gives enumerations, tuples and booleans.
"""

from typing import Final

from pglast import ast

_KEPT: Final = frozenset({ast.Node, ast.Boolean})
"""Of the second the parser gives a number where a boolean is meant; it asks the first."""


def take_nodes_as_parsed() -> None:
    """Let attributes of nodes be set without being looked at, from now on (U1)."""
    for kind in tuple(vars(ast).values()):
        if isinstance(kind, type) and issubclass(kind, ast.Node) and kind not in _KEPT:
            kind.__setattr__ = object.__setattr__  # type: ignore[assignment, method-assign]
