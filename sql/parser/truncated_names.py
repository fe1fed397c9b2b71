"""Find names that the parser has cut: PostgreSQL says of each that it did.

A name has 63 bytes at most. The parser keeps those that fit, up to a whole character.
"""

import re
from collections.abc import Iterator
from typing import Final

from sql.errors import SqlError
from sql.parser.read_text import scan_text
from sql.types.text_input import NAME_BYTES_MAX

_LONG_WORD: Final = re.compile(rf"[\w$]{{{NAME_BYTES_MAX // 4},}}|\"")
"""Without any of these a text has no long name; a character has up to four bytes."""


_SLICE: Final = 1 << 14
"""Characters that are looked at in one call, which keeps the GIL; each has some of the next."""


def truncated_name_notices(text: str) -> Iterator[SqlError]:
    """A notice for each name of a text, which parses, that is too long."""
    if len(text) <= NAME_BYTES_MAX // 4 or not any(
        _LONG_WORD.search(text, at, at + _SLICE + NAME_BYTES_MAX)
        for at in range(0, len(text), _SLICE)
    ):
        return
    for token in scan_text(text):
        if token.name != "IDENT":
            continue
        name = text[token.start : token.end + 1]
        name = name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()
        cut = name.encode()[:NAME_BYTES_MAX].decode(errors="ignore")
        if cut != name:
            message = f'identifier "{name}" will be truncated to "{cut}"'
            yield SqlError("42622", message)
