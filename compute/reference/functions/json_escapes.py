"""Check the escapes of a whole json document, as PostgreSQL's lexer does (makeJsonLexContext)."""

from compute.reference.registry import Function
from sql.types.json.parser import check_json_escapes
from sql.types.sql_type import Value


def checking_escapes(function: Function) -> Function:
    """The function behind a check of its first argument, a json. Raises 22P05."""

    def run(text: str, *args: Value) -> Value:
        if "\\u" in text:
            check_json_escapes(text)
        return function(text, *args)

    return run
