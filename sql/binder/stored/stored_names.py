"""Canonical names in stored SQL text: types with their schemas, relations by their oids.

    nextval('s')   's'::regclass  ─▶ CAST('16423' AS regclass), as PostgreSQL stores it
    displayed: 'x' || nextval('s'::regclass), with the relation's current name

INVARIANTS
  N1  a relation that a constant names is stored by its oid. Renaming it or moving it to another
      schema changes no text, and `named_relations` finds every dependency on a relation. A type
      that a constant names ('e'::regtype) is stored with its schema, like the type of a cast.

Not here: names that are resolved when the expression is evaluated, as in `nextval('s'::text)`;
PostgreSQL records no dependency for them either. Columns are stored by name and renamed in the text
(`table_changes.py`).
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from pglast import ast
from pglast.stream import RawStream

from sql.binder.resolve.reg_literals import reg_literal
from sql.binder.resolve.setting_literals import rewrite_literals
from sql.binder.resolve.type_names import find_user_type, with_array_bounds
from sql.binder.state import Binding
from sql.catalog.system_catalogs import SYSTEM_SCHEMAS
from sql.errors import SqlError, not_supported
from sql.parser.syntax import Node, copy_node, is_a, string_values, tree_nodes
from sql.parser.type_names import parse_type_name
from sql.types.sql_type import SqlType, quoted_name

_CALLS: Final = frozenset({"nextval", "currval", "setval"})
_REGCLASS: Final = SqlType("regclass")

# A literal or a quoted name may hold anything; what is looked for stands outside of them.
_KEPT: Final = re.compile(
    r"""CAST\('(\d+)' AS regclass\)|'(?:[^']|'')*'|"(?:[^"]|"")*\"""", re.DOTALL
)


def next_value_text(sequence: int) -> str:
    """DEFAULT nextval() of a sequence, as stored text."""
    return f"nextval(CAST('{sequence}' AS regclass))"


def canonical_text(binding: Binding, text: str, written: Node, parse: Callable[[str], Node]) -> str:
    """The text to store: its names (N1) and time literals mean the same to every later reader.

    `written`: its tree, as it was bound. `parse` makes a tree that may be modified.
    """
    tree = parse(text)
    found = rewrite_literals(binding.read, written, tree)
    named = [part for part in tree_nodes(tree) if _name(binding, part)]
    return str(RawStream()(tree)) if found or named else text


def _name(binding: Binding, part: Node) -> bool:
    """Say in a node what it names; whether there was something to say."""
    if is_a(part, ast.TypeName):
        called = part.names
        spelled = with_array_bounds(binding, part)
        part.names, part.arrayBounds = spelled.names, spelled.arrayBounds
        type_ = find_user_type(binding, part) if len(called) == 1 else None
        if type_ is None:
            return part.names is not called
        part.names = (ast.String(sval=type_.schema), ast.String(sval=type_.name))
        return True
    if is_a(part, ast.TypeCast) and is_regclass(part.typeName):
        return _by_oid(binding, part)
    if regtype_name(part) is not None:
        return _by_schema(binding, part)
    if is_a(part, ast.TypeCast) and _constant(part, "regrole") is not None:
        raise SqlError("0A000", "constant of the type regrole cannot be used here")
    if is_a(part, ast.TypeCast) and _constant(part, "regnamespace") not in (None, *SYSTEM_SCHEMAS):
        # Nothing would say that a schema rests on it, nor follow its new name.
        raise not_supported("a definition that names a schema by a constant")
    if is_a(part, ast.FuncCall) and part.args and string_values(part.funcname)[-1] in _CALLS:
        name, *others = part.args
        if is_a(name, ast.A_Const) and is_a(name.val, ast.String):
            cast = ast.TypeCast(arg=name, typeName=_type_name())
            part.args = (cast, *others)
            return _by_oid(binding, cast)
    return False


def _type_name() -> Node:
    return ast.TypeName(names=(ast.String(sval="regclass"),), typemod=-1)


def is_regclass(name: Node) -> bool:
    """Whether a type's name is that of regclass."""
    return _is_called(name, "regclass")


def _is_called(name: Node, wanted: str) -> bool:
    return string_values(name.names) in ((wanted,), ("pg_catalog", wanted)) and not name.arrayBounds


def regtype_name(part: Node) -> Node | None:
    """The type name that a regtype constant holds, if the node is such a constant."""
    text = _constant(part, "regtype") if is_a(part, ast.TypeCast) else None
    return None if text is None or text == "-" or text.isdecimal() else parse_type_name(text, None)


def _constant(cast: Node, wanted: str) -> str | None:
    """The text that is cast to a type that is called so."""
    constant = cast.arg
    if not (_is_called(cast.typeName, wanted) and is_a(constant, ast.A_Const)):
        return None
    return constant.val.sval if is_a(constant.val, ast.String) else None


def _by_schema(binding: Binding, cast: Node) -> bool:
    """The constant of a cast to regtype with its schema, if users have made the type."""
    name = regtype_name(cast)
    if name is None:
        return False
    name = with_array_bounds(binding, name)
    found = find_user_type(binding, name)
    if found is None:
        return False
    shown = f"{quoted_name(found.schema)}.{quoted_name(found.name)}"
    text = f"{shown}[]" if name.arrayBounds else shown
    cast.arg = ast.A_Const(val=ast.String(sval=text))
    return True


def _by_oid(binding: Binding, cast: Node) -> bool:
    """The constant of a cast as an oid, if a relation that may get another name is called so; the
    number of any other is written so that nothing takes it for one of those.
    """
    constant = cast.arg
    if not is_a(constant, ast.A_Const) or not is_a(constant.val, ast.String):
        return False
    oid = reg_literal(binding, constant.val.sval, _REGCLASS, None).value
    catalog = binding.context.catalog
    is_users = catalog.by_oid(int(str(oid))) is not None or any(
        thing.oid == oid for thing in catalog.objects.values()
    )
    if is_users:
        cast.arg = ast.A_Const(val=ast.String(sval=str(oid)))
        cast.typeName = _type_name()
        return True
    if constant.val.sval.isdecimal():
        names = (ast.String(sval="pg_catalog"), ast.String(sval="regclass"))
        cast.typeName = copy_node(_type_name(), names=names)
        return True
    return False


@lru_cache(maxsize=2_000)
def named_relations(text: str) -> Sequence[int]:
    """The oids of the relations that a stored text names (N1), each once."""
    return tuple(dict.fromkeys(int(found[1]) for found in _KEPT.finditer(text) if found[1]))


def with_current_names(text: str, name_of: Callable[[int], str | None]) -> str:
    """A stored text with the current names of its relations."""

    def named(found: "re.Match[str]") -> str:
        name = name_of(int(found[1])) if found[1] else None
        if name is None:
            return found[0]
        escaped = name.replace("'", "''")
        return f"'{escaped}'::regclass"

    return _KEPT.sub(named, text)
