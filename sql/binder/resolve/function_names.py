"""Resolve function names in literals and values of type regproc and regprocedure (regproc.c).

All functions are PostgreSQL's own, so the result depends on no catalog.
"""

from collections.abc import Iterator

from sql.catalog.system_catalogs import PG_CATALOG
from sql.errors import SqlError
from sql.functions.pg_proc import function_only_types, is_ambiguous_function, procedures_by_name
from sql.parser.qualified_names import qualified_name_parts
from sql.parser.type_names import parse_type_name, resolve_type_name
from sql.types.catalog_types import catalog_types
from sql.types.sql_type import SqlType, format_type


def function_oid_by_name(text: str, place: int | None) -> int | None:
    """The oid of the only function of that name; None if there is none.

    Raises 42602 for an invalid name, 42725 if there are several functions.
    """
    *schema, name = qualified_name_parts(text, place)
    if len(schema) > 1:
        shown = ".".join([*schema, name])
        message = f"cross-database references are not implemented: {shown}"
        raise SqlError("0A000", message, place)
    if schema not in ([], [PG_CATALOG]):
        return None
    found = procedures_by_name().get(name)
    if is_ambiguous_function(name):
        raise SqlError("42725", f'more than one function named "{text}"', place)
    return None if found is None else found[0].oid


def function_oid_by_signature(text: str, place: int | None) -> int | None:
    """The oid of the function with that signature, such as `lower(text)`; None if there is none.

    Raises 42602, 22P02, 42601 for an invalid text, 42704 for an undefined type.
    """
    name, inside = _split(text, place)
    *schema, name = qualified_name_parts(name, place)
    wanted = tuple(_type_name(type_name, place) for type_name in _types(inside, place))
    if schema not in ([], [PG_CATALOG]):
        return None
    for found in procedures_by_name().get(name, ()):
        if wanted == tuple(given.type for given in found.inputs):
            return found.oid
    return None


def _split(text: str, place: int | None) -> tuple[str, str]:
    """What stands before the parentheses, and in them (parseNameAndArgTypes)."""
    begin = next((at for at, letter in _unquoted(text) if letter == "("), None)
    if begin is None:
        raise SqlError("22P02", "expected a left parenthesis", place)
    rest = text[begin + 1 :].rstrip()
    if not rest.endswith(")"):
        raise SqlError("22P02", "expected a right parenthesis", place)
    return text[:begin], rest[:-1]


def _unquoted(text: str) -> Iterator[tuple[int, str]]:
    quoted = False
    for at, letter in enumerate(text):
        quoted ^= letter == '"'
        if not quoted:
            yield at, letter


def _types(text: str, place: int | None) -> Iterator[str]:
    if not text.strip():
        return
    begin = depth = 0
    for at, letter in _unquoted(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            yield text[begin:at].strip()
            begin = at + 1
    if not text[begin:].strip():
        raise SqlError("22P02", "expected a type name", place)
    yield text[begin:].strip()


def _type_name(text: str, place: int | None) -> str:
    for names in function_only_types().values():
        if text in names:
            return names[0]
    for known in catalog_types():
        if text in (known, format_type(SqlType(known))):
            return known
    try:
        return resolve_type_name(parse_type_name(text, None)).name
    except SqlError as error:
        raise error.at(place) from None
