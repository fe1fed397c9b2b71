"""Parse the statements about sources.

    CREATE SOURCE [IF NOT EXISTS] s FROM GENERATOR {COUNTER | AUCTION} [(option value, ..)]
    ALTER SOURCE s {PAUSE | RESUME}
    DROP SOURCE [IF EXISTS] s, .. [CASCADE | RESTRICT]
    CREATE TABLE [IF NOT EXISTS] t FROM SOURCE s [(REFERENCE 'name')]
    CREATE TABLES FROM SOURCE s [IN SCHEMA x]
    ALTER TABLE t DETACH SOURCE

The words of the rest of the design (connections, other upstreams, formats) are known, and refused
with 0A000.
"""

from collections.abc import Callable
from typing import Final

from sql.errors import SqlError, not_supported
from sql.parser.meridian_nodes import (
    AlterSourceNode,
    CreateSourceNode,
    CreateTableFromNode,
    CreateTablesFromNode,
    DetachSourceNode,
    DropSourceNode,
    Identifier,
    MeridianNode,
    SourceOption,
)
from sql.parser.token_cursor import TokenCursor

_OPTIONS: Final = (
    ("rows per second", ("rows", "per", "second")),
    ("max rows", ("max", "rows")),
    ("seed", ("seed",)),
)
_UPSTREAMS: Final = ("postgres", "kafka", "files")
_LATER_ALTERATIONS: Final = ("resnapshot", "skip", "clear", "set", "rename", "owner")
_TABLE_CLAUSES: Final = ("format", "key", "value", "include", "envelope", "with")


def source_statement(cursor: TokenCursor) -> MeridianNode | None:
    """The statement at the cursor; None if it is another one."""
    for words, production in _PRODUCTIONS:
        if cursor.accept(*words):
            return production(cursor)
    return _create_table_from(cursor) or _detach(cursor)


def _connection(_: TokenCursor) -> MeridianNode:
    raise not_supported("a connection to another system")


def _create_source(cursor: TokenCursor) -> MeridianNode:
    if_not_exists = cursor.accept("if", "not", "exists")
    name = _qualified(cursor)
    if cursor.follows("in", "timeline"):
        raise not_supported("a source in another timeline than system", _place(cursor))
    cursor.expect("from")
    for upstream in _UPSTREAMS:
        if cursor.follows(upstream):
            raise not_supported(f"a source from {upstream.upper()}", _place(cursor))
    cursor.expect("generator")
    kind = cursor.name()
    if kind.text not in ("counter", "auction"):
        cursor.index -= 1
        raise cursor.unexpected()
    options = _options(cursor) if cursor.accept("(") else ()
    if cursor.follows("timestamp", "by") or cursor.follows("with"):
        raise not_supported(f"{cursor.raw(cursor.index).upper()} of a generator", _place(cursor))
    cursor.finish()
    return CreateSourceNode(name, kind.text, options, if_not_exists)


def _options(cursor: TokenCursor) -> tuple[SourceOption, ...]:
    found: dict[str, SourceOption] = {}
    while True:
        place = _place(cursor)
        name = next((name for name, words in _OPTIONS if cursor.accept(*words)), None)
        if name is None:
            raise cursor.unexpected()
        if name in found:
            raise SqlError("42601", "conflicting or redundant options", place)
        found[name] = SourceOption(name, _whole_number(cursor), place)
        if not cursor.accept(","):
            cursor.expect(")")
            return tuple(found.values())


def _whole_number(cursor: TokenCursor) -> int:
    text = cursor.raw(cursor.index)
    if not (text.isascii() and text.isdecimal()):
        raise cursor.unexpected()
    cursor.index += 1
    return int(text)


def _alter_source(cursor: TokenCursor) -> MeridianNode:
    name = _qualified(cursor)
    for action in ("pause", "resume"):
        if cursor.accept(action):
            cursor.finish()
            return AlterSourceNode(name, paused=action == "pause")
    word = cursor.raw(cursor.index)
    if word.lower() in _LATER_ALTERATIONS:
        raise not_supported(f"ALTER SOURCE .. {word.upper()}", _place(cursor))
    raise cursor.unexpected()


def _drop_source(cursor: TokenCursor) -> MeridianNode:
    missing_ok = cursor.accept("if", "exists")
    names = [_qualified(cursor)]
    while cursor.accept(","):
        names.append(_qualified(cursor))
    cascade = cursor.accept("cascade")
    if not cascade:
        cursor.accept("restrict")
    cursor.finish()
    return DropSourceNode(tuple(names), missing_ok, cascade)


def _create_tables_from(cursor: TokenCursor) -> MeridianNode:
    source = _qualified(cursor)
    schema = cursor.name() if cursor.accept("in", "schema") else None
    cursor.finish()
    return CreateTablesFromNode(source, schema)


def _create_table_from(cursor: TokenCursor) -> MeridianNode | None:
    """CREATE TABLE with FROM SOURCE behind the name or the columns; None if it is not there."""
    if not cursor.accept("create", "table"):
        return None
    if_not_exists = cursor.accept("if", "not", "exists")
    try:
        name = _qualified(cursor)
    except SqlError:
        name = ()
    if not name or not cursor.accept("from", "source"):
        cursor.index = 0
        return None
    source = _qualified(cursor)
    reference = None
    if cursor.accept("(", "reference"):
        reference = _text(cursor)
        cursor.expect(")")
    word = cursor.raw(cursor.index)
    if word.lower() in _TABLE_CLAUSES:
        raise not_supported(f"{word.upper()} of a table of a generator", _place(cursor))
    cursor.finish()
    return CreateTableFromNode(name, source, reference, if_not_exists)


def _text(cursor: TokenCursor) -> str:
    raw = cursor.raw(cursor.index)
    if len(raw) < 2 or raw[0] != "'":
        raise cursor.unexpected()
    cursor.index += 1
    return raw[1:-1].replace("''", "'")


def _detach(cursor: TokenCursor) -> MeridianNode | None:
    if not cursor.accept("alter", "table"):
        return None
    try:
        name = _qualified(cursor)
    except SqlError:
        name = ()
    if not name or not cursor.accept("detach", "source"):
        cursor.index = 0
        return None
    cursor.finish()
    return DetachSourceNode(name)


def _qualified(cursor: TokenCursor) -> tuple[Identifier, ...]:
    """A name, perhaps with its schema."""
    first = cursor.name()
    return (first, cursor.name()) if cursor.accept(".") else (first,)


def _place(cursor: TokenCursor) -> int:
    return cursor.tokens[cursor.index].start + 1 if cursor.index < len(cursor.tokens) else 0


_PRODUCTIONS: Final[tuple[tuple[tuple[str, ...], Callable[[TokenCursor], MeridianNode]], ...]] = (
    (("create", "connection"), _connection),
    (("alter", "connection"), _connection),
    (("drop", "connection"), _connection),
    (("create", "source"), _create_source),
    (("alter", "source"), _alter_source),
    (("drop", "source"), _drop_source),
    (("create", "tables", "from", "source"), _create_tables_from),
)
