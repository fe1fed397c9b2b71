"""SASLprep of passwords (RFC 4013), as PostgreSQL does it.

PostgreSQL differs from the RFC in two places, and so do we, or passwords would not match: a
password that SASLprep refuses is used as it is, and forbidden characters are looked for before
normalisation, not behind it. The tables are those of Unicode 3.2, from the standard library.
"""

import stringprep
import unicodedata
from typing import Final

_FORBIDDEN: Final = (
    stringprep.in_table_a1,  # unassigned in Unicode 3.2
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
)


def prepared_password(password: bytes) -> bytes:
    """The bytes that are hashed for a password: normalised, or as they are if that fails."""
    if password.isascii():
        return password
    try:
        text = password.decode()
    except UnicodeDecodeError:
        return password
    mapped = "".join(_mapped(character) for character in text)
    if not mapped or _is_forbidden(mapped):
        return password
    return unicodedata.normalize("NFKC", mapped).encode()


def _mapped(character: str) -> str:
    if stringprep.in_table_c12(character):
        return " "
    return "" if stringprep.in_table_b1(character) else character


def _is_forbidden(text: str) -> bool:
    if any(is_in_table(character) for character in text for is_in_table in _FORBIDDEN):
        return True
    right_to_left = [stringprep.in_table_d1(character) for character in text]
    if not any(right_to_left):
        return False
    ends_with_them = right_to_left[0] and right_to_left[-1]
    return not ends_with_them or any(map(stringprep.in_table_d2, text))
