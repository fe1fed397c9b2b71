r"""Read arrays with quoted elements, NULL and blanks, a whole column at a time.

    {"a b","c,\"d", NULL ,e}    one dimension, of elements that are quoted as a whole or not at all

The texts are cut at the commas outside of quotes. Whatever else an array may be is left to the
caller (Q1 of `columns.py`).
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from ingest.copy_text.kernels import (
    Bytes,
    Column,
    Ints,
    Mask,
    fill_nulls,
    lists_of,
    mask_of,
    null_where,
)
from ingest.copy_text.spans import QuotedTexts, cut_spans, mark_spans, without_escapes

_OPENING, _CLOSING, _COMMA, _QUOTE, _BACKSLASH = b'{},"\\'
_BLANKS_MAX: Final = 8
"""Blanks around an element. More are read, too, but one by one."""

_IS_BLANK: Final[Mask] = np.isin(np.arange(256), list(b" \t\n\v\f\r"))
_THEMSELVES: Final[Bytes] = np.arange(256, dtype=np.uint8)
_NULL: Final = np.frombuffer(b"null", np.uint8)


def quoted_arrays(texts: Column, parse: Callable[[Column], Column]) -> Column | None:
    """Arrays of one dimension, whose elements `parse` reads; None if one has another form."""
    nulls = mask_of(texts.is_null())
    found = QuotedTexts(fill_nulls(texts, "{}"))
    if not found.are_closed:
        return None
    data, inside = found.data, found.inside()
    outside_only = data[~inside]
    if found.has_escapes and (outside_only == _BACKSLASH).any():
        return None
    marks = np.flatnonzero(~inside & ((data == _COMMA) | (data == _OPENING) | (data == _CLOSING)))
    firsts = found.count_before(marks)
    if not _are_flat(found, marks, firsts):
        return None
    counts = np.diff(firsts) - 1
    # From each mark to the next one in the same text.
    is_last = np.zeros(len(marks), np.bool_)
    is_last[firsts[1:] - 1] = True
    places = np.flatnonzero(~is_last)
    trimmed = _trimmed(data, marks[places] + 1, marks[places + 1])
    if trimmed is None:
        return None
    starts, ends = trimmed
    is_nothing = (ends == starts) & (np.repeat(counts, counts) == 1)
    if is_nothing.any():
        # `{}` has no element.
        counts = counts - np.bincount(
            np.repeat(np.arange(len(counts)), counts)[is_nothing], minlength=len(counts)
        )
        starts, ends = starts[~is_nothing], ends[~is_nothing]
    elements = _elements(found, starts, ends)
    return None if elements is None else lists_of(parse(elements), counts, nulls)


def _are_flat(found: QuotedTexts, marks: Ints, firsts: Ints) -> bool:
    """Whether each text begins and ends with its only braces."""
    starts, ends = found.starts[:-1], found.starts[1:]
    if (np.diff(firsts) < 2).any():
        return False
    opening, closing = marks[firsts[:-1]], marks[firsts[1:] - 1]
    braces = np.count_nonzero(found.data[marks] != _COMMA)
    return bool(
        braces == 2 * len(starts)
        and (opening == starts).all()
        and (closing == ends - 1).all()
        and (found.data[opening] == _OPENING).all()
        and (found.data[closing] == _CLOSING).all()
    )


def _trimmed(data: Bytes, starts: Ints, ends: Ints) -> tuple[Ints, Ints] | None:
    """The spans without blanks at both ends; None if these are many."""
    for _ in range(_BLANKS_MAX):
        is_blank = _IS_BLANK[data[starts]] & (starts < ends)
        if not is_blank.any():
            break
        starts = starts + is_blank
    else:
        return None
    for _ in range(_BLANKS_MAX):
        is_blank = _IS_BLANK[data[ends - 1]] & (starts < ends)
        if not is_blank.any():
            return starts, ends
        ends = ends - is_blank
    return None


def _elements(found: QuotedTexts, starts: Ints, ends: Ints) -> Column | None:
    """The texts of the elements; None if one is empty, or quoted in part."""
    data = found.data
    lengths = ends - starts
    if (lengths == 0).any():
        return None
    is_quoted = (data[starts] == _QUOTE) & (data[ends - 1] == _QUOTE) & (lengths > 1)
    if len(found.quotes) != 2 * np.count_nonzero(is_quoted):
        return None
    is_null = (lengths == len(_NULL)) & ~is_quoted
    candidates = np.flatnonzero(is_null)
    letters = data[starts[candidates, None] + np.arange(len(_NULL))] | 0x20
    is_null[candidates] = (letters == _NULL).all(axis=1)
    marked = mark_spans(len(data), starts + is_quoted, ends - is_quoted)
    elements = cut_spans(data, marked, lengths - 2 * is_quoted)
    if found.has_escapes:
        without = without_escapes(elements, _THEMSELVES)
        if without is None:
            return None
        elements = without
    return null_where(elements, is_null)
