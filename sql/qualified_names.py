"""Qualified names that stand in a text (stringToQualifiedNameList)."""

import re
from typing import Final

from sql.errors import SqlError

_PART: Final = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^\s."]+))\s*(\.|$)')


def name_parts(text: str, place: int | None) -> list[str]:
    """The parts of a qualified name, folded as the parser would; 42602 for anything else."""
    parts: list[str] = []
    position, joint = 0, "."
    while joint == ".":
        found = _PART.match(text, position)
        if found is None:
            raise SqlError("42602", "invalid name syntax", place)
        parts.append(found[1].replace('""', '"') if found[1] else found[2].lower())
        position, joint = found.end(), found[3]
    return parts
