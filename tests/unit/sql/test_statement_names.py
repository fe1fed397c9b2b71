"""Names of statements and objects in messages of refused features."""

import pytest
from pglast import ast, parse_sql
from pglast.enums import AlterTableType, ObjectType

from sql.parser.statement_names import alter_action_name, object_type_name, statement_name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("create trigger x before insert on t execute function f()", "CREATE TRIGGER"),
        ("create type shell", "CREATE TYPE"),
        ("create text search parser p (start = f)", "CREATE TEXT SEARCH PARSER"),
        ("alter system set work_mem = 1", "ALTER SYSTEM"),
        ("drop subscription s", "DROP SUBSCRIPTION"),
        ("refresh materialized view v", "REFRESH MATERIALIZED VIEW"),
        ("import foreign schema x from server y into z", "IMPORT FOREIGN SCHEMA"),
    ],
)
def test_a_statement_is_called_as_it_is_written(text: str, words: str) -> None:
    assert statement_name(parse_sql(text)[0].stmt) == words


def test_no_name_is_the_parsers() -> None:
    names = [object_type_name(kind) for kind in ObjectType]
    names += [alter_action_name(action) for action in AlterTableType]
    names += [
        statement_name(getattr(ast, name)())
        for name in dir(ast)
        if name.endswith("Stmt") and name != "DefineStmt"
    ]
    for name in names:
        assert "STMT" not in name.upper()
        assert not name.startswith("TS"), name
