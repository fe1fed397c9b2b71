"""Parse the statements about sources; those about connections are in `connection_grammar.py`.

    CREATE SOURCE [IF NOT EXISTS] s FROM GENERATOR {COUNTER | AUCTION} [(option value, ..)]
    CREATE SOURCE [IF NOT EXISTS] s FROM POSTGRES CONNECTION c (PUBLICATION 'p')
        [WITH (setting = 'value', ..)]
    ALTER SOURCE s {PAUSE | RESUME | RESNAPSHOT | SKIP RECORD | SET (setting = 'value', ..)
        | RENAME TO n | SET SCHEMA x | OWNER TO r}
    DROP SOURCE [IF EXISTS] s, .. [CASCADE | RESTRICT]
    CREATE TABLE [IF NOT EXISTS] t [(columns)] FROM SOURCE s [(REFERENCE 'name')]
        [WITH (option = 'value', ..)]
    CREATE TABLES FROM SOURCE s [IN SCHEMA x]
    ALTER TABLE t DETACH SOURCE

The words of the rest of the design (other upstreams, formats) are known, and refused with 0A000.
"""

from collections.abc import Callable, Mapping
from typing import Final

from sql.errors import SqlError, not_supported
from sql.parser.connection_grammar import altered_name, connection_statement, drop_named
from sql.parser.meridian_nodes import (
    AlterSourceNode,
    CreateSourceNode,
    CreateTableFromNode,
    CreateTablesFromNode,
    DetachSourceNode,
    Identifier,
    MeridianNode,
    ParsedPart,
    SourceOption,
)
from sql.parser.token_cursor import TokenCursor, closing_token

_OPTIONS: Final = (
    ("rows per second", ("rows", "per", "second")),
    ("max rows", ("max", "rows")),
    ("seed", ("seed",)),
)
_UPSTREAMS: Final = ("kafka", "files")
_ACTIONS: Final = (
    ("pause", ("pause",)),
    ("resume", ("resume",)),
    ("resnapshot", ("resnapshot",)),
    ("skip record", ("skip", "record")),
)
_LATER_ALTERATIONS: Final[Mapping[str, str | None]] = {
    "skip": None,
    "clear": "DELETE FROM .. takes records out of the table of its errors.",
}
_TABLE_CLAUSES: Final = ("format", "key", "value", "include", "envelope")
SOURCE_SETTINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "schema_changes": ("ignore", "stop"),
    "on_error": ("record", "stop"),
    "error_limit": (),
}
"""What WITH and SET of a source take, with their values, the first of which is the default; of a
number none.
"""
_LATER_SETTINGS: Final = ("engine", "interval")
TABLE_OPTIONS_OF_FEEDS: Final = ("text_columns", "exclude_columns")
"""What WITH of a fed table takes."""


def source_statement(cursor: TokenCursor) -> MeridianNode | None:
    """The statement at the cursor; None if it is another one."""
    for words, production in _PRODUCTIONS:
        if cursor.accept(*words):
            return production(cursor)
    return connection_statement(cursor) or _create_table_from(cursor) or _detach(cursor)


def _create_source(cursor: TokenCursor) -> MeridianNode:
    if_not_exists = cursor.accept("if", "not", "exists")
    name = cursor.qualified_name()
    if cursor.follows("in", "timeline"):
        raise not_supported("a source in another timeline than system", cursor.place())
    cursor.expect("from")
    for upstream in _UPSTREAMS:
        if cursor.follows(upstream):
            raise not_supported(f"a source from {upstream.upper()}", cursor.place())
    if cursor.accept("postgres"):
        return _from_postgres(cursor, name, if_not_exists=if_not_exists)
    cursor.expect("generator")
    kind = cursor.name()
    if kind.text not in ("counter", "auction"):
        cursor.index -= 1
        raise cursor.unexpected()
    options = _options(cursor) if cursor.accept("(") else ()
    if cursor.follows("timestamp", "by") or cursor.follows("with"):
        what = f"{cursor.raw(cursor.index).upper()} of a generator"
        raise not_supported(what, cursor.place())
    cursor.finish()
    return CreateSourceNode(
        name, "generator", kind.text, options=options, if_not_exists=if_not_exists
    )


def _from_postgres(
    cursor: TokenCursor, name: tuple[Identifier, ...], *, if_not_exists: bool
) -> CreateSourceNode:
    cursor.expect("connection")
    connection = cursor.qualified_name()
    cursor.expect("(")
    place = cursor.place()
    cursor.expect("publication")
    options = (SourceOption("publication", cursor.string(), place),)
    cursor.expect(")")
    settings = _settings(cursor, tuple(SOURCE_SETTINGS)) if cursor.accept("with") else ()
    cursor.finish()
    return CreateSourceNode(name, "postgres", "", connection, options, settings, if_not_exists)


def _options(cursor: TokenCursor) -> tuple[SourceOption, ...]:
    found: dict[str, SourceOption] = {}
    while True:
        place = cursor.place()
        name = next((name for name, words in _OPTIONS if cursor.accept(*words)), None)
        if name is None:
            raise cursor.unexpected()
        if name in found:
            raise SqlError("42601", "conflicting or redundant options", place)
        found[name] = SourceOption(name, cursor.whole_number(), place)
        if not cursor.accept(","):
            cursor.expect(")")
            return tuple(found.values())


def _settings(cursor: TokenCursor, known: tuple[str, ...]) -> tuple[SourceOption, ...]:
    """(name = 'value', ..)"""
    cursor.expect("(")
    found: dict[str, SourceOption] = {}
    while True:
        place = cursor.place()
        name = cursor.name().text
        if name in _LATER_SETTINGS and "schema_changes" in known:
            raise not_supported(f'the option "{name}" of a source', place)
        if name not in known:
            hint = f"Options are: {', '.join(known)}."
            raise SqlError("22023", f'unrecognized parameter "{name}"', place, hint=hint)
        if name in found:
            raise SqlError("42601", "conflicting or redundant options", place)
        cursor.expect("=")
        is_number = not SOURCE_SETTINGS.get(name, (name,))
        value = cursor.whole_number() if is_number else cursor.string()
        found[name] = SourceOption(name, value, place)
        if not cursor.accept(","):
            cursor.expect(")")
            return tuple(found.values())


def _alter_source(cursor: TokenCursor) -> MeridianNode:
    name = cursor.qualified_name()
    place = cursor.place()
    for action, words in _ACTIONS:
        if cursor.accept(*words):
            if action == "resnapshot" and cursor.follows("("):
                raise not_supported("RESNAPSHOT of single tables", cursor.place())
            cursor.finish()
            return AlterSourceNode(name, action, place=place)
    word = cursor.raw(cursor.index)
    if word.lower() in _LATER_ALTERATIONS:
        hint = _LATER_ALTERATIONS[word.lower()]
        raise not_supported(f"ALTER SOURCE .. {word.upper()}", place, hint=hint)
    moved = altered_name(cursor, "source", name)
    if moved is not None:
        return moved
    cursor.expect("set")
    settings = _settings(cursor, tuple(SOURCE_SETTINGS))
    cursor.finish()
    return AlterSourceNode(name, "set", settings, place)


def _drop_source(cursor: TokenCursor) -> MeridianNode:
    return drop_named(cursor, "source")


def _create_tables_from(cursor: TokenCursor) -> MeridianNode:
    source = cursor.qualified_name()
    schema = cursor.name() if cursor.accept("in", "schema") else None
    cursor.finish()
    return CreateTablesFromNode(source, schema)


def _create_table_from(cursor: TokenCursor) -> MeridianNode | None:
    """CREATE TABLE with FROM SOURCE behind the name or the columns; None if it is not there."""
    if not cursor.accept("create", "table"):
        return None
    if_not_exists = cursor.accept("if", "not", "exists")
    try:
        name = cursor.qualified_name()
    except SqlError:
        name = ()
    behind = closing_token(cursor, cursor.index) if cursor.follows("(") else cursor.index
    if not name or behind is None or not cursor.follows("from", "source", at=behind):
        cursor.index = 0
        return None
    create = _columns(cursor, behind) if behind > cursor.index else None
    cursor.index = behind
    cursor.expect("from", "source")
    source = cursor.qualified_name()
    reference = None
    if cursor.accept("(", "reference"):
        reference = cursor.string()
        cursor.expect(")")
    word = cursor.raw(cursor.index)
    if word.lower() in _TABLE_CLAUSES:
        raise not_supported(f"{word.upper()} of a fed table", cursor.place())
    options = _settings(cursor, TABLE_OPTIONS_OF_FEEDS) if cursor.accept("with") else ()
    cursor.finish()
    return CreateTableFromNode(name, source, reference, if_not_exists, create, options)


def _columns(cursor: TokenCursor, behind: int) -> ParsedPart:
    """The part before FROM, as PostgreSQL's parser has it."""
    first, last = cursor.tokens[0].start, cursor.tokens[behind - 1].end + 1
    source = " " * first + cursor.text[first:last]
    return ParsedPart(cursor.tree(source), source)


def _detach(cursor: TokenCursor) -> MeridianNode | None:
    if not cursor.accept("alter", "table"):
        return None
    try:
        name = cursor.qualified_name()
    except SqlError:
        name = ()
    if not name or not cursor.accept("detach", "source"):
        cursor.index = 0
        return None
    cursor.finish()
    return DetachSourceNode(name)


_PRODUCTIONS: Final[tuple[tuple[tuple[str, ...], Callable[[TokenCursor], MeridianNode]], ...]] = (
    (("create", "source"), _create_source),
    (("alter", "source"), _alter_source),
    (("drop", "source"), _drop_source),
    (("create", "tables", "from", "source"), _create_tables_from),
)
