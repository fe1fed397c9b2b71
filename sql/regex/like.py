"""Parse LIKE and SIMILAR TO patterns, and convert them to regular expressions."""

from collections.abc import Callable, Sequence
from typing import Final

from sql.errors import SqlError

_GAPS_MAX: Final = 2
"""Of a LIKE that Spark gets as one. Fewer: more of them that it does not know as prefixes, suffixes
and parts. More: longer searches."""


_SEPARATORS: Final = ("){1,1}?(", "){1,1}(?:")


_SIMILAR: Final = {
    "%": ".*", "_": ".", "(": "(?:", "\\": "\\\\", ".": "\\.", "^": "\\^", "$": "\\$",
}  # fmt: skip


def _invalid_escape() -> SqlError:
    hint = "Escape string must be empty or one character."
    return SqlError("22025", "invalid escape string", hint=hint)


def has_many_wildcards(pattern: str) -> bool:
    """Whether Java, which backtracks, could take very long for a LIKE pattern."""
    return sum(wildcard and c == "%" for c, wildcard in parse_like(pattern)) > _GAPS_MAX


def like_ends_with_escape(pattern: str) -> bool:
    """Whether the pattern ends in a backslash that escapes nothing."""
    return (len(pattern) - len(pattern.rstrip("\\"))) % 2 == 1


def like_escape_at_end() -> SqlError:
    """22025: the last backslash of a LIKE pattern escapes nothing."""
    return SqlError("22025", "LIKE pattern must not end with escape character")


def like_regex(
    parts: Sequence[tuple[str, bool]], quoted: Callable[[str], str], *, open_end: bool = False
) -> str:
    """LIKE as a regular expression over the whole text, for engines that backtrack. Text between
    two `%` matches as early as possible, and is never retried. `open_end`: more must follow.
    """
    pieces = [""]
    for character, wildcard in parts:
        if wildcard and character == "%":
            pieces.append("")
        else:
            pieces[-1] += "." if wildcard else quoted(character)
    first, *others = pieces
    end = ".+" if open_end else f".*{others.pop()}" if others else ""
    between = "".join(f"(?>.*?{piece})" for piece in others)
    return f"{first}{between}{end}"


def parse_like(pattern: str) -> list[tuple[str, bool]]:
    """The characters of a LIKE pattern, each with whether it is a wildcard (`%` or `_`)."""
    parts: list[tuple[str, bool]] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            escaped = next(characters, None)
            if escaped is None:
                raise like_escape_at_end()
            parts.append((escaped, False))
        else:
            parts.append((character, character in "%_"))
    return parts


def similar_regex(pattern: str, escape: str = "\\") -> str:
    """SIMILAR TO as a regular expression of PostgreSQL (similar_escape_internal)."""
    if len(escape) > 1:
        raise _invalid_escape()
    out: list[str] = []
    quotes = depth = start = 0
    escaped = False
    for character in pattern:
        if escaped:
            escaped = False
            if character == '"' and not depth:
                if quotes == len(_SEPARATORS):
                    message = "SQL regular expression may not contain more than two escape-double-"
                    raise SqlError("2200C", f"{message}quote separators")
                out.append(_SEPARATORS[quotes])
                quotes += 1
            else:
                out.append(f"\\{character}")
                start = 3
        elif character == escape:
            escaped = True
        elif depth:
            out.append("\\\\" if character == "\\" else character)
            depth += (character == "[") - (character == "]" and start > 2)
            start = start + 1 if character == "^" else 3
        elif character == "[":
            out.append(character)
            depth = start = 1
        else:
            out.append(_SIMILAR.get(character, character))
    return f"^(?:{''.join(out)})$"


def with_default_escape(pattern: str, escape: str) -> str:
    """A LIKE pattern with another escape as one with the default escape (do_like_escape)."""
    if len(escape) > 1:
        raise _invalid_escape()
    if escape == "\\":
        return pattern
    done: list[str] = []
    escaped = False
    for character in pattern:
        if character == escape and not escaped:
            done.append("\\")
            escaped = True
        else:
            doubled = character == "\\" and not escaped
            done.append("\\\\" if doubled else character)
            escaped = False
    return "".join(done)
