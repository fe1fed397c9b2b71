"""The places, from `testdata/`: a name on a line, and below it, indented, statements with tokens.

{t}  the table with all values (id, g, v, w)      {a} {b} {c}  untyped literals of values
{p}  without values that are equal to another     {A} {B}      the same with their type
{u}  another table, with some of the values       {T}          the type

reading            a query over one type
parameters         a query with one parameter of the type
array_parameters   one with a parameter that is an array of it
binary             a query whose result is sent in binary
writing            a script over one type: statements to play in order
pairs              a query over two types: `{t}` and `{T}`, `{t2}` and `{T2}`
assigning          a script over two types
"""

import re
from collections.abc import Mapping
from pathlib import Path

_TESTDATA = Path(__file__).parent / "testdata"


def scripts(name: str) -> dict[str, tuple[str, ...]]:
    """The statements of each place of a file."""
    found: dict[str, tuple[str, ...]] = {}
    place = ""
    for line in (_TESTDATA / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):
            found[place] += (line.strip(),)
        elif line:
            place = line
            assert place not in found, f"two places are called {place}"
            found[place] = ()
    return found


def queries(name: str) -> dict[str, str]:
    """The one statement of each place of a file."""
    found = scripts(name)
    assert all(len(texts) == 1 for texts in found.values()), "one statement for each place"
    return {place: texts[0] for place, texts in found.items()}


def fill(text: str, tokens: Mapping[str, str]) -> str:
    """The text with its tokens replaced; other braces stay."""
    return re.sub(r"\{(\w+)\}", lambda found: tokens.get(found[1], found[0]), text)
