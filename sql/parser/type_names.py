"""Resolve the type names of the grammar to types, and quote identifiers for messages."""

from functools import lru_cache
from typing import Final

from pglast import ast, parser

from sql.errors import SqlError, not_supported, undefined_schema
from sql.parser.syntax import Node, is_a, offset_to_position, string_values
from sql.types.bpchar import column_type
from sql.types.datetime.typmods import interval_typmod, time_typmod
from sql.types.sql_type import (
    NUMERIC_PRECISION_MAX,
    TYPE_OIDS,
    SqlType,
    array_of,
    bpchar,
    format_type,
    is_type,
    numeric,
    plain_type,
    varchar,
)

_TEXTS_CACHED_MAX: Final = 256
_BEFORE_TYPE: Final = "select null::"
"""What makes a statement of a type's name."""

_FOREIGN: Final = frozenset(
    [
        "money",
        "xml",
        "inet",
        "cidr",
        "macaddr",
        "macaddr8",
        "bit",
        "varbit",
        "point",
        "line",
        "lseg",
        "box",
        "path",
        "polygon",
        "circle",
        "tsvector",
        "tsquery",
        "regclass",
        "regproc",
        "regprocedure",
        "regoper",
        "regoperator",
        "regtype",
        "regrole",
        "regnamespace",
        "regconfig",
        "regdictionary",
        "regcollation",
        "xid",
        "xid8",
        "cid",
        "tid",
        "pg_lsn",
        "int4range",
        "int8range",
        "numrange",
        "tsrange",
        "tstzrange",
        "daterange",
        "int2vector",
        "oidvector",
        "refcursor",
        "record",
        "serial",
        "serial4",
        "serial2",
        "serial8",
        "smallserial",
        "bigserial",
        "hstore",
        "citext",
        "cstring",
        "anyelement",
        "anyarray",
        "anyrange",
        "anymultirange",
        "anynonarray",
        "anyenum",
        "anycompatible",
        "anycompatiblearray",
        "anycompatiblerange",
        "internal",
        "int4multirange",
        "int8multirange",
        "nummultirange",
        "datemultirange",
        "tsmultirange",
        "tstzmultirange",
    ]
)
_LENGTH_MAX: Final = 10_485_760
_PLAIN: Final = {
    name: column_type(plain_type(name)) for name in TYPE_OIDS if name not in ("unknown", "void")
}


def is_builtin_type(name: str) -> bool:
    """Whether PostgreSQL has a built-in type of that name, supported here or not."""
    return name in _PLAIN or name in _FOREIGN or name in ("unknown", "void")


def resolve_type_name(node: Node) -> SqlType:
    """The type of a TypeName node. Raises 42704, 42601, 22023, 0A000."""
    element = _element_of(node)
    # PostgreSQL ignores the bounds, and how many there are.
    if not node.arrayBounds or element.element is not None:
        return element
    array = array_of(element)
    if not is_type(array.name):
        raise not_supported(f"type {format_type(element)}[]", offset_to_position(node.location))
    return array


def _element_of(node: Node) -> SqlType:
    place = offset_to_position(node.location)
    names = string_values(node.names)
    if node.setof or node.pct_type:
        raise not_supported("this form of type name", place)
    name = names[-1]
    if len(names) > 1 and names[-2] != "pg_catalog":
        raise undefined_schema(names[-2], place)
    type_ = _PLAIN.get(name)
    if type_ is None:
        raise _unknown_type(name + "[]" * len(node.arrayBounds or ()), place)
    return type_ if not node.typmods else _modified(name, node)


def _unknown_type(name: str, place: int | None) -> SqlError:
    if name.rstrip("[]") in _FOREIGN or name in ("unknown", "void"):
        return not_supported(f"type {name}", place)
    return SqlError("42704", f'type "{name}" does not exist', place)


def _modified(name: str, node: Node) -> SqlType:
    place = offset_to_position(node.location)
    if not all(is_a(item, ast.A_Const) and is_a(item.val, ast.Integer) for item in node.typmods):
        raise SqlError("42601", "type modifiers must be simple constants or identifiers", place)
    modifiers = [item.val.ival or 0 for item in node.typmods]
    match name:
        case "varchar" | "bpchar":
            return _with_length(name, modifiers, place)
        case "numeric":
            return _with_precision(modifiers, place)
        case "time" | "timetz" | "timestamp" | "timestamptz":
            return SqlType(name, time_typmod(name, modifiers, place))
        case "interval":
            return SqlType(name, interval_typmod(modifiers, place))
        case _:
            message = f'type modifier is not allowed for type "{name}"'
            raise SqlError("42601", message, place)


def _with_length(name: str, modifiers: list[int], place: int | None) -> SqlType:
    if len(modifiers) != 1:
        raise SqlError("22023", "invalid type modifier", place)
    length = modifiers[0]
    shown = "varchar" if name == "varchar" else "char"
    if length < 1:
        raise SqlError("22023", f"length for type {shown} must be at least 1", place)
    if length > _LENGTH_MAX:
        message = f"length for type {shown} cannot exceed {_LENGTH_MAX}"
        raise SqlError("22023", message, place)
    return varchar(length) if name == "varchar" else bpchar(length)


def _with_precision(modifiers: list[int], place: int | None) -> SqlType:
    if len(modifiers) > 2:
        raise SqlError("22023", "invalid NUMERIC type modifier", place)
    precision, scale = modifiers[0], modifiers[1] if len(modifiers) == 2 else 0
    if not 1 <= precision <= 1000:
        message = f"NUMERIC precision {precision} must be between 1 and 1000"
        raise SqlError("22023", message, place)
    if not -1000 <= scale <= 1000:
        message = f"NUMERIC scale {scale} must be between -1000 and 1000"
        raise SqlError("22023", message, place)
    if precision > NUMERIC_PRECISION_MAX or not 0 <= scale <= precision:
        hint = f"The precision is at most {NUMERIC_PRECISION_MAX}, the scale at most the precision."
        raise not_supported(f"type numeric({precision},{scale})", place, hint=hint)
    return numeric(precision, scale)


@lru_cache(maxsize=_TEXTS_CACHED_MAX)
def check_type_syntax(text: str) -> None:
    """Raises 42601, with the position in the text, if it is not the syntax of a type."""
    try:
        parser.parse_sql(f"{_BEFORE_TYPE}{text}")
    except parser.ParseError as error:
        message = str(error.args[0])
        place = error.args[1] if len(error.args) > 1 else None
        # Without a place the end was not expected.
        position = place - len(_BEFORE_TYPE) if isinstance(place, int) else len(text)
        raise SqlError("42601", message, position + 1) from None


def parse_type_name(text: str, place: int | None) -> Node:
    """The TypeName node of a regtype literal. Raises 42601."""
    try:
        (tree,) = parser.parse_sql(f"{_BEFORE_TYPE}{text}")
    except parser.ParseError:
        raise SqlError("42601", f'invalid type name "{text}"', place) from None
    statement: Node = tree.stmt
    cast: Node = statement.targetList[0].val if len(statement.targetList or ()) == 1 else None
    if not is_a(cast, ast.TypeCast) or statement.fromClause:
        raise SqlError("42601", f'invalid type name "{text}"', place)
    # Its place would be that within the literal.
    cast.typeName.location = -1
    return cast.typeName


def double_quoted(name: str) -> str:
    """A name in double quotes, as in most messages."""
    return f'"{name}"'
