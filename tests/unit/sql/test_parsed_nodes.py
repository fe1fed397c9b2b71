"""Trees are the same as with pglast's own classes (U1 of `sql/parser/parsed_nodes.py`)."""

import subprocess
import sys
from pathlib import Path

from pglast import ast, parser

import tests.postgres.queries
from sql.parser.parsed_nodes import take_nodes_as_parsed
from tests.postgres.queries.statement_files import cases_of

_TESTDATA = Path(tests.postgres.queries.__file__).parent / "testdata"
_EVERY = 11
"""Of so many recorded statements one is looked at."""


def _shown(value: object) -> object:
    """A value with the types of all its parts."""
    if isinstance(value, tuple | list):
        return type(value).__name__, [_shown(part) for part in value]
    if isinstance(value, ast.Node):
        return type(value).__name__, [(name, _shown(getattr(value, name))) for name in value]
    return type(value).__name__, value


def _trees() -> str:
    texts = [case.text for path in sorted(_TESTDATA.glob("*.txt")) for case in cases_of(path)]
    assert len(texts) > 1_000
    texts = [
        *texts[::_EVERY],
        "CREATE TABLE t (a int PRIMARY KEY GENERATED ALWAYS AS IDENTITY, b bool DEFAULT true)",
        "CREATE VIEW v AS SELECT a = ANY ('{1}') AND NOT b IS TRUE FROM ONLY t",
        "INSERT INTO t VALUES (1, false) ON CONFLICT (a) DO UPDATE SET b = NULL RETURNING *",
        "GRANT SELECT ON t TO r WITH GRANT OPTION; SET LOCAL x TO DEFAULT; BEGIN READ ONLY",
    ]
    shown: list[str] = []
    for text in texts:
        try:
            shown.append(repr(_shown(parser.parse_sql(text))))
        except parser.ParseError as error:
            shown.append(repr(error.args))
    return "\n".join(shown)


def test_trees_are_those_of_pglast() -> None:
    # In a process of its own: classes do not go back.
    program = f"from {__name__} import _trees; import sys; sys.stdout.write(_trees())"
    prelude = (
        "import sql.parser.parsed_nodes as p; real = p.take_nodes_as_parsed;"
        " p.take_nodes_as_parsed = lambda: None; "
    )
    own = subprocess.run(
        [sys.executable, "-c", prelude + program], capture_output=True, text=True, check=True
    ).stdout
    take_nodes_as_parsed()
    # The first one of them that differs.
    for one, other in zip(own.split("\n"), _trees().split("\n"), strict=True):
        assert one == other
