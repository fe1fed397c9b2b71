"""DROP FUNCTION, TRIGGER and other kinds that never exist here: PostgreSQL's errors and notices.

Migration scripts and `pg_dump --clean --if-exists` drop functions and triggers that may exist.
Dropping PostgreSQL's own functions, languages and collations is refused.
"""

from collections.abc import Callable, Sequence
from typing import Final

from pglast.enums import ObjectType

from sql.binder.resolve.catalog_lookup import (
    look_up_table,
    missing_object_notice,
    named_relation,
    relation_kind,
    relation_name,
    schema_exists,
    wrong_kind,
)
from sql.binder.resolve.type_names import declared_type
from sql.binder.state import Binding
from sql.catalog.system_catalogs import SYSTEM_SCHEMAS
from sql.errors import SqlError, not_supported
from sql.functions.table import functions
from sql.parser.statement_names import object_type_name
from sql.parser.syntax import Node, string_values
from sql.statements.ddl import ChangeObjects
from sql.types.sql_type import format_type

_O: Final = ObjectType

_PLAIN: Final = {
    _O.OBJECT_LANGUAGE: "language",
    _O.OBJECT_EVENT_TRIGGER: "event trigger",
    _O.OBJECT_PUBLICATION: "publication",
    _O.OBJECT_FDW: "foreign-data wrapper",
    _O.OBJECT_FOREIGN_SERVER: "server",
    _O.OBJECT_ACCESS_METHOD: "access method",
}
"""Of no schema."""

_IN_SCHEMAS: Final = {_O.OBJECT_COLLATION: "collation"}

_RELATIONS: Final = {_O.OBJECT_FOREIGN_TABLE: "foreign table"}

_OF_RELATIONS: Final = {
    _O.OBJECT_TRIGGER: "trigger",
    _O.OBJECT_RULE: "rule",
    _O.OBJECT_POLICY: "policy",
}

_ROUTINES: Final = {
    _O.OBJECT_FUNCTION: "function",
    _O.OBJECT_PROCEDURE: "procedure",
    _O.OBJECT_ROUTINE: "routine",
}

_BROUGHT: Final[dict[ObjectType, frozenset[str]]] = {
    _O.OBJECT_LANGUAGE: frozenset({"internal", "c", "sql", "plpgsql"}),
    _O.OBJECT_COLLATION: frozenset(
        {"default", "C", "POSIX", "ucs_basic", "unicode", "pg_c_utf8", "pg_unicode_fast"}
    ),
    _O.OBJECT_ACCESS_METHOD: frozenset({"heap", "btree", "hash", "gist", "gin", "spgist", "brin"}),
    _O.OBJECT_RULE: frozenset({"_RETURN"}),
}
"""Names that things of these kinds have in every PostgreSQL."""


def drop_absent(binding: Binding, node: Node) -> ChangeObjects:
    """DROP [IF EXISTS]. Raises 42704, 42883, 42P01, 3F000; 0A000 for other kinds."""
    kind = node.removeType
    what = object_type_name(kind)
    told = next((told for kinds, told in _KINDS if kind in kinds), None)
    if told is None:
        raise not_supported(f"DROP {what}", None)
    missing = [told(binding, node, names) for names in node.objects]
    return ChangeObjects(f"DROP {what}", notices=tuple(("00000", one, None) for one in missing))


def _plain(binding: Binding, node: Node, name: Node) -> str:
    del binding
    return _absent(node, f'{_PLAIN[node.removeType]} "{name.sval}"', name.sval)


def _in_schema(binding: Binding, node: Node, names: Sequence[Node]) -> str:
    schema, name = relation_name(binding, string_values(names))
    if (gone := _without_schema(binding, node, schema)) is not None:
        return gone
    shown = ".".join(string_values(names))
    encoded = ' for encoding "UTF8"' if node.removeType == _O.OBJECT_COLLATION else ""
    encoded = "" if node.missing_ok else encoded
    return _absent(node, f'{_IN_SCHEMAS[node.removeType]} "{shown}"{encoded}', name)


def _relation(binding: Binding, node: Node, names: Sequence[Node]) -> str:
    kind = _RELATIONS[node.removeType]
    schema, name = relation_name(binding, string_values(names))
    path = binding.context.search_path if schema is None else (schema,)
    for place in path:
        found = named_relation(binding.context.catalog, place, name)
        if found is not None:
            raise wrong_kind(name, kind, relation_kind(found))
    return missing_object_notice(binding, kind, schema, name, missing_ok=node.missing_ok)


def _of_relation(binding: Binding, node: Node, names: Sequence[Node]) -> str:
    *qualified, name = string_values(names)
    schema, relation = relation_name(binding, qualified)
    if (gone := _without_schema(binding, node, schema)) is not None:
        return gone
    kind = _OF_RELATIONS[node.removeType]
    if look_up_table(binding, relation, schema=schema) is None:
        shown = ".".join(qualified)
        if not node.missing_ok:
            raise SqlError("42P01", f'relation "{shown}" does not exist')
        return f'relation "{shown}" does not exist, skipping'
    ruled = node.missing_ok or node.removeType == _O.OBJECT_RULE
    word = "relation" if ruled else "table"
    return _absent(node, f'{kind} "{name}" for {word} "{relation}"', name)


def _routine(binding: Binding, node: Node, routine: Node) -> str:
    kind, names = _ROUTINES[node.removeType], string_values(routine.objname)
    schema, name = relation_name(binding, names)
    if (gone := _without_schema(binding, node, schema)) is not None:
        return gone
    if functions(name):
        raise not_supported(f"DROP {kind.upper()} of a built-in function", None)
    shown, types = ".".join(names), routine.objargs or ()
    if routine.args_unspecified and not node.missing_ok:
        raise SqlError("42883", f'could not find a {kind} named "{shown}"')
    try:
        named = ", ".join(format_type(declared_type(binding, type_)[0]) for type_ in types)
    except SqlError as error:
        if not node.missing_ok:
            error.position = None
            raise
        return f"{error.message}, skipping"
    if node.missing_ok:
        written = ",".join(".".join(string_values(type_.names)) for type_ in types)
        return f"{kind} {shown}({written}) does not exist, skipping"
    raise SqlError("42883", f"{kind} {shown}({named}) does not exist")


def _without_schema(binding: Binding, node: Node, schema: str | None) -> str | None:
    """What is said if the schema is missing."""
    if schema is None or schema in SYSTEM_SCHEMAS or schema_exists(binding, schema):
        return None
    message = f'schema "{schema}" does not exist'
    if not node.missing_ok:
        raise SqlError("3F000", message)
    return f"{message}, skipping"


def _absent(node: Node, shown: str, name: str) -> str:
    if name in _BROUGHT.get(node.removeType, ()):
        raise not_supported(f"DROP of {shown}", None)
    if not node.missing_ok:
        raise SqlError("42704", f"{shown} does not exist")
    return f"{shown} does not exist, skipping"


_KINDS: Final[tuple[tuple[dict[ObjectType, str], Callable[..., str]], ...]] = (
    (_PLAIN, _plain),
    (_IN_SCHEMAS, _in_schema),
    (_RELATIONS, _relation),
    (_OF_RELATIONS, _of_relation),
    (_ROUTINES, _routine),
)
