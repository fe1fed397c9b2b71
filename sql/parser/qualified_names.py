"""Split qualified names in literals, such as those of regclass (stringToQualifiedNameList)."""

import re
from typing import Final

from sql.catalog.constraint_names import IDENTIFIER_BYTES_MAX, truncate_identifier
from sql.errors import SqlError

_PART: Final = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^\s."]+))\s*(\.|\Z)', re.ASCII)
_LOWER: Final = {ord(letter): ord(letter.lower()) for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}


def fold_identifier(name: str) -> str:
    """An unquoted name as the parser folds it: in UTF-8 only ASCII letters lose their case."""
    return name.translate(_LOWER)


def qualified_name_parts(text: str, place: int | None) -> list[str]:
    """The parts of a qualified name, folded and truncated. Raises 42602 for invalid syntax."""
    parts: list[str] = []
    position, joint = 0, "."
    while joint == ".":
        found = _PART.match(text, position)
        if found is None:
            raise SqlError("42602", "invalid name syntax", place)
        name = found[1].replace('""', '"') if found[1] else fold_identifier(found[2])
        parts.append(truncate_identifier(name, IDENTIFIER_BYTES_MAX))
        position, joint = found.end(), found[3]
    return parts


def relation_name_parts(text: str, database: str, place: int | None) -> list[str]:
    """The schema, if given, and the name of a relation of this database. Raises 42601 and 0A000 for
    other names (makeRangeVarFromNameList).
    """
    parts = qualified_name_parts(text, place)
    shown = ".".join(parts)
    if len(parts) > 3:
        message = f"improper relation name (too many dotted names): {shown}"
        raise SqlError("42601", message, place)
    if len(parts) == 3 and parts[0] != database:
        message = f'cross-database references are not implemented: "{shown}"'
        raise SqlError("0A000", message, place)
    return parts[-2:]
