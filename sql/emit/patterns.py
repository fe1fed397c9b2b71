"""PostgreSQL's LIKE patterns and regular expressions in other engines' dialects.

Regular expressions come in three dialects that differ silently (notes/semantics.md §5). Only the
subset that means the same everywhere is translated; for anything else there is no answer.
"""

from typing import Final

from sql.errors import SqlError


def parse_like(pattern: str) -> list[tuple[str, bool]]:
    """The characters of a LIKE pattern, each with whether it is a wildcard (`%` or `_`)."""
    parts: list[tuple[str, bool]] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            escaped = next(characters, None)
            if escaped is None:
                raise SqlError("22025", "LIKE pattern must not end with escape character")
            parts.append((escaped, False))
        else:
            parts.append((character, character in "%_"))
    return parts


def java_like(pattern: str) -> str:
    r"""The pattern for Spark, where `\` may stand before `%`, `_` and `\` only."""
    return "".join(
        character if wildcard or character not in "%_\\" else f"\\{character}"
        for character, wildcard in parse_like(pattern)
    )


_PLAIN_ESCAPES: Final = frozenset(".^$*+?()[]{}|\\/-")
_NOT_REPEATED: Final = frozenset({"(", "|", r"\A", r"\z"})
_BRACKET_END: Final = "]"


def java_regex(pattern: str, *, ignore_case: bool) -> str | None:
    """The same search as a Java pattern, or None when it is outside of the common subset.

    `.` matches newlines and `$` only the very end, as in PostgreSQL.
    """
    if pattern.startswith(("***", "(?")) or (ignore_case and not pattern.isascii()):
        return None
    out: list[str] = []
    position = depth = 0
    while position < len(pattern):
        translated = _atom(pattern, position)
        if translated is None:
            return None
        text, position = translated
        depth += {"(": 1, ")": -1}.get(text, 0)
        if depth < 0 or (text[0] in "*+?{" and out and out[-1] in _NOT_REPEATED):
            return None
        out.append(text)
    if depth:
        return None
    return ("(?si)" if ignore_case else "(?s)") + "".join(out)


def _atom(pattern: str, position: int) -> tuple[str, int] | None:
    character = pattern[position]
    following = pattern[position + 1 : position + 2]
    match character:
        case "\\":
            if following in _PLAIN_ESCAPES and following:
                return f"\\{following}", position + 2
            return None
        case "[":
            return _bracket(pattern, position)
        case "(":
            # Plain groups only: look-around and inline options are not common.
            return None if following == "?" else ("(", position + 1)
        case "{":
            return _counted(pattern, position)
        case "$":
            return r"\z", position + 1
        case "^":
            return r"\A", position + 1
        case "*" | "+" | "?" if position == 0:
            return None
        case "*" | "+" | "?":
            # A quantifier on a quantifier is an error in PostgreSQL and possessive in Java.
            return None if following and following in "*+?{" else (character, position + 1)
        case "}" | "]":
            return f"\\{character}", position + 1
        case _:
            return character, position + 1


def _counted(pattern: str, position: int) -> tuple[str, int] | None:
    end = pattern.find("}", position)
    body = pattern[position + 1 : end]
    low, comma, high = body.partition(",")
    valid = end > 0 and low.isdigit() and int(low) <= 255
    if not valid or (comma and high and not (high.isdigit() and int(low) <= int(high) <= 255)):
        return None
    if pattern[end + 1 : end + 2] in tuple("*+?{"):
        return None
    return pattern[position : end + 1], end + 1


def _bracket(pattern: str, position: int) -> tuple[str, int] | None:
    """A bracket expression of plain ASCII characters and ranges."""
    end = pattern.find(
        _BRACKET_END, position + (3 if pattern[position + 1 : position + 2] == "^" else 2)
    )
    if end < 0:
        return None
    body = pattern[position + 1 : end]
    negated = body.startswith("^")
    body = body[1:] if negated else body
    if any(character in "\\[]&^" for character in body) or not body:
        return None
    return f"[{'^' if negated else ''}{body}]", end + 1
