"""Read options in parentheses as text or Boolean (defGetString, defGetBoolean)."""

from collections.abc import Iterable
from typing import Final

from pglast import ast

from sql.errors import SqlError
from sql.parser.syntax import Node, is_a, offset_to_position

_BOOLEANS: Final = {"true": True, "on": True, "false": False, "off": False}


def options_by_name(options: Iterable[Node], *, placed: bool = True) -> dict[str, Node]:
    """The options by name. Raises 42601 for a duplicate; `placed`: with its position."""
    found: dict[str, Node] = {}
    for option in options:
        if option.defname in found:
            place = offset_to_position(option.location) if placed else None
            raise SqlError("42601", "conflicting or redundant options", place)
        found[option.defname] = option
    return found


def option_text(option: Node) -> str:
    """An option's value as text. Raises 42601 if it has none."""
    argument: Node = option.arg
    match option.arg:
        case ast.String():
            return str(argument.sval)
        case ast.Float():
            return str(argument.fval)
        case ast.Integer():
            return str(argument.ival or 0)
        case ast.Boolean():
            return "true" if argument.boolval else "false"
        case ast.TypeName():
            return str(argument.names[-1].sval)
        case _:
            raise SqlError("42601", f"{option.defname} requires a parameter")


def option_boolean(option: Node) -> bool:
    """An option's value as Boolean; true without a value. Raises 42601 for others."""
    if option.arg is None:
        return True
    if is_a(option.arg, ast.Integer):
        found = {0: False, 1: True}.get(option.arg.ival or 0)
    else:
        found = _BOOLEANS.get(option_text(option).lower())
    if found is None:
        raise SqlError("42601", f"{option.defname} requires a Boolean value")
    return found
