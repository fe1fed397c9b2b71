"""Columns of json, of quoted arrays and of escapes, against the readers of single values."""

import json
import random
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pytest

from ingest.copy_text.arrow_types import to_values
from ingest.copy_text.columns import column_parser, parse_field
from ingest.copy_text.json_documents import json_texts, jsonb_texts
from ingest.copy_text.kernels import to_python_list
from ingest.copy_text.lines import unescape_field
from ingest.copy_text.plain_blocks import BlockCutter
from ingest.copy_text.quoted_arrays import quoted_arrays
from ingest.copy_text.spans import without_escapes
from sql.errors import SqlError
from sql.statements.copy_options import CopyOptions
from sql.types.sql_type import SqlType, Value
from sql.types.styles import DEFAULT_STYLES

_STRINGS = (
    "", "a", "b c", "é", "😀", ":", ",", "{", "}", "[]", "#", "1", "true", "a,b", "x: y", "\x7f",
)  # fmt: skip
_RAW_STRINGS = (
    r'"\n"', r'"\""', r'"\\"', r'"\\\""', r'"\/"', r'"\u00e4"', r'"\u001f"', r'"\ud83d\ude00"',
    r'"\u0041\\u0000"', r'"a\u0022b"', r'"\\\\"',
)  # fmt: skip
_NUMBERS = (
    "0", "-0", "0.0", "-0.00", "-0.5", "1", "-17", "1.10", "1e2", "1E-3", "1.50e+1", "-0e1",
    "12345678901234567890.123456789", "0.1e-20", "1" * 1200,
)  # fmt: skip
_KEYS = ("a", "b", "aa", "é", "z", "", "a b", "k:", ",", "#", "0", "\\n", "Z", "zz", "\\u0061")
_WRONG = (
    "", " ", "{", "}", "[1", '"', '"a', "tru", "nul", "NaN", "-", "01", "1.", ".5", "1e", "+1",
    "{'a': 1}", '{"a" 1}', '{"a": }', '{"a": 1,}', "[1,]", "[,1]", "[1 2]", '["a""b"]', '["a"1]',
    "{1: 2}", '{"a": 1 "b": 2}', '"\\x"', '"\\u12"', '"\\u0000"', '"\\ud800"', '"\\ude00"', "\x01",
    '"\x01"', '{"\x01": 1}', "1 2", "1,2", "true false", "é", "[1]]", '"a" "b"', '"a\\', "a\\",
    '{"\\u0000": 1}', '"\t"', "1\v", "{true: 1}", "[1}", '{"a"}', '["a": 1]', "\u00a01", "1e200000",
    "[" * 500 + "]" * 500, "0." + "1" * 20_000, "1e99999999999999999999999", '"a\\"',
)  # fmt: skip


def _scalar(chance: random.Random) -> str:
    kind = chance.randrange(5)
    if kind == 0:
        return chance.choice(("true", "false", "null"))
    if kind == 1:
        return chance.choice(_RAW_STRINGS)
    if kind == 2:
        return json.dumps(chance.choice(_STRINGS), ensure_ascii=False)
    return chance.choice(_NUMBERS)


def _shape(chance: random.Random, depth: int = 0) -> str:
    """A document with `$` in place of its scalars."""

    def blank() -> str:
        return chance.choice(("", "", "", " ", "  ", "\n", "\t\r "))

    kind = chance.randrange(3 if depth < 3 else 1)
    if kind == 0:
        return f"{blank()}${blank()}"
    inner = [_shape(chance, depth + 1) for _ in range(chance.randrange(4))]
    if kind == 1:
        return f"[{','.join(inner) or blank()}]{blank()}"
    pairs = [f'{blank()}"{chance.choice(_KEYS)}"{blank()}:{value}' for value in inner]
    return f"{blank()}{{{','.join(pairs) or blank()}}}"


def _filled(shape: str, chance: random.Random) -> str:
    first, *others = shape.split("$")
    return first + "".join(_scalar(chance) + other for other in others)


def _expected(texts: Sequence[str | None], type_: SqlType) -> list[Value] | None:
    try:
        return [
            None if text is None else parse_field(text, type_, "UTC", DEFAULT_STYLES)
            for text in texts
        ]
    except SqlError:
        return None


def _agrees(texts: Sequence[str | None], type_: SqlType) -> bool:
    """Whether the texts are read, and as single values; else they are refused as there."""
    expected = _expected(texts, type_)
    column = pa.array(texts, pa.string())
    if expected is None:
        with pytest.raises((SqlError, pa.ArrowInvalid)):
            column_parser(type_, "UTC")(column)
        return False
    assert to_values(column_parser(type_, "UTC")(column), type_) == expected
    return True


@pytest.mark.parametrize("name", ["json", "jsonb"])
@pytest.mark.parametrize("seed", range(40))
def test_documents_are_read_as_their_values(name: str, seed: int) -> None:
    chance = random.Random(seed)
    shapes = [_shape(chance) for _ in range(chance.choice((1, 2, 5, 40)))]
    texts: list[str | None] = [_filled(chance.choice(shapes), chance) for _ in range(120)]
    if seed % 2:
        for at in range(0, len(texts), 7):
            texts[at] = None
    fast = (json_texts if name == "json" else jsonb_texts)(pa.array(texts, pa.string()))
    assert fast is not None, "the column is read as a whole"
    assert to_python_list(fast) == _expected(texts, SqlType(name))


@pytest.mark.parametrize("name", ["json", "jsonb"])
@pytest.mark.parametrize("wrong", _WRONG)
def test_a_wrong_document_is_found_among_right_ones(name: str, wrong: str) -> None:
    type_ = SqlType(name)
    right = ['{"a": 1, "b": "x"}', '"s"', "1", "[1, 2]", '{"a": {}}']
    for many in (1, 20):
        for other in right:
            is_right = _agrees([wrong] * many, type_)
            for texts in ([wrong, *[other] * many], [*[other] * many, *[wrong] * many, other]):
                assert _agrees(texts, type_) == is_right


def test_the_last_of_equal_keys_wins_and_keys_are_in_order() -> None:
    texts = [f'{{"bb": {n}, "a": "x{n}", "é": [{n}, {{}}], "bb": null, "b":-0}}' for n in range(20)]
    read = jsonb_texts(pa.array(texts))
    assert read is not None
    assert to_python_list(read)[7] == '{"a": "x7", "b": 0, "bb": null, "é": [7, {}]}'


_ELEMENTS = (
    "1", "-2", '"3"', "NULL", "null", "Null", '"NULL"', '"a b"', "a b", '"a,b"', '"{}"', r'"\""',
    r'"\\"', r'"\a"', '""', " 4", "5 ", '" 6 "', "é", '"é\\é"', "nulls", '" "',
)  # fmt: skip
_ODD_ELEMENTS = ("", '"', '"a"b', 'a"b"', "a\\,b", "{1}", "}", '"a" "b"', "\\", "[", '""""')


def _array(chance: random.Random, elements: Sequence[str]) -> str:
    parts = [chance.choice(elements) for _ in range(chance.randrange(5))]
    return f"{{{chance.choice((',', ',', ', ', ' ,')).join(parts)}}}"


@pytest.mark.parametrize("seed", range(20))
def test_quoted_arrays_are_read_as_their_values(seed: int) -> None:
    chance = random.Random(seed)
    type_ = SqlType("_text")
    texts = [_array(chance, _ELEMENTS) for _ in range(100)]
    column = pa.array([*texts, None, "{}", "{ }"])
    fast = quoted_arrays(column, column_parser(SqlType("text"), "UTC"))
    assert fast is not None, "the column is read as a whole"
    assert to_values(fast, type_) == _expected([*texts, None, "{}", "{ }"], type_)
    for _ in range(100):
        odd = _array(chance, (*_ELEMENTS, *_ODD_ELEMENTS))
        form = chance.choice(("{}", "{}", " {}", "{} ", "[1:1]={}", "{}}}", "{{{}", "{}x", "\\{}"))
        odd = form.format(odd)
        assert _agrees([odd], type_) == _agrees([texts[0], odd, None, texts[1]], type_)


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("_int4", ["{1, NULL,3}", "{ 4 }", "{}"]),
        ("_jsonb", ['{"{\\"b\\": 1, \\"a\\": 1.10}"}', "{null}", "{[]}"]),
        ("_timestamp", ['{"2020-01-01 00:00:00",NULL}', "{2020-1-2}"]),
    ],
)
def test_elements_are_read_by_their_type(name: str, texts: Sequence[str]) -> None:
    assert _agrees(texts, SqlType(name))


def test_escapes_are_removed_from_a_column() -> None:
    chance = random.Random(3)
    pieces = (
        "a",
        "\\\\",
        "\\n",
        "\\t",
        "\\b",
        "\\q",
        "\\é",
        "é",
        "1",
        "\\\\n",
        "\\N",
        '\\"',
        "\\v",
    )
    cutter = BlockCutter(CopyOptions())
    cutter.block_end(bytearray(b"a\n"), 2, b"\n")
    for others in ((), ("\\101", "\\x41", "\\x")):
        fields = [
            "".join(chance.choice((*pieces, *others)) for _ in range(chance.randrange(1, 6)))
            for _ in range(500)
        ]
        fields = [field for field in fields if field != "\\N" and not field.endswith("\\\\")]
        (column,) = cutter.columns("".join(f"{field}\n" for field in fields).encode(), 1)
        assert to_python_list(column) == [unescape_field(field.encode()) for field in fields]


def test_escapes_that_are_not_simple_are_left_alone() -> None:
    meanings = np.arange(256, dtype=np.uint8)
    meanings[ord("x")] = 0
    assert without_escapes(pa.array(["a\\x41"]), meanings) is None
    assert without_escapes(pa.array(["a\\", "b"]), meanings) is None
    assert to_python_list(without_escapes(pa.array(["\\a", None, "\\\\", ""]), meanings)) == [
        "a", None, "\\", "",
    ]  # fmt: skip


_READERS: Sequence[Callable[[pa.Array], object]] = (json_texts, jsonb_texts)


@pytest.mark.parametrize("read", _READERS)
def test_slices_and_empty_columns_are_read(read: Callable[[pa.Array], object]) -> None:
    texts = pa.array(['{"a": 1}', None, '{"a": "x"}', "[2]", None])
    assert to_python_list(read(texts.slice(1, 3))) == [None, '{"a": "x"}', "[2]"]
    assert to_python_list(read(texts.slice(1, 1))) == [None]
    assert to_python_list(read(pa.array([], pa.string()))) == []
