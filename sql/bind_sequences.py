"""Sequences: their definitions, and nextval() and its kin in expressions.

A call of nextval() and its kin in a target list of the statement itself, or in SET of UPDATE, is
made for each row (`row_calls.py`). Elsewhere it is bound to a parameter of its own, after those of
the client: the session finds its value before the statement runs (`Prepared.supplied`). That is
what PostgreSQL does where the call is evaluated once, as in VALUES; in a query over rows it is
refused. A column whose default is nextval() gets its values when rows are written, one for each
(`Prepared.filled`).

The relation is an oid where a constant names it, and is found by its text where that is computed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from pglast import ast

from sql.bind_calls import find_function, type_called
from sql.binding import SUPPLIED_BASE, Binding, Supplied
from sql.catalog import Catalog, LookUp
from sql.catalog_objects import INT_BOUNDS, SequenceDefinition, Subject, UserType, ViewDefinition
from sql.catalog_oids import index_oid
from sql.coerce import implicit
from sql.errors import SqlError, not_supported, undefined_schema
from sql.kept_names import is_regclass
from sql.look_up import kind_of, look_up, named_relation, relation_name, schema_exists
from sql.names import type_of
from sql.option_values import options_by_name
from sql.plan import Call, Const, Expr, Param
from sql.registered import registered
from sql.role_names import current_role, owner_of
from sql.scope import Scope
from sql.syntax import Node, at, is_a, position, strings
from sql.text_input import parse_text
from sql.traverse import column_ids, has_subquery
from sql.types import INT8, TEXT, SqlType

CALLS: Final = frozenset({"nextval", "currval", "lastval", "setval"})
REGCLASS: Final = SqlType("regclass")


# --- calls -------------------------------------------------------------------------------------


def sequence_call(binding: Binding, scope: Scope, node: Node) -> Expr:
    """nextval(), currval(), lastval(), setval()."""
    name = strings(node.funcname)[-1]
    nodes: Sequence[Node] = [
        _uncast(arg) if not n else arg for n, arg in enumerate(node.args or ())
    ]
    exprs = [
        binding.parameter(arg.number, arg.location)
        if not place and is_a(arg, ast.ParamRef)
        else binding.expression(scope, arg)
        for place, arg in enumerate(nodes)
    ]
    choice = find_function(name, exprs, name, node.location)
    args = tuple(
        [
            implicit(binding, expr, arg, type_called(wanted))
            for expr, arg, wanted in zip(exprs[1:], nodes[1:], choice.args[1:], strict=True)
        ]
    )
    sequence: SequenceDefinition | None = None
    if exprs:
        args = (_relation(binding, exprs[0], nodes[0]), *args)
        sequence = constant_sequence(binding, args[0])
    if name == "nextval" and binding.taken:
        return binding.taken.pop(0)
    if scope.acts and not (scope.in_aggregate or scope.window_part):
        binding.acts = True
        return Call(choice.function, args, INT8, binding.new_id())
    if name == "setval":
        raise not_supported("setval() anywhere but in the list of a SELECT", at(node.location))
    if scope.items:
        raise not_supported(f"{name}() for each row of a query", at(node.location))
    if any(next(column_ids(arg), None) is not None or has_subquery(arg) for arg in args):
        raise not_supported(f"{name}() of a computed argument here", at(node.location))
    return supplied(binding, name, sequence, args)


def supplied(
    binding: Binding, name: str, sequence: SequenceDefinition | None, args: tuple[Expr, ...] = ()
) -> Param:
    """A value that the session finds before the statement runs."""
    binding.supplied.append(Supplied(name, sequence, args))
    return Param(SUPPLIED_BASE + len(binding.supplied), INT8)


def next_value_of_row(binding: Binding, sequence: SequenceDefinition) -> Expr:
    """nextval(), called for each row where `sequence_call` would be: a default in SET of UPDATE."""
    named = Const(sequence.oid, REGCLASS)
    binding.acts = True
    function = find_function("nextval", [named], "nextval", None).function
    return Call(function, (named,), INT8, binding.new_id())


def _uncast(node: Node) -> Node:
    while is_a(node, ast.TypeCast) and is_regclass(node.typeName):
        node = node.arg
    return node


def _relation(binding: Binding, expr: Expr, node: Node) -> Expr:
    """The argument that names a sequence: its oid if that is known now, else what makes one, or a
    text, which is looked up when the call is made.
    """
    if isinstance(expr, Param) and expr.type.name in ("unknown", "regclass"):
        return Param(binding.resolve_parameter(expr, REGCLASS).index, TEXT)
    if expr.type.name == "unknown":
        return implicit(binding, expr, node, REGCLASS)
    if expr.type.name in ("text", "varchar"):
        return expr
    if isinstance(expr, Const) and isinstance(expr.value, int):
        return Const(expr.value, REGCLASS)
    return implicit(binding, expr, node, REGCLASS)


def constant_sequence(binding: Binding, named: Expr) -> SequenceDefinition | None:
    """The sequence that a constant names by its oid. Raises what opening anything else does."""
    if not isinstance(named, Const) or not isinstance(named.value, int):
        return None
    found = sequence_of_oid(binding.context.catalog, named.value)
    binding.look_ups.add(LookUp(found.schema, found.name, found.oid))
    return found


def sequence_now(binding: Binding, named: Expr) -> SequenceDefinition:
    """The sequence that a constant text names while this statement is bound."""
    if not isinstance(named, Const) or not isinstance(named.value, str):
        raise not_supported("a default of a computed sequence here")
    oid = registered(binding, named.value, REGCLASS, None)
    found = constant_sequence(binding, oid)
    assert found is not None, "a name is found as an oid"
    return found


def sequence_of_oid(catalog: Catalog, oid: int) -> SequenceDefinition:
    """The sequence of this oid; 42809 for any other relation."""
    found = catalog.sequence_by_oid(oid)
    if found is not None:
        return found
    for thing in (*catalog.tables.values(), *catalog.objects.values()):
        if thing.oid == oid and not isinstance(thing, UserType):
            raise not_opened(thing.name, kind_of(thing))
    for table in catalog.tables.values():
        for key in table.keys:
            if index_oid(table, key) == oid:
                raise not_opened(key.name, "index")
    raise SqlError("XX000", f"could not open relation with OID {oid}")


def not_opened(name: str, kind: str) -> SqlError:
    """42809 for another relation in the place of a sequence."""
    return SqlError("42809", f'cannot open relation "{name}"', detail=_unsupported(kind))


def _unsupported(kind: str) -> str:
    kinds = "indexes" if kind == "index" else f"{kind}s"
    return f"This operation is not supported for {kinds}."


def plain_nextval(binding: Binding, node: Node) -> SequenceDefinition | None:
    """The sequence, if an expression is nextval() of it and nothing else."""
    if not is_a(node, ast.FuncCall) or strings(node.funcname)[-1] != "nextval":
        return None
    if len(node.args or ()) != 1:
        return None
    named = _uncast(node.args[0])
    if not is_a(named, ast.A_Const) or not is_a(named.val, ast.String):
        return None
    return constant_sequence(
        binding, registered(binding, named.val.sval, REGCLASS, position(named))
    )


# --- definitions -------------------------------------------------------------------------------


def sequence_of(
    binding: Binding, bare: SequenceDefinition, options: Sequence[Node], *, created: bool
) -> SequenceDefinition:
    """A definition with options, and PostgreSQL's defaults for the others (init_params)."""
    given = options_by_name(options)
    _check_options(options, of_identity=created and bare.identity)
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
    restart = restart_of(made, options) if created else None
    if restart not in (None, made.start):
        made = replace(made, first=restart)
    return _owned(binding, made, given["owned_by"]) if "owned_by" in given else made


_OPTIONS: Final = frozenset(
    {"as", "start", "increment", "minvalue", "maxvalue", "cache", "cycle", "owned_by", "restart"}
)


def _check_options(options: Iterable[Node], *, of_identity: bool) -> None:
    """What a sequence may have. One that is made for an identity column gets its name elsewhere,
    and its type from the column.
    """
    for option in options:
        name, place = option.defname, at(option.location)
        if name == "sequence_name":
            if not of_identity:
                raise SqlError("42601", "invalid sequence option SEQUENCE NAME", place)
        elif name not in _OPTIONS:
            raise not_supported(f"the sequence option {name.upper()}", place)
        elif name == "as" and of_identity:
            raise SqlError("42601", "conflicting or redundant options", place)


def restart_of(made: SequenceDefinition, options: Iterable[Node]) -> int | None:
    """The value that RESTART names, if it is said. Raises 22023."""
    for option in options:
        if option.defname != "restart":
            continue
        value = made.start if option.arg is None else integer_of(option)
        check_restart(made, value)
        return value
    return None


def check_restart(made: SequenceDefinition, value: int) -> None:
    """22023 if a sequence cannot stand at a value."""
    for wrong, bound in (
        (value < made.least, f"less than MINVALUE ({made.least})"),
        (value > made.greatest, f"greater than MAXVALUE ({made.greatest})"),
    ):
        if wrong:
            raise SqlError("22023", f"RESTART value ({value}) cannot be {bound}")


def _number(given: Mapping[str, Node], name: str, default: int) -> int:
    option = given.get(name)
    if option is None:
        return default
    return integer_of(option)


def integer_of(option: Node) -> int:
    """The bigint of an option (defGetInt64)."""
    value = option.arg
    if is_a(value, ast.Integer):
        return int(value.ival or 0)
    # A fraction, or an integer of more than 32 bits.
    read = parse_text("int8", value.fval)
    assert isinstance(read, int), "the text of a bigint is read as one"
    return read


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
        _check_not_identity(binding, sequence)
        return replace(sequence, owner=0, owner_field="")
    if len(names) < 2:
        hint = "Specify OWNED BY table.column or OWNED BY NONE."
        raise SqlError("42601", "invalid OWNED BY option", hint=hint)
    schema, name = relation_name(binding, names[:-1])
    table = look_up(binding, name, schema=schema)
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


def _check_not_identity(binding: Binding, sequence: SequenceDefinition) -> None:
    table = binding.context.catalog.by_oid(sequence.owner) if sequence.identity else None
    if table is not None:
        detail = f'Sequence "{sequence.name}" is linked to table "{table.name}".'
        message = "cannot change ownership of identity sequence"
        raise SqlError("0A000", message, detail=detail)


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
            return SqlError("42809", message, detail=_unsupported(kind_of(found)))
    shown = name if schema is None else f"{schema}.{name}"
    return SqlError("42P01", f'relation "{shown}" does not exist')
