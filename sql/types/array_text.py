"""Parse and print array literals such as `{1,NULL,"a b"}` (array_in, array_out).

INVARIANTS
  A1  an array is a tuple of one dimension that begins at 1. PostgreSQL's other arrays are refused
      with 0A000; a text that is no array fails with PostgreSQL's own error.

Not here: the text of elements (`text_input.py`, `text_output.py`).
"""

import re
from collections.abc import Callable, Iterator
from typing import Final

from sql.errors import SqlError, not_supported
from sql.types.sql_type import Value

DIMENSIONS_MAX: Final = 6
_BLANKS: Final = " \t\n\v\f\r"
_BLANK: Final = re.compile(r"[ \t\n\v\f\r]*")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_BARE: Final = re.compile(r'(?:[^"\\{},]|\\.)+', re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_BOUND_MAX: Final = 2_147_483_647
_DIMENSION: Final = re.compile(r"[ \t\n\v\f\r]*\[([+-]?[0-9]*)(?::([+-]?[0-9]*))?(\]?)")
_NEEDS_QUOTES: Final = re.compile(r'[{},"\\ \t\n\v\f\r]')
_PLAIN: Final = re.compile(r"\{[0-9+-]+(?:,[0-9+-]+)*\}")


def parse_array(text: str, parse_element: Callable[[str], Value]) -> tuple[Value, ...]:
    """The elements of an array's text. Raises 22P02, 2202E, 54000, 0A000 (A1)."""
    if _PLAIN.fullmatch(text):
        return tuple([parse_element(item) for item in text[1:-1].split(",")])
    start, bounds = _dimensions(text)
    values, depth, lengths, end = _contents(text, start, bounds, parse_element)
    if text[end:].strip(_BLANKS):
        raise malformed_array_literal(text, "Junk after closing right brace.")
    if bounds and [upper - lower + 1 for lower, upper in bounds] != lengths:
        raise malformed_array_literal(
            text, "Specified array dimensions do not match array contents."
        )
    if values and depth > 1:
        raise multidimensional_array()
    if values and bounds and bounds[0][0] != 1:
        raise not_supported("an array that does not begin at 1")
    return tuple(values)


def multidimensional_array() -> SqlError:
    """0A000: an array with several dimensions (A1)."""
    return not_supported("an array of several dimensions")


def malformed_array_literal(text: str, detail: str) -> SqlError:
    """22P02: a malformed array literal, worded as array_in does."""
    return SqlError("22P02", f'malformed array literal: "{text}"', detail=detail)


def _unexpected(text: str, character: str) -> SqlError:
    return malformed_array_literal(text, f'Unexpected "{character}" character.')


def _ended(text: str) -> SqlError:
    return malformed_array_literal(text, "Unexpected end of input.")


def _too_deep() -> SqlError:
    message = f"number of array dimensions exceeds the maximum allowed ({DIMENSIONS_MAX})"
    return SqlError("54000", message)


def _dimensions(text: str) -> tuple[int, list[tuple[int, int]]]:
    """Where the braces begin, and the bounds before them, `[0:2][1:2]=`."""
    bounds: list[tuple[int, int]] = []
    place = 0
    while match := _DIMENSION.match(text, place):
        if len(bounds) >= DIMENSIONS_MAX:
            raise _too_deep()
        first, second, bracket = match.groups()
        if not first.strip("+-"):
            raise malformed_array_literal(
                text, '"[" must introduce explicitly-specified array dimensions.'
            )
        if second is not None and not second.strip("+-"):
            raise malformed_array_literal(text, "Missing array dimension value.")
        if not bracket:
            raise malformed_array_literal(text, 'Missing "]" after array dimensions.')
        lower, upper = (1, int(first)) if second is None else (int(first), int(second))
        if max(abs(lower), abs(upper)) > _BOUND_MAX:
            raise SqlError("54000", "array bound is out of integer range")
        if upper < lower:
            raise SqlError("2202E", "upper bound cannot be less than lower bound")
        bounds.append((lower, upper))
        place = match.end()
    place = _skipped(text, place)
    if not bounds:
        if text[place : place + 1] != "{":
            detail = 'Array value must start with "{" or dimension information.'
            raise malformed_array_literal(text, detail)
        return place, bounds
    if text[place : place + 1] != "=":
        raise malformed_array_literal(text, 'Missing "=" after array dimensions.')
    place = _skipped(text, place + 1)
    if text[place : place + 1] != "{":
        raise malformed_array_literal(text, 'Array contents must start with "{".')
    return place, bounds


def _skipped(text: str, place: int) -> int:
    blank = _BLANK.match(text, place)
    assert blank is not None, "it matches nothing, too"
    return blank.end()


def _tokens(text: str, place: int) -> Iterator[tuple[str, str | None, int]]:
    """Braces, commas and elements (`e`, None for NULL), each with the place behind it."""
    while True:
        place = _skipped(text, place)
        character = text[place : place + 1]
        if not character:
            raise _ended(text)
        if character in "{},":
            place += 1
            yield character, None, place
        elif character == '"':
            quoted, place = _quoted(text, place)
            yield "e", quoted, place
        else:
            bare, place = _bare(text, place)
            yield "e", bare, place


def _quoted(text: str, place: int) -> tuple[str, int]:
    match = _QUOTED.match(text, place)
    if match is None:
        raise _ended(text)
    place = _skipped(text, match.end())
    # At the end of the text PostgreSQL finds no delimiter either.
    if text[place : place + 1] not in ("{", "}", ","):
        raise malformed_array_literal(text, "Incorrectly quoted array element.")
    return _ESCAPED.sub(r"\1", match[1]), place


def _bare(text: str, place: int) -> tuple[str | None, int]:
    match = _BARE.match(text, place)
    place = match.end() if match is not None else place
    following = text[place : place + 1]
    if following in ("", "\\"):
        raise _ended(text)
    if following == "{":
        raise _unexpected(text, "{")
    if following == '"':
        raise malformed_array_literal(text, "Incorrectly quoted array element.")
    assert match is not None, "an element has a character"
    raw = match[0]
    # A blank behind a backslash is one of the element's own.
    value = re.sub(r"((?:\\.|[^\\])*?)[ \t\n\v\f\r]*\Z", r"\1", raw, flags=re.DOTALL)
    if value.upper() == "NULL":
        return None, place
    return _ESCAPED.sub(r"\1", value), place


def _contents(
    text: str,
    place: int,
    bounds: list[tuple[int, int]],
    parse_element: Callable[[str], Value],
) -> tuple[list[Value], int, list[int], int]:
    """Elements, number of dimensions, their lengths, and the place behind (ReadArrayStr)."""
    values: list[Value] = []
    counts: list[int] = []
    lengths: list[int] = []
    level = depth = 0
    frozen, delimiter_due = bool(bounds), False
    depth = len(bounds)
    for kind, element, end in _tokens(text, place):
        if kind == "{":
            if delimiter_due:
                raise _unexpected(text, "{")
            if level >= DIMENSIONS_MAX:
                raise _too_deep()
            counts[level:] = [0]
            level += 1
            if level > depth:
                if frozen:
                    raise _uneven(text, bounds)
                depth = level
                lengths.append(-1)
            if len(lengths) < level:
                lengths.append(-1)
        elif kind == "}":
            if not delimiter_due and counts[level - 1] > 0:
                raise _unexpected(text, "}")
            level -= 1
            if level:
                counts[level - 1] += 1
            if lengths[level] < 0:
                lengths[level] = counts[level]
            elif lengths[level] != counts[level]:
                raise _uneven(text, bounds)
            delimiter_due = True
            if not level:
                return values, depth, lengths, end
        elif kind == ",":
            if not delimiter_due:
                raise _unexpected(text, ",")
            delimiter_due = False
        else:
            if delimiter_due:
                raise malformed_array_literal(text, "Unexpected array element.")
            frozen = True
            if level != depth:
                raise _uneven(text, bounds)
            values.append(None if element is None else parse_element(element))
            counts[level - 1] += 1
            delimiter_due = True
    raise AssertionError("tokens end with an error")


def _uneven(text: str, bounds: list[tuple[int, int]]) -> SqlError:
    if bounds:
        return malformed_array_literal(
            text, "Specified array dimensions do not match array contents."
        )
    detail = "Multidimensional arrays must have sub-arrays with matching dimensions."
    return malformed_array_literal(text, detail)


def format_array(values: tuple[Value, ...], format_element: Callable[[Value], str]) -> str:
    """`{1,NULL,"a b"}`."""
    texts = ["NULL" if value is None else _shown(format_element(value)) for value in values]
    return f"{{{','.join(texts)}}}"


def _shown(text: str) -> str:
    if text and text.upper() != "NULL" and not _NEEDS_QUOTES.search(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
