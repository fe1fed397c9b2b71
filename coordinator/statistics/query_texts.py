"""Tell which statement a text is: PostgreSQL's fingerprint, and the text without its literals.

    select * from t where a = 5  ─▶  queryid, "select * from t where a = $1"

INVARIANTS
  F1  what is shown of a text has no password: literals are parameters in it, and where the parser
      does not read the text, `without_secrets` cuts it.

Source: libpg_query's `pg_query_fingerprint` and `pg_query_normalize`.
"""

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from pglast import parser

from coordinator.hidden_secrets import without_secrets
from sql.parser.read_text import scan_text

SHOWN_TEXT_MAX: Final = 4_096
"""Characters of a text that are kept. Larger: 5,000 entries need more memory."""

_SIGN: Final = 1 << 63
_LITERALS: Final = frozenset({"ICONST", "FCONST", "SCONST", "USCONST", "BCONST", "XCONST"})


@dataclass(frozen=True, slots=True)
class QueryText:
    """A statement as pg_stat_statements names it. `queryid`: a bigint; never 0."""

    queryid: int
    text: str


def query_text(text: str) -> QueryText:
    """What a text that is one statement is called."""
    own = text.strip().rstrip(";").rstrip()
    try:
        number = int(parser.fingerprint(own), 16)
        # libpg_query leaves the literals of what PREPARE prepares.
        is_prepare = own[:7].lower() == "prepare"
        shown = _without_literals(own) if is_prepare else str(parser.normalize(own))
    except parser.ParseError:
        shown = _without_literals(own)
        number = int.from_bytes(blake2b(shown.encode(errors="replace"), digest_size=8).digest())
    number = number - (1 << 64) if number & _SIGN else number
    cut = without_secrets(shown[:SHOWN_TEXT_MAX], is_cut=len(shown) > SHOWN_TEXT_MAX)
    return QueryText(number or 1, cut[:SHOWN_TEXT_MAX])


def _without_literals(text: str) -> str:
    """A text that libpg_query does not normalize, as one of our own grammar."""
    try:
        tokens = [*scan_text(text)]
    except parser.ParseError:
        return text
    given = [int(text[t.start + 1 : t.end + 1]) for t in tokens if t.name == "PARAM"]
    literals = [token for token in tokens if token.name in _LITERALS]
    parts: list[str] = []
    end = 0
    for number, token in enumerate(literals, max(given, default=0) + 1):
        parts += [text[end : token.start], f"${number}"]
        end = token.end + 1
    return "".join([*parts, text[end:]])
