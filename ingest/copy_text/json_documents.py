"""Read json and jsonb a whole column at a time: documents of one shape are written as one.

    {"b": 1, "a": "x"}    {"b":#,"a":#} is the shape, 1 and "x" are the scalars
    {"b": 2, "a": "y"}    the shape is read once: `{"a": `, scalar 1, `, "b": `, scalar 0, `}`

A shape keeps the keys, the blanks and whatever stands between scalars. Its canonical text comes
from the reader of single values, as does each document whose shape is rare.

INVARIANTS
  D1  a document is valid exactly if its shape with numbers in place of scalars is, and each scalar.
  D2  a scalar that is not canonical as it stands is written by the reader of single values.
  D3  None, an exception: the caller reads all values again, one by one (Q2 of `columns.py`).
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from ingest.copy_text.kernels import (
    Column,
    Ints,
    Mask,
    as_text,
    column_of,
    concat_columns,
    dictionary_of,
    filter_rows,
    from_offsets,
    join_pieces,
    mask_of,
    match_regex,
    offsets,
    replace_masked,
    take_rows,
    take_valid,
    to_python_list,
)
from ingest.copy_text.spans import QuotedTexts, cut_spans, mark_spans
from sql.types.json.parser import parse_json, parse_jsonb, parse_jsonb_scalars

_MARK: Final = 1
"""Stands for a scalar in a shape. Valid JSON has no such byte."""

_RARE: Final = 8
"""Documents of a shape that are read one by one. Larger: slow ones; smaller: shapes for nothing."""

_SHAPES_KEPT: Final = 4096
_BLANKS_MAX: Final = 4
_LENGTH_MAX: Final = 1000
"""Of a number; a longer one may be out of range."""

_IS_BETWEEN: Final[Mask] = np.isin(np.arange(256), list(b'{}[]:," \t\n\r'))
_IS_BLANK: Final[Mask] = np.isin(np.arange(256), list(b" \t\n\r"))
_COLON: Final = ord(":")

_CANONICAL: Final = (
    r"^(?:true|false|null|-?[1-9][0-9]*(?:\.[0-9]+)?|0(?:\.[0-9]+)?"
    r'|"(?:[^"\\\x00-\x1f]|\\["\\bfnrt])*")$'
)
_VALID: Final = (
    r"^(?:true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
    r'|"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*")$'
)


@dataclass(frozen=True, slots=True)
class _Shape:
    """Canonical texts, and the numbers of the scalars between them."""

    texts: tuple[str, ...]
    scalars: tuple[int, ...]


def json_texts(texts: Column) -> Column | None:
    """The same texts, if all of them are valid json (D3)."""
    cut = _cut(texts)
    if cut is None or not mask_of(match_regex(cut.scalars, _VALID)).all():
        return None
    for shape in to_python_list(cut.kinds):
        parse_json(_numbered(shape))
    return texts


def jsonb_texts(texts: Column) -> Column | None:
    """The canonical texts of jsonb (D3)."""
    cut = _cut(texts)
    if cut is None:
        return None
    scalars = _canonical(cut.scalars)
    order = np.argsort(cut.shapes, kind="stable")
    bounds = np.searchsorted(cut.shapes[order], np.arange(len(cut.kinds) + 1))
    made = []
    for number, shape in enumerate(to_python_list(cut.kinds)):
        rows = order[bounds[number] : bounds[number + 1]]
        if len(rows) < _RARE:
            made.append(_one_by_one(cut.documents, rows))
        else:
            made.append(_written(_read(shape), scalars, cut.firsts[rows]))
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return take_valid(concat_columns(made, texts.type), places, mask_of(texts.is_valid()))


def _one_by_one(documents: Column, rows: Ints) -> Column:
    found = to_python_list(take_rows(documents, rows))
    return column_of([parse_jsonb(text) for text in found], documents.type)


def _written(shape: _Shape, scalars: Column, firsts: Ints) -> Column:
    """The canonical texts of documents of one shape."""
    pieces: list[Column | str] = [shape.texts[0]]
    for number, text in zip(shape.scalars, shape.texts[1:], strict=True):
        pieces += [take_rows(scalars, firsts + number), text]
    if not shape.scalars:
        return column_of(shape.texts * len(firsts), scalars.type)
    return join_pieces(*[piece for piece in pieces if not isinstance(piece, str) or piece])


# ---------------------------------------------------------------- scalars


def _canonical(scalars: Column) -> Column:
    """The scalars as jsonb writes them (D2)."""
    others = ~mask_of(match_regex(scalars, _CANONICAL)) | (np.diff(offsets(scalars)) > _LENGTH_MAX)
    if not others.any():
        return scalars
    written = parse_jsonb_scalars(to_python_list(filter_rows(scalars, others)))
    return replace_masked(scalars, others, column_of(written, scalars.type))


# ---------------------------------------------------------------- shapes


@dataclass(frozen=True, slots=True)
class _Cut:
    """Documents, taken apart."""

    documents: Column
    kinds: Column
    """The shapes that there are."""
    shapes: Ints
    """By document, the place of its shape in `kinds`."""
    scalars: Column
    """Of all documents, one behind the other."""
    firsts: Ints
    """By document, the place of its first scalar in `scalars`."""


def _cut(texts: Column) -> _Cut | None:
    """The documents that are not NULL; None if one is empty, or a quote is not closed."""
    documents = filter_rows(texts, mask_of(texts.is_valid())) if texts.null_count else texts
    found = QuotedTexts(documents)
    data = found.data
    if not np.diff(found.starts).all() or not found.are_closed or (data == _MARK).any():
        return None
    starts, ends = _scalar_spans(found)
    firsts = found.count_before(starts)
    in_scalar = mark_spans(len(data), starts, ends)
    lengths = ends - starts
    kept = ~in_scalar
    kept[starts] = True
    marked = data.copy()
    marked[starts] = _MARK
    removed = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(lengths - 1, out=removed[1:])
    bounds = (found.starts - removed[firsts]).astype(np.int32)
    kinds, shapes = dictionary_of(as_text(from_offsets(bounds, marked[kept])))
    scalars = cut_spans(data, in_scalar, lengths)
    return _Cut(documents, kinds, shapes, scalars, firsts[:-1])


def _scalar_spans(found: QuotedTexts) -> tuple[Ints, Ints]:
    """Where scalars are: strings that are no keys, and words; in the order of the data."""
    data, quotes = found.data, found.quotes
    opening, closing = quotes[0::2], quotes[1::2]
    following = np.minimum(closing + 1, len(data) - 1)
    for _ in range(_BLANKS_MAX):
        is_blank = _IS_BLANK[data[following]]
        if not is_blank.any():
            break
        following = np.minimum(following + is_blank, len(data) - 1)
    is_value = data[following] != _COLON
    in_word = np.zeros(len(data) + 2, np.bool_)
    np.logical_not(_IS_BETWEEN.take(data) | found.inside(), out=in_word[1:-1])
    changes = in_word[1:] != in_word[:-1]
    # Words of two texts that touch are two: one ends where the other begins.
    touching = found.starts[in_word[found.starts] & in_word[found.starts + 1]]
    borders = np.flatnonzero(changes)
    borders = np.sort(np.concatenate((borders, touching, touching)), kind="stable")
    starts = np.concatenate((opening[is_value], borders[0::2]))
    ends = np.concatenate((closing[is_value] + 1, borders[1::2]))
    return np.sort(starts, kind="stable"), np.sort(ends, kind="stable")


_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|([0-9]+)', re.DOTALL)


def _numbered(shape: str) -> str:
    """The shape with a number for each scalar; blanks keep those apart that stand side by side."""
    first, *others = shape.split(chr(_MARK))
    return first + "".join(f" {number} {text}" for number, text in enumerate(others))


@lru_cache(maxsize=_SHAPES_KEPT)
def _read(shape: str) -> _Shape:
    """The canonical text, cut at the scalars. Raises what the reader of single values does."""
    text = parse_jsonb(_numbered(shape))
    texts, scalars, end = [], [], 0
    for match in _TOKEN.finditer(text):
        if match[1] is not None:
            texts.append(text[end : match.start()])
            scalars.append(int(match[1]))
            end = match.end()
    return _Shape((*texts, text[end:]), tuple(scalars))
