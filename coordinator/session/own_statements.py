"""The statements of a string, each seen as if it had been sent alone, so that templates know it.

    "insert ..; insert ..; select .."  ─▶ parsed as a whole ─▶ own text ─▶ template ─▶ run in order
                                                                  └── none ─▶ as it was parsed

INVARIANTS
  V1  the whole string is parsed before anything of it runs: a syntax error anywhere refuses it all.
  V2  a template stands for a statement only in what runs. The transaction of the string is the same
      as without: no statement of several is alone (C1 of `commands.py`).
  V3  places in errors are those in the string.

Only statements that templates may be of are looked at (`planning/literal_templates.py`). Rows of
one INSERT are no templates of a string: it goes the general way.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from pglast import ast

from coordinator.session.statement_templates import FilledTemplate, StatementTemplates
from sql.errors import SqlError
from sql.parser.parse import Statement

_WITH_TEMPLATES: Final = (ast.SelectStmt, ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt)


async def own_template(
    templates: StatementTemplates, statement: Statement
) -> FilledTemplate | None:
    """The template of a statement that is one of several (V2)."""
    if statement.length is None or statement.as_of is not None or statement.is_dated:
        return None
    if not isinstance(statement.node, _WITH_TEMPLATES):
        return None
    return await templates.find(statement.own_text)


@contextmanager
def places_in_string(statement: Statement) -> Generator[None]:
    """Places in errors of the statement's own text are those in its string (V3)."""
    try:
        yield
    except SqlError as error:
        if error.position is None:
            raise
        raise replace(error, position=error.position + statement.offset) from error
