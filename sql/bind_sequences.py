"""Sequences: their definitions, and nextval() and its kin in expressions.

A call of nextval(), currval() or lastval() is bound to a parameter of its own, after those of the
client: the session finds its value before the statement runs (`Prepared.supplied`). That is what
PostgreSQL does where the call is evaluated once; in a query over rows it would be evaluated for
every row, and is refused. A column whose default is nextval() gets its values when rows are
written, one for each (`Prepared.filled`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pglast import ast

from sql.binding import SUPPLIED_BASE, Binding, Supplied
from sql.catalog import LookUp
from sql.catalog_objects import INT_BOUNDS, SequenceDefinition
from sql.errors import SqlError, not_supported
from sql.look_up import look_up, look_up_sequence
from sql.names import type_of
from sql.plan import Expr, Param
from sql.scope import Scope
from sql.syntax import Node, at, is_a, position, strings
from sql.types import INT8

CALLS: Final = frozenset({"nextval", "currval", "lastval", "setval"})

_PART: Final = re.compile(
    r'\s*(?:"((?:[^"]|"")+)"|([A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*))\s*'
)


# --- calls -------------------------------------------------------------------------------------


def sequence_call(binding: Binding, scope: Scope, node: Node) -> Expr:
    """nextval('s'), currval('s'), lastval()."""
    name = strings(node.funcname)[-1]
    if name == "setval":
        raise not_supported("setval() beside anything else", at(node.location))
    if scope.items:
        raise not_supported(f"{name}() for each row of a query", at(node.location))
    args: Sequence[Node] = node.args or ()
    wanted = 0 if name == "lastval" else 1
    if len(args) != wanted:
        raise not_supported(f"{name}() with {len(args)} arguments", at(node.location))
    found = named_sequence(binding, args[0], name) if args else None
    if name == "nextval" and binding.taken:
        return binding.taken.pop(0)
    return supplied(binding, name, found)


def supplied(binding: Binding, name: str, sequence: SequenceDefinition | None) -> Param:
    """A value that the session finds before the statement runs."""
    binding.supplied.append(Supplied(name, sequence))
    return Param(SUPPLIED_BASE + len(binding.supplied), INT8)


def named_sequence(binding: Binding, node: Node, function: str) -> SequenceDefinition:
    """The sequence that a constant names, as a cast to regclass would find it, or
    pg_get_serial_sequence() of constants.
    """
    while is_a(node, ast.TypeCast):
        node = node.arg
    if is_a(node, ast.FuncCall) and strings(node.funcname)[-1] == "pg_get_serial_sequence":
        return _serial_sequence(binding, node, function)
    if not is_a(node, ast.A_Const) or not is_a(node.val, ast.String):
        raise not_supported(f"{function}() of anything but a name", position(node))
    text = node.val.sval
    if text.isdecimal() and text.isascii():
        return _numbered_sequence(binding, int(text), position(node))
    names = _identifiers(text)
    schema = names[-2] if len(names) > 1 else None
    found = look_up_sequence(binding, names[-1], schema=schema)
    if found is None:
        shown = ".".join(names)
        raise SqlError("42P01", f'relation "{shown}" does not exist', position(node))
    return found


def _numbered_sequence(binding: Binding, oid: int, place: int | None) -> SequenceDefinition:
    """The sequence of this oid, as regclass has it."""
    found = binding.context.catalog.sequence_by_oid(oid)
    if found is None:
        raise SqlError("42P01", f"could not open relation with OID {oid}", place)
    binding.look_ups.add(LookUp(found.schema, found.name, found.oid))
    return found


def _serial_sequence(binding: Binding, node: Node, function: str) -> SequenceDefinition:
    """The sequence that belongs to a column."""
    args: Sequence[Node] = node.args or ()
    if len(args) != 2 or not all(is_a(a, ast.A_Const) and is_a(a.val, ast.String) for a in args):
        raise not_supported(f"{function}() of anything but a name", position(node))
    names = _identifiers(args[0].val.sval)
    table = look_up(binding, names[-1], schema=names[-2] if len(names) > 1 else None)
    if table is None:
        raise SqlError("42P01", f'relation "{".".join(names)}" does not exist')
    wanted = args[1].val.sval
    column = table.column(wanted)
    if column is None:
        message = f'column "{wanted}" of relation "{table.name}" does not exist'
        raise SqlError("42703", message)
    for owned in binding.context.catalog.sequences():
        if owned.owner == table.oid and owned.owner_field == column.field:
            found = look_up_sequence(binding, owned.name, schema=owned.schema)
            assert found is not None, "a sequence of the catalog is found by its name"
            return found
    raise not_supported(f"{function}() of a column without a sequence", position(node))


def _identifiers(text: str) -> list[str]:
    """The parts of a qualified name in text, folded as the parser would."""
    names: list[str] = []
    place = 0
    while match := _PART.match(text, place):
        quoted, plain = match.groups()
        names.append(quoted.replace('""', '"') if quoted is not None else plain.lower())
        place = match.end()
        if place == len(text):
            return names
        if text[place] != ".":
            break
        place += 1
    raise SqlError("42602", "invalid name syntax")


def plain_nextval(binding: Binding, node: Node) -> SequenceDefinition | None:
    """The sequence, if an expression is nextval() of it and nothing else."""
    if not is_a(node, ast.FuncCall) or strings(node.funcname)[-1] != "nextval":
        return None
    if len(node.args or ()) != 1:
        return None
    return named_sequence(binding, node.args[0], "nextval")


# --- definitions -------------------------------------------------------------------------------


def sequence_of(
    binding: Binding, bare: SequenceDefinition, options: Sequence[Node], *, created: bool
) -> SequenceDefinition:
    """A definition with options, and PostgreSQL's defaults for the others (init_params)."""
    given: dict[str, Node] = {}
    for option in options:
        if option.defname in given:
            raise SqlError("42601", "conflicting or redundant options", at(option.location))
        given[option.defname] = option
    known = {"as", "start", "increment", "minvalue", "maxvalue", "cache", "cycle", "owned_by",
             "restart", "sequence_name"}  # fmt: skip
    for name, option in given.items():
        if name not in known:
            raise not_supported(f"the sequence option {name.upper()}", at(option.location))
    type_ = bare.type
    if "as" in given:
        type_ = type_of(given["as"].arg).name
        if type_ not in INT_BOUNDS:
            raise SqlError("22023", "sequence type must be smallint, integer, or bigint")
    increment = _number(given, "increment", bare.increment)
    if increment == 0:
        raise SqlError("22023", "INCREMENT must not be zero")
    low, high = INT_BOUNDS[type_]
    up = increment > 0
    # Another type moves the bounds that were the ends of the one before, and no others.
    least, greatest = bare.least, bare.greatest
    if created:
        least, greatest = (1, high) if up else (low, -1)
    elif type_ != bare.type:
        ends = INT_BOUNDS[bare.type]
        least = low if least == ends[0] else least
        greatest = high if greatest == ends[1] else greatest
    least = _bound(given, "minvalue", least, 1 if up else low)
    greatest = _bound(given, "maxvalue", greatest, high if up else -1)
    for word, value in (("MAXVALUE", greatest), ("MINVALUE", least)):
        if not low <= value <= high:
            shown = {"int2": "smallint", "int4": "integer", "int8": "bigint"}[type_]
            message = f"{word} ({value}) is out of range for sequence data type {shown}"
            raise SqlError("22023", message)
    if least >= greatest:
        message = f"MINVALUE ({least}) must be less than MAXVALUE ({greatest})"
        raise SqlError("22023", message)
    start = _number(given, "start", (least if up else greatest) if created else bare.start)
    if start < least:
        message = f"START value ({start}) cannot be less than MINVALUE ({least})"
        raise SqlError("22023", message)
    if start > greatest:
        message = f"START value ({start}) cannot be greater than MAXVALUE ({greatest})"
        raise SqlError("22023", message)
    cache = _number(given, "cache", bare.cache)
    if cache <= 0:
        raise SqlError("22023", f"CACHE ({cache}) must be greater than zero")
    cycle = bool(_flag(given["cycle"])) if "cycle" in given else bare.cycle
    made = replace(
        bare, type=type_, start=start, increment=increment, least=least, greatest=greatest,
        cache=cache, cycle=cycle,
    )  # fmt: skip
    return _owned(binding, made, given["owned_by"]) if "owned_by" in given else made


def _number(given: Mapping[str, Node], name: str, default: int) -> int:
    option = given.get(name)
    if option is None:
        return default
    return integer_of(option)


def integer_of(option: Node) -> int:
    """The integer of an option."""
    value = option.arg
    if is_a(value, ast.Integer):
        return int(value.ival or 0)
    return int(value.fval)


def _bound(given: Mapping[str, Node], name: str, default: int, none: int) -> int:
    option = given.get(name)
    if option is None:
        return default
    return none if option.arg is None else integer_of(option)


def _flag(option: Node) -> bool:
    value = option.arg
    return bool(getattr(value, "boolval", False) or getattr(value, "ival", 0))


def _owned(binding: Binding, sequence: SequenceDefinition, option: Node) -> SequenceDefinition:
    names = strings(option.arg)
    if names == ("none",):
        return replace(sequence, owner=0, owner_field="")
    if len(names) < 2:
        hint = "Specify OWNED BY table.column or OWNED BY NONE."
        raise SqlError("42601", "invalid OWNED BY option", hint=hint)
    schema = names[-3] if len(names) > 2 else None
    table = look_up(binding, names[-2], schema=schema)
    if table is None:
        raise SqlError("42P01", f'relation "{names[-2]}" does not exist')
    column = table.column(names[-1])
    if column is None:
        message = f'column "{names[-1]}" of relation "{table.name}" does not exist'
        raise SqlError("42703", message)
    if table.schema != sequence.schema:
        raise SqlError("55000", "sequence must be in same schema as table it is linked to")
    return replace(sequence, owner=table.oid, owner_field=column.field)
