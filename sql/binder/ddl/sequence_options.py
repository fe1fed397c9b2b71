"""Options of CREATE and ALTER SEQUENCE and of identity columns, with defaults (init_params)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pglast import ast

from sql.binder.expressions.sequence_calls import without_regclass_casts
from sql.binder.resolve.catalog_lookup import (
    look_up_table,
    named_relation,
    relation_kind,
    relation_name,
    schema_exists,
)
from sql.binder.resolve.reg_literals import reg_literal
from sql.binder.resolve.role_names import current_role, owner_of
from sql.binder.state import Binding
from sql.binder.stored.sequence_values import REGCLASS, constant_sequence, unsupported_kind_detail
from sql.catalog.objects import INT_BOUNDS, SequenceDefinition, Subject, ViewDefinition
from sql.errors import SqlError, not_supported, undefined_schema
from sql.parser.option_values import options_by_name
from sql.parser.syntax import Node, is_a, node_position, offset_to_position, string_values
from sql.parser.type_names import resolve_type_name
from sql.types.text_input import parse_text

_OPTIONS: Final = frozenset(
    {"as", "start", "increment", "minvalue", "maxvalue", "cache", "cycle", "owned_by", "restart"}
)


def _bound(given: Mapping[str, Node], name: str, default: int, none: int) -> int:
    option = given.get(name)
    if option is None:
        return default
    return none if option.arg is None else integer_of(option)


def _check_not_identity(binding: Binding, sequence: SequenceDefinition) -> None:
    table = binding.context.catalog.by_oid(sequence.owner) if sequence.identity else None
    if table is not None:
        detail = f'Sequence "{sequence.name}" is linked to table "{table.name}".'
        message = "cannot change ownership of identity sequence"
        raise SqlError("0A000", message, detail=detail)


def _check_options(options: Iterable[Node], *, of_identity: bool) -> None:
    """What a sequence may have. One that is made for an identity column gets its name elsewhere,
    and its type from the column.
    """
    for option in options:
        name, place = option.defname, offset_to_position(option.location)
        if name == "sequence_name":
            if not of_identity:
                raise SqlError("42601", "invalid sequence option SEQUENCE NAME", place)
        elif name not in _OPTIONS:
            raise not_supported(f"the sequence option {name.upper()}", place)
        elif name == "as" and of_identity:
            raise SqlError("42601", "conflicting or redundant options", place)


def _flag(option: Node) -> bool:
    value = option.arg
    if is_a(value, ast.Boolean):
        return bool(value.boolval)
    return is_a(value, ast.Integer) and bool(value.ival)


def _no_owner(binding: Binding, name: str, schema: str | None) -> SqlError:
    """Nothing is called so, or what is has no columns to own anything."""
    if schema is not None and not schema_exists(binding, schema):
        return undefined_schema(schema)
    for candidate in binding.context.search_path if schema is None else (schema,):
        found = named_relation(binding.context.catalog, candidate, name)
        if isinstance(found, ViewDefinition):
            return not_supported("a sequence that belongs to a column of a view")
        if found is not None:
            message = f'sequence cannot be owned by relation "{name}"'
            return SqlError("42809", message, detail=unsupported_kind_detail(relation_kind(found)))
    shown = name if schema is None else f"{schema}.{name}"
    return SqlError("42P01", f'relation "{shown}" does not exist')


def _number(given: Mapping[str, Node], name: str, default: int) -> int:
    option = given.get(name)
    if option is None:
        return default
    return integer_of(option)


def _owned(binding: Binding, sequence: SequenceDefinition, option: Node) -> SequenceDefinition:
    names = string_values(option.arg)
    if names == ("none",):
        _check_not_identity(binding, sequence)
        return replace(sequence, owner=0, owner_field="")
    if len(names) < 2:
        hint = "Specify OWNED BY table.column or OWNED BY NONE."
        raise SqlError("42601", "invalid OWNED BY option", hint=hint)
    schema, name = relation_name(binding, names[:-1])
    table = look_up_table(binding, name, schema=schema)
    if table is None:
        raise _no_owner(binding, name, schema)
    binding.uses_session = True
    catalog, owner = binding.context.catalog, current_role(binding.context).oid
    if sequence.oid:
        owner = owner_of(catalog, Subject("relation", sequence.oid))
    if owner_of(catalog, Subject("relation", table.oid)) != owner:
        raise SqlError("55000", "sequence must have same owner as table it is linked to")
    if table.schema != sequence.schema:
        raise SqlError("55000", "sequence must be in same schema as table it is linked to")
    column = table.column(names[-1])
    if column is None:
        message = f'column "{names[-1]}" of relation "{table.name}" does not exist'
        raise SqlError("42703", message)
    _check_not_identity(binding, sequence)
    return replace(sequence, owner=table.oid, owner_field=column.field)


def check_restart(made: SequenceDefinition, value: int) -> None:
    """22023 for a restart value outside the sequence's range."""
    for wrong, bound in (
        (value < made.least, f"less than MINVALUE ({made.least})"),
        (value > made.greatest, f"greater than MAXVALUE ({made.greatest})"),
    ):
        if wrong:
            raise SqlError("22023", f"RESTART value ({value}) cannot be {bound}")


def integer_of(option: Node) -> int:
    """The bigint value of an option (defGetInt64)."""
    value = option.arg
    if is_a(value, ast.Integer):
        return int(value.ival or 0)
    # A fraction, or an integer of more than 32 bits.
    read = parse_text("int8", value.fval)
    assert isinstance(read, int), "the text of a bigint is read as one"
    return read


def plain_nextval(binding: Binding, node: Node) -> SequenceDefinition | None:
    """The sequence, if an expression is just nextval() of it."""
    if not is_a(node, ast.FuncCall) or string_values(node.funcname)[-1] != "nextval":
        return None
    if len(node.args or ()) != 1:
        return None
    named = without_regclass_casts(node.args[0])
    if not is_a(named, ast.A_Const) or not is_a(named.val, ast.String):
        return None
    return constant_sequence(
        binding, reg_literal(binding, named.val.sval, REGCLASS, node_position(named))
    )


def restart_value(made: SequenceDefinition, options: Iterable[Node]) -> int | None:
    """The value of RESTART, if given. Raises 22023."""
    for option in options:
        if option.defname != "restart":
            continue
        value = made.start if option.arg is None else integer_of(option)
        check_restart(made, value)
        return value
    return None


def sequence_with_options(
    binding: Binding, bare: SequenceDefinition, options: Sequence[Node], *, created: bool
) -> SequenceDefinition:
    """The definition with these options, and PostgreSQL's defaults for the others (init_params)."""
    given = options_by_name(options)
    _check_options(options, of_identity=created and bare.identity)
    type_ = bare.type
    if "as" in given:
        type_ = resolve_type_name(given["as"].arg).name
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
    restart = restart_value(made, options) if created else None
    if restart not in (None, made.start):
        made = replace(made, first=restart)
    return _owned(binding, made, given["owned_by"]) if "owned_by" in given else made
