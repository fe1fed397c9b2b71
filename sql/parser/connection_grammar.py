"""Parse the statements about connections.

    CREATE CONNECTION [IF NOT EXISTS] c TO POSTGRES (option value, ..)
    ALTER CONNECTION c {SET (option value, ..) | RENAME TO n | SET SCHEMA x | OWNER TO r}
    DROP CONNECTION [IF EXISTS] c, .. [CASCADE | RESTRICT]
    COMMENT ON {CONNECTION | SOURCE} name IS {'text' | NULL}

INVARIANTS
  N1  a password is never part of a statement: it is named by a variable or file of the server, and
      a statement that has one is refused without repeating it.
"""

from typing import Final

from sql.errors import SqlError, not_supported
from sql.parser.meridian_nodes import (
    AlterConnectionNode,
    AlterNamedNode,
    CreateConnectionNode,
    DropSourceNode,
    Identifier,
    MeridianNode,
    SourceOption,
)
from sql.parser.token_cursor import TokenCursor

_TEXTS: Final = (
    ("host", ("host",)),
    ("database", ("database",)),
    ("user", ("user",)),
    ("ssl mode", ("ssl", "mode")),
)
_LATER: Final = (("kafka",), ("schema", "registry"))


def connection_statement(cursor: TokenCursor) -> MeridianNode | None:
    """The statement at the cursor; None if it is another one."""
    if cursor.accept("create", "connection"):
        return _create(cursor)
    if cursor.accept("alter", "connection"):
        return _alter(cursor)
    if cursor.accept("drop", "connection"):
        return drop_named(cursor, "connection")
    return _comment(cursor)


def _create(cursor: TokenCursor) -> MeridianNode:
    if_not_exists = cursor.accept("if", "not", "exists")
    name = cursor.qualified_name()
    cursor.expect("to")
    for words in _LATER:
        if cursor.follows(*words):
            what = f"a connection to {' '.join(words).upper()}"
            raise not_supported(what, cursor.place())
    cursor.expect("postgres")
    cursor.expect("(")
    options = _options(cursor)
    cursor.finish()
    return CreateConnectionNode(name, "postgres", options, if_not_exists)


def _alter(cursor: TokenCursor) -> MeridianNode:
    name = cursor.qualified_name()
    moved = altered_name(cursor, "connection", name)
    if moved is not None:
        return moved
    cursor.expect("set")
    cursor.expect("(")
    options = _options(cursor)
    cursor.finish()
    return AlterConnectionNode(name, options)


def _options(cursor: TokenCursor) -> tuple[SourceOption, ...]:
    found: dict[str, SourceOption] = {}
    while True:
        option = _option(cursor)
        # A password from a variable takes the place of one from a file.
        kind = option.name.partition(" ")[0]
        if kind in found:
            raise SqlError("42601", "conflicting or redundant options", option.place)
        found[kind] = option
        if not cursor.accept(","):
            cursor.expect(")")
            return tuple(found.values())


def _option(cursor: TokenCursor) -> SourceOption:
    place = cursor.place()
    for name, words in _TEXTS:
        if cursor.accept(*words):
            return SourceOption(name, cursor.string(), place)
    if cursor.accept("port"):
        return SourceOption("port", cursor.whole_number(), place)
    if cursor.accept("password"):
        return _password(cursor, place)
    if cursor.accept("ca"):
        cursor.expect("from", "file")
        return SourceOption("ca file", cursor.string(), place)
    raise cursor.unexpected()


def _password(cursor: TokenCursor, place: int) -> SourceOption:
    if not cursor.accept("from"):
        hint = "Use PASSWORD FROM ENV 'name' or PASSWORD FROM FILE 'path'."
        raise not_supported("a password in a statement", place, hint=hint)
    for kind in ("env", "file"):
        if cursor.accept(kind):
            return SourceOption(f"password {kind}", cursor.string(), place)
    raise cursor.unexpected()


# --- what connections and sources have in common -----------------------------------------------


def drop_named(cursor: TokenCursor, kind: str) -> DropSourceNode:
    """The rest of DROP."""
    missing_ok = cursor.accept("if", "exists")
    names = [cursor.qualified_name()]
    while cursor.accept(","):
        names.append(cursor.qualified_name())
    cascade = cursor.accept("cascade")
    if not cascade:
        cursor.accept("restrict")
    cursor.finish()
    return DropSourceNode(tuple(names), missing_ok, cascade, kind)


def altered_name(
    cursor: TokenCursor, kind: str, name: tuple[Identifier, ...]
) -> AlterNamedNode | None:
    """RENAME TO, SET SCHEMA and OWNER TO; None if it is something else."""
    for action, words in _ALTERATIONS:
        if cursor.accept(*words):
            new = cursor.name()
            cursor.finish()
            return AlterNamedNode(kind, name, action, new)
    return None


_ALTERATIONS: Final = (
    ("rename", ("rename", "to")),
    ("schema", ("set", "schema")),
    ("owner", ("owner", "to")),
)


def _comment(cursor: TokenCursor) -> AlterNamedNode | None:
    """COMMENT ON {CONNECTION | SOURCE} name IS {'text' | NULL}; None if it is another statement."""
    for kind in ("connection", "source"):
        if cursor.accept("comment", "on", kind):
            name = cursor.qualified_name()
            cursor.expect("is")
            text = None if cursor.accept("null") else cursor.string()
            cursor.finish()
            return AlterNamedNode(kind, name, "comment", text=text or None)
    return None
