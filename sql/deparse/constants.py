"""Write constants (get_const_expr of ruleutils.c)."""

import re
from typing import Final

from sql.deparse.coercion import UnknownShape
from sql.deparse.nodes import Constant

_FLOAT: Final = re.compile(r"\d.*[eE.]", re.DOTALL)


def constant_text(constant: Constant, type_text: str, *, typed: int) -> str:
    """`typed`: 1 with its type, 0 where the literal alone would not have it, -1 never."""
    label = f"::{type_text}"
    text, name = constant.text, constant.type.name
    if text is None and name == "unknown":
        raise UnknownShape("NULL::unknown, which nobody may write")
    if text is None:
        return "NULL" if typed < 0 else f"NULL{label}"
    needs = True
    match name:
        case "int4":
            needs = text.startswith("-")
            shown = quoted(text) if needs else text
        case "numeric":
            needs = _FLOAT.match(text) is None
            shown = quoted(text) if needs else text
            needs = needs or constant.type.typmod >= 0
        case "bool":
            needs = False
            shown = "true" if text == "t" else "false"
        case _:
            needs = name != "unknown"
            shown = quoted(text)
    return shown + label if typed >= 0 and (needs or typed > 0) else shown


def quoted(text: str) -> str:
    """A literal, as standard_conforming_strings reads it (simple_quote_literal)."""
    escaped = text.replace("'", "''")
    return f"'{escaped}'"
