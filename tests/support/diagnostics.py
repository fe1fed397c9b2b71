"""Errors and notices as one line of text: SQLSTATE and all fields that a client is told."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psycopg


def told(kind: str, found: "psycopg.errors.Diagnostic") -> str:
    """`E 23505 message | detail .. | constraint ..`, with what was said only."""
    fields = {
        "": found.message_primary,
        "detail": found.message_detail,
        "hint": found.message_hint,
        "schema": found.schema_name,
        "table": found.table_name,
        "column": found.column_name,
        "datatype": found.datatype_name,
        "constraint": found.constraint_name,
        "at": found.statement_position,
    }
    said = [f"{name} {text}".strip() for name, text in fields.items() if text is not None]
    return f"{kind} {found.sqlstate} " + " | ".join(said)
