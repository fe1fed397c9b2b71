"""The encodings of texts outside of the server: UTF-8, and those of one byte a character.

INVARIANTS
  E1  the names are PostgreSQL's, compared as it does: letters and digits alone, in any case.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Encoding:
    """PostgreSQL's name of an encoding, and Python's."""

    name: str
    codec: str

    @property
    def is_servers(self) -> bool:
        """Whether texts are as they are in the server: nothing is converted for SQL_ASCII."""
        return self.codec == "utf-8"


_ISO: Final = {1: 1, 2: 2, 3: 3, 4: 4, 5: 9, 6: 10, 7: 13, 8: 14, 9: 15, 10: 16}
"""LATINn is a part of ISO 8859."""
_WINDOWS: Final = (866, 874, 1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258)

ENCODINGS: Final = {
    **{f"latin{n}": Encoding(f"LATIN{n}", f"iso8859_{part}") for n, part in _ISO.items()},
    **{f"iso8859{part}": Encoding(f"LATIN{n}", f"iso8859_{part}") for n, part in _ISO.items()},
    **{f"iso8859{n}": Encoding(f"ISO_8859_{n}", f"iso8859_{n}") for n in (5, 6, 7, 8)},
    **{f"win{n}": Encoding(f"WIN{n}", f"cp{n}") for n in _WINDOWS},
    **{f"windows{n}": Encoding(f"WIN{n}", f"cp{n}") for n in _WINDOWS},
    **{name: Encoding("UTF8", "utf-8") for name in ("utf8", "unicode")},
    "sqlascii": Encoding("SQL_ASCII", "utf-8"),
    "alt": Encoding("WIN866", "cp866"),
    "win": Encoding("WIN1251", "cp1251"),
    **{name: Encoding("WIN1258", "cp1258") for name in ("abc", "tcvn", "tcvn5712", "vscii")},
    "koi8r": Encoding("KOI8R", "koi8_r"),
    "koi8": Encoding("KOI8R", "koi8_r"),
    "koi8u": Encoding("KOI8U", "koi8_u"),
}
"""By name, as it is compared (E1)."""


def normalized(name: str) -> str:
    """The name as it is compared (E1)."""
    return "".join(filter(str.isalnum, name.lower()))


def find_encoding(name: str) -> Encoding | None:
    """The encoding of that name, if it is one of these."""
    return ENCODINGS.get(normalized(name))


def client_encoding(name: str) -> Encoding | None:
    """The encoding that texts are converted to and from; None for the server's own."""
    found = find_encoding(name)
    return None if found is None or found.is_servers else found
