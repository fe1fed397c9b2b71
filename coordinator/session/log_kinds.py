"""Which statements `log_statement` logs: definitions (ddl), those and changes of data (mod), all.

Source: GetCommandLogLevel of PostgreSQL's utility.c.
"""

from typing import Final

from pglast import ast

_MOD: Final = (
    ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt, ast.MergeStmt, ast.TruncateStmt,
)  # fmt: skip

_DEFINING: Final = (
    "Alter", "Create", "Drop", "Define", "Grant", "Comment", "Rename", "SecLabel", "Reassign",
    "ImportForeign", "View", "Index", "Rule", "CompositeType", "RefreshMat", "Cluster",
)  # fmt: skip
"""First words of the nodes of definitions, Meridian's own among them."""


def is_of_kind(node: object, kinds: str) -> bool:
    """Whether `log_statement = kinds` logs a statement; `kinds`: `ddl` or `mod`."""
    match node:
        case ast.PrepareStmt(query=inner) | ast.DeclareCursorStmt(query=inner):
            return is_of_kind(inner, kinds)
        case ast.ExplainStmt(query=inner):
            return _is_analyze(node) and is_of_kind(inner, kinds)
        case ast.SelectStmt():
            return node.intoClause is not None  # a WITH that writes is a query, too
        case ast.CopyStmt():
            return kinds == "mod" and bool(node.is_from)
        case _ if isinstance(node, _MOD):
            return kinds == "mod"
        case _:
            return type(node).__name__.startswith(_DEFINING)


def _is_analyze(node: ast.ExplainStmt) -> bool:
    return any(option.defname == "analyze" for option in node.options or ())
