"""Look up names that are values of the reg types: to_regclass(), text::regclass .. (regproc.c).

Each function gets a list of all names, a row of `meridian_name_lists`
(`coordinator/pgcatalog/names.py`): a JSON object with `names`, whose keys are written as
quote_ident() writes them, and further fields that a kind of object needs.
Names in the statement's text are looked up when it is bound (`sql/binder/resolve/reg_literals.py`).
"""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from compute.reference.registry import implements
from sql.binder.resolve.function_names import function_oid_by_name, function_oid_by_signature
from sql.errors import SqlError, not_supported, undefined_schema
from sql.parser.qualified_names import fold_identifier, qualified_name_parts, relation_name_parts
from sql.parser.type_names import check_type_syntax
from sql.types.sql_type import TYPE_OIDS, quoted_name

_OID_MAX: Final = (1 << 32) - 1
_PUBLIC: Final = "public"
_MISSING: Final = {
    "class": ("42P01", 'relation "{}" does not exist'),
    "type": ("42704", 'type "{}" does not exist'),
    "role": ("42704", 'role "{}" does not exist'),
    "proc": ("42883", 'function "{}" does not exist'),
    "procedure": ("42883", 'function "{}" does not exist'),
    "grantee": ("42704", 'role "{}" does not exist'),
}


@implements("meridian_found(text,text,text)")
def oid_or_null(kind: str, text: str, names: str) -> int | None:
    """to_regclass() and the like: NULL if there is no such object, or the text is no name."""
    number = _number(text)
    if number is not None:
        return number
    try:
        return _looked_up(kind, text, _known(names))
    except SqlError as error:
        if error.sqlstate in ("42602", "3F000", "42725") or (
            kind == "procedure" and error.sqlstate != "0A000"
        ):
            return None
        raise


@implements("meridian_oid(text,text,text)")
def oid_or_error(kind: str, text: str, names: str) -> int:
    """The same for a cast, which raises an error. A relation has no name that is a number
    (text_regclass).
    """
    number = None if kind == "class" else _number(text)
    if number is not None:
        return number
    known = _known(names)
    if kind == "type" and not text.strip():
        raise SqlError("42601", f'invalid type name "{text}"')
    answer = _looked_up(kind, text, known)
    return _missing(kind, text) if answer is None else answer


@implements("meridian_plain(text,text,text)")
def oid_of_exact_name(kind: str, name: str, names: str) -> int:
    """The oid of exactly this name, as privilege functions take it: of a `role`, a `grantee` (which
    may be PUBLIC) or a `namespace`.
    """
    if kind == "grantee" and name == _PUBLIC:
        return 0
    answer: int | None = _known(names)["names"].get(quoted_name(name))
    return _missing(kind, name) if answer is None else answer


def _missing(kind: str, text: str) -> int:
    if kind == "namespace":
        raise undefined_schema(text, None)
    if kind == "type" and '"' in text:
        text = ".".join(qualified_name_parts(text, None))
    sqlstate, message = _MISSING[kind]
    raise SqlError(sqlstate, message.format(text))


@lru_cache(maxsize=16)
def _known(names: str) -> dict[str, Any]:
    known: dict[str, Any] = json.loads(names)
    return known


def _number(text: str) -> int | None:
    if text == "-":
        return 0
    if not (text.isdecimal() and text.isascii()):
        return None
    if int(text) > _OID_MAX:
        raise SqlError("22003", f'value "{text}" is out of range for type oid')
    return int(text)


def _looked_up(kind: str, text: str, known: dict[str, Any]) -> int | None:
    if kind == "type":
        return _type(text, known)
    if kind == "proc":
        return function_oid_by_name(text, None)
    if kind == "procedure":
        return function_oid_by_signature(text, None)
    parts = _relation(text, known) if kind == "class" else qualified_name_parts(text, None)
    if kind != "class" and len(parts) != 1:
        raise SqlError("42602", "invalid name syntax")
    answer: int | None = known["names"].get(".".join(map(quoted_name, parts)))
    return answer


def _relation(text: str, known: dict[str, Any]) -> list[str]:
    """Its schema and name; raises what RangeVarGetRelid does."""
    parts = relation_name_parts(text, known["database"], None)
    if len(parts) == 2:
        parts[0] = known["aliases"].get(parts[0], parts[0])
        if parts[0] not in known["schemas"]:
            raise undefined_schema(parts[0], None)
    return parts


def _type(text: str, known: dict[str, Any]) -> int | None:
    if "(" in text:
        raise not_supported("a type with modifiers, as a value,", None)
    name = re.sub(r"\s+", " ", text.strip())
    name = name if '"' in name else fold_identifier(name)
    for key in _type_keys(name):
        answer: int | None = known["names"].get(key)
        if answer is not None:
            return answer
    if name in known["relations"]:
        raise not_supported("a table as a type", None)
    if text.strip():
        check_type_syntax(text)
    return None


def _type_keys(name: str) -> Iterator[str]:
    """What a name of a type may be listed under: as format_type() writes it, or as typname.

    A name in quotes is a typname, also if it is a word of the grammar, and `_x` is an array's.
    """
    plain, brackets, _ = name.partition("[")
    suffix = "[]" if brackets else ""
    if '"' not in name and not name.startswith("pg_catalog."):
        yield plain.rstrip() + suffix
        before, dot, last = plain.rstrip().rpartition(".")
        if last.startswith("_") and not suffix:
            yield f"{before}{dot}{last[1:]}[]"
        return
    try:
        parts = qualified_name_parts(plain, None)
    except SqlError:
        return
    parts = parts[1:] if parts[0] == "pg_catalog" else parts
    schema, typname = [*map(quoted_name, parts[:-1])], parts[-1]
    yield ".".join([*schema, quoted_name(typname)]) + suffix
    if not schema and typname in TYPE_OIDS:
        yield typname + suffix
    if typname.startswith("_") and not suffix:
        yield ".".join([*schema, quoted_name(typname[1:])]) + "[]"
