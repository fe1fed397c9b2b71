"""Bind nextval(), currval(), lastval() and setval() as runtime parameters of a statement."""

from typing import Final

from sql.binder.resolve.catalog_lookup import relation_kind
from sql.binder.resolve.function_choice import find_function
from sql.binder.resolve.reg_literals import reg_literal
from sql.binder.state import RUNTIME_PARAMETER_BASE, Binding
from sql.catalog.catalog import Catalog, NameDependency
from sql.catalog.objects import SequenceDefinition, UserType
from sql.catalog.oids import index_oid
from sql.errors import SqlError, not_supported
from sql.plan.nodes import Call, Const, Expr, Param
from sql.statements.runtime_parameters import RuntimeParameter
from sql.types.sql_type import INT8, SqlType

SEQUENCE_FUNCTIONS: Final = frozenset({"nextval", "currval", "lastval", "setval"})


REGCLASS: Final = SqlType("regclass")


def unsupported_kind_detail(kind: str) -> str:
    """The detail of an error about a relation that is not a sequence."""
    kinds = "indexes" if kind == "index" else f"{kind}s"
    return f"This operation is not supported for {kinds}."


def constant_sequence(binding: Binding, named: Expr) -> SequenceDefinition | None:
    """The sequence that a constant names by its oid. Raises the error of opening another
    relation.
    """
    if not isinstance(named, Const) or not isinstance(named.value, int):
        return None
    found = sequence_of_oid(binding.context.catalog, named.value)
    binding.uses.add(NameDependency(found.schema, found.name, found.oid))
    return found


def next_value_per_row(binding: Binding, sequence: SequenceDefinition) -> Expr:
    """nextval(), called for each row as by `sequence_call`: for a default in SET of UPDATE."""
    named = Const(sequence.oid, REGCLASS)
    binding.acts = True
    function = find_function("nextval", [named], "nextval", None).function
    return Call(function, (named,), INT8, binding.new_id())


def cannot_open_relation(name: str, kind: str) -> SqlError:
    """42809 for another relation in place of a sequence."""
    return SqlError("42809", f'cannot open relation "{name}"', detail=unsupported_kind_detail(kind))


def sequence_of_constant_text(binding: Binding, named: Expr) -> SequenceDefinition:
    """The sequence that a constant text names at binding time."""
    if not isinstance(named, Const) or not isinstance(named.value, str):
        raise not_supported("a default of a computed sequence here")
    oid = reg_literal(binding, named.value, REGCLASS, None)
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
            raise cannot_open_relation(thing.name, relation_kind(thing))
    for table in catalog.tables.values():
        for key in table.keys:
            if index_oid(table, key) == oid:
                raise cannot_open_relation(key.name, "index")
    raise SqlError("XX000", f"could not open relation with OID {oid}")


def runtime_parameter(
    binding: Binding, name: str, sequence: SequenceDefinition | None, args: tuple[Expr, ...] = ()
) -> Param:
    """A runtime parameter: the session computes its value before the statement runs."""
    binding.supplied.append(RuntimeParameter(name, sequence, args))
    return Param(RUNTIME_PARAMETER_BASE + len(binding.supplied), INT8)
