"""A text without its long parts is parsed and scanned as the whole one is (O1)."""

import random
from collections.abc import Callable

import pytest
from pglast import ast, parser

from sql.parser import read_text
from sql.parser.read_text import parser_trees, scan_text
from sql.parser.syntax import Node, tree_nodes

LONG = "x" * 70_000
FOREIGN = "Привет, мир" * 500

PARTS = [
    *(
        "select",
        " 'é'",
        "'it''s é'",
        f"'{LONG}'",
        f"'{FOREIGN}'",
        "''",
        "'a''",
        " E'\\'é'",
        "e'é''é'",
    ),
    *(" N'é'", " U&'\\00e9 é'", 'u&"é"', "B'01'", " date'é'", "f'é'", "\n", " ", "\r", ",", "+"),
    *("-", "--é'\n", "-- é\r", "/* é ' */", "/* a /* é */ */", "/*é", "*/", "$$é'$$", "$é$ é $é$"),
    *("a$$", "$1", "$", "\"é''é\"", '"', "'", "é", "from", "t", "(", ")", ";", "k0_1k", "k0_", "1"),
    *("::text", "insert into t values", "comment on table t is", "array[", "]", "in", "as", "of"),
    *(" limit", " union all select", f"/*{LONG}*/", f" --{LONG}\n"),
]


def shown(text: str, read: Callable[[str], object]) -> object:
    try:
        return read(text)
    except parser.ParseError as error:
        return error.args


def flat(trees: object) -> list[object]:
    """Everything in a tree: also places, which `==` leaves out."""
    found: list[object] = []
    for tree in trees if isinstance(trees, tuple) else ():
        for node in tree_nodes(tree):
            values = ((name, getattr(node, name)) for name in node)
            found += [(type(node), name, v) for name, v in values if not is_below(v)]
    return found


def is_below(value: Node) -> bool:
    return isinstance(value, tuple | ast.Node)


def check(text: str) -> bool:
    """Whether it is compared with what it is as a whole; whether it parses."""
    whole, ours = shown(text, parser.parse_sql), shown(text, parser_trees)
    assert flat(ours) == flat(whole)
    if not flat(whole):
        assert ours == whole
    assert shown(text, lambda t: [*scan_text(t)]) == shown(text, lambda t: [*parser.scan(t)])
    return bool(flat(whole))


@pytest.fixture(autouse=True)
def every_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_text, "_TEXT_LONG", 0)
    monkeypatch.setattr(read_text, "_FOREIGN_LONG", 0)


STATEMENTS = (
    f"select '{LONG}', '{FOREIGN}' as k0_1k, 'k0_7k' from t where a = 'é' and b in (1, 2)",
    f"insert into t values (1, '{LONG}', array['é', 'k1_']); select 'é'; delete from t where x = 1",
    f"select length('{LONG}'), /* {FOREIGN} */ x from \"é\" -- é '\nwhere y = 'it''s é' limit 1",
    f"select 'é'\n'{LONG}'\n 'it''s' -- é\n 'é', $$ é '{LONG} $$, $a$é$$é$a$, a$$ from t",
    f"create table t (a text default '{LONG}', b int check (b > 0)); comment on table t is 'é'",
    f"select E'é\\'' 'é', '{LONG}'",
    f"select E'é\\'', '{LONG}' '",
    f"select e'é'\n'{LONG}\\'', 'x'",
    f"select U&'é!0041' uescape '!', '{LONG}'",
    f"select x from from '{LONG}'",
    f"select '{LONG}' '{FOREIGN}' x",
    f"select '{LONG}",
    f"select /* é {LONG}",
    "select 'é' as of 5",
    f"select date'é', N'é', type'{LONG}', e '{LONG}'",
)


@pytest.mark.parametrize("text", STATEMENTS, ids=range(len(STATEMENTS)))
def test_what_is_read_is_the_whole(text: str) -> None:
    check(text)


def test_statements_of_any_parts() -> None:
    rng = random.Random(4)
    parsed = sum(
        check("select 'é" + "".join(rng.choices(PARTS, k=rng.randint(1, 9)))) for _ in range(1_500)
    )
    assert parsed > 20


def test_slices_end_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (2, 3, 5):
        monkeypatch.setattr(read_text, "_SLICE", size)
        for text in STATEMENTS:
            check(text.replace(LONG, "x" * 300))


def test_what_a_person_would_not_write_by_hand_stays_outside() -> None:
    """The parser has the GIL for as long as it has characters to count."""
    for text in (f"SELECT length('{'é' * 4_000_000}')", f"SELECT /* {LONG} */ $${LONG}$$"):
        short = read_text._shortened(text)
        assert short is not None
        assert len(short.text) < 50


def test_a_text_in_doubt_stays_whole() -> None:
    for text in (f"select E'a'\n'{LONG}'", f"select u&'a' -- b\n '{LONG}'"):
        assert read_text._shortened(text) is None
