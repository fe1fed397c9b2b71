"""Rewrite time literals as the values they have under the current settings and clock.

    'tomorrow 10:00' in a view  ─ CREATE, in Berlin ─▶ CAST('2025-06-02 08:00:00+00' AS
                                                       timestamp with time zone)
    the same in a statement     ─ PREPARE, in Berlin ─▶ '2025-06-02 08:00:00+00'

PostgreSQL parses such a literal when it analyses the statement, by the settings (TimeZone,
DateStyle, IntervalStyle) and the clock of that moment, and stores the value. Meridian stores text,
so the literals in it are rewritten.

INVARIANTS
  R1  a rewritten literal means the same under all settings and at any time: an ISO text, with its
      zone if the type has one.
  R2  literals of a stored text have explicit types, so that they keep them whatever becomes of
      neighbouring columns. An output column keeps the name that it had.

Not here: texts that are converted to times when the statement runs (`'..'::text::timestamptz`).
Their value depends on the running session, as in PostgreSQL.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Final

from pglast import ast

from sql.binder.state import Binding
from sql.parser.parse import Statement
from sql.parser.syntax import Node, column_name, is_a, tree_nodes, unsupported_at
from sql.plan.nodes import Const
from sql.statements.literals import ResolvedLiteral, ResolvedLiterals
from sql.types.sql_type import UNKNOWN
from sql.types.text_input import CLOCK_DEPENDENT_TYPES
from sql.types.text_output import format_text

_READ: Final = CLOCK_DEPENDENT_TYPES | {"interval"}
_NOT_READ: Final = Const(None, UNKNOWN)
_OWN_NAMES: Final = frozenset({"date"})
"""Types that PostgreSQL's grammar has no words for."""


def record_literal_value(binding: "Binding", literal: Const, value: Const) -> None:
    """Record the value of a literal of the statement's own text, if another session may read it
    otherwise.
    """
    if value.type.name.removeprefix("_") not in _READ or binding.of_kept_text:
        return
    _, node = binding.literals.get(id(literal), (None, None))
    if node is not None:
        binding.read.append((node, value))


def rewrite_literals(read: Sequence[ResolvedLiteral], written: Node, tree: Node) -> bool:
    """Rewrite the literals of a tree for storing (R1, R2); returns whether there were any.

    `written`: the tree that was bound, of which `tree` is a copy.
    """
    if not read:
        return False
    found: dict[int, Const] = {}
    values = _values(read)
    for part, copy in zip(tree_nodes(written), tree_nodes(tree), strict=True):
        value = values.get(id(part), _NOT_READ)
        if value is None:
            raise unsupported_at("keeping a literal that is of two types", part)
        if value is not _NOT_READ:
            found[id(copy)] = value
    if found:
        _write_types(tree, found)
    return bool(found)


def _values(read: Sequence[ResolvedLiteral]) -> Mapping[int, Const | None]:
    """By the identity of the node; None for a literal of two types, which no one text says."""
    values: dict[int, Const | None] = {}
    for node, value in read:
        known = values.setdefault(id(node), value)
        if known is not None and known.type.name != value.type.name:
            values[id(node)] = None
    return values


def _write_types(tree: Node, found: Mapping[int, Const]) -> None:
    for part in tree_nodes(tree):
        value = found.get(id(part))
        if value is not None:
            part.val = ast.String(sval=format_text(value.value, value.type))
    for part in tree_nodes(tree):
        if is_a(part, ast.TypeCast) and id(part.arg) in found:
            continue
        for name in part:
            old = getattr(part, name)
            new = _typed(old, found)
            if new is not old:
                if is_a(part, ast.ResTarget) and part.name is None:
                    part.name = column_name(old)
                setattr(part, name, new)


def _typed(child: Node, found: Mapping[int, Const]) -> Node:
    """A child of a node, or a list of such, with casts around its literals."""
    if isinstance(child, tuple):
        made = tuple([_typed(item, found) for item in child])
        return made if any(new is not old for new, old in zip(made, child, strict=True)) else child
    value = found.get(id(child)) if is_a(child, ast.A_Const) else None
    return child if value is None else ast.TypeCast(arg=child, typeName=_type_name(value))


def _type_name(value: Const) -> Node:
    name = value.type.name.removeprefix("_")
    words = (name,) if name in _OWN_NAMES else ("pg_catalog", name)
    bounds = None if name == value.type.name else (ast.Integer(ival=-1),)
    names = tuple([ast.String(sval=word) for word in words])
    return ast.TypeName(names=names, typemod=-1, arrayBounds=bounds)


def with_read_literals(statement: Statement, read: ResolvedLiterals) -> Statement:
    """The statement with its literals at their recorded values (R1), except literals used as two
    types.
    """
    values = _values(read.literals)
    node, as_of = deepcopy((statement.node, statement.as_of))
    texts: list[str] = []
    for part, copy in zip(tree_nodes(read.trees), tree_nodes((node, as_of)), strict=True):
        value = values.get(id(part))
        if value is not None:
            shown = format_text(value.value, value.type)
            copy.val = ast.String(sval=shown)
            texts.append(shown)
    # The text says what was read, for the plan cache; places in front of it stay what they are.
    text = f"{statement.text}\n-- read as {texts}"
    return replace(statement, text=text, node=node, as_of=as_of)
