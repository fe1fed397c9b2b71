"""Find quoted spans in all texts of a column at once, and cut spans out of them.

    {"a":"x,y"},1     texts side by side, as Arrow holds them
     └─┘ └───┘        `quotes`: where spans open and close
     0110111110       `inside`: which bytes stand in one, the closing quote not

INVARIANTS
  V1  a backslash hides the character behind it, inside and outside of quotes.
  V2  a span ends in the text in which it begins.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from ingest.copy_text.kernels import (
    Bytes,
    Column,
    Ints,
    Mask,
    as_text,
    characters,
    from_offsets,
    mask_of,
    null_where,
    offsets,
)

_QUOTE: Final = ord('"')
_BACKSLASH: Final = ord("\\")


class QuotedTexts:
    """The bytes of a column without NULL, and the quotes in them."""

    def __init__(self, texts: Column) -> None:
        assert texts.null_count == 0, "a text for each row"
        starts = offsets(texts)
        self.data: Bytes = characters(texts)[starts[0] : starts[-1]]
        self.starts: Ints = (starts - starts[0]).astype(np.int64)
        """Where each text starts, and where the last one ends."""
        is_quote = self.data == _QUOTE
        self.has_escapes = self._hide_escaped(is_quote)
        self._is_quote = is_quote
        self.quotes: Ints = np.flatnonzero(is_quote)

    def _hide_escaped(self, is_quote: Mask) -> bool:
        """Escaped quotes are none (V1)."""
        escaped = _escapes(self.data) + 1
        is_quote[escaped[escaped < len(is_quote)]] = False
        return bool(len(escaped))

    @property
    def are_closed(self) -> bool:
        """Whether each text has an even number of quotes (V2)."""
        return not (np.searchsorted(self.quotes, self.starts) % 2).any()

    def inside(self) -> Mask:
        """The bytes of spans, with the quotes that open them."""
        parity: Bytes = np.cumsum(self._is_quote, dtype=np.uint8)
        parity &= 1
        mask: Mask = parity.view(np.bool_)
        return mask

    def count_before(self, places: Ints) -> Ints:
        """How many of the places, in order, are before each start; as many as starts."""
        found: Ints = np.searchsorted(places, self.starts)
        return found


def _escapes(data: Bytes) -> Ints:
    """The backslashes that hide the character behind them (V1)."""
    slashes = np.flatnonzero(data == _BACKSLASH)
    # Of backslashes side by side, each second one is hidden itself.
    is_first = np.diff(slashes, prepend=-2) != 1
    place = np.arange(len(slashes))
    in_run = place - np.maximum.accumulate(np.where(is_first, place, 0))
    escapes: Ints = slashes[in_run % 2 == 0]
    return escapes


def without_escapes(texts: Column, meanings: Bytes) -> Column | None:
    """The texts without the backslashes that hide a character, of which each stands for another
    one; None if one of them means 0, or a text ends in such a backslash.
    """
    nulls = mask_of(texts.is_null())
    bounds = offsets(texts)
    data = characters(texts)[bounds[0] : bounds[-1]]
    bounds = bounds - bounds[0]
    escapes = _escapes(data)
    if np.isin(escapes + 1, bounds).any():
        return None
    meant = meanings[data[escapes + 1]]
    if not meant.all():
        return None
    changed = data.copy()
    changed[escapes + 1] = meant
    kept = np.ones(len(data), np.bool_)
    kept[escapes] = False
    shorter = (bounds - np.searchsorted(escapes, bounds)).astype(np.int32)
    return null_where(as_text(from_offsets(shorter, changed[kept])), nulls)


def mark_spans(size: int, starts: Ints, ends: Ints) -> Mask:
    """Which of so many bytes are in one of the spans, which do not overlap."""
    steps: npt.NDArray[np.int8] = np.zeros(size + 1, np.int8)
    steps[starts] += 1
    steps[ends] -= 1
    mask: Mask = np.cumsum(steps[:-1], dtype=np.int8).view(np.bool_)
    return mask


def cut_spans(data: Bytes, marked: Mask, lengths: Ints) -> Column:
    """The marked spans, which are of these lengths, as a column of texts."""
    bounds = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=bounds[1:])
    return as_text(from_offsets(bounds.astype(np.int32), data[marked]))
