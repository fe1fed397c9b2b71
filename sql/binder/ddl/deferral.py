"""DEFERRABLE, INITIALLY DEFERRED and ENFORCED of column constraints, and SET CONSTRAINTS.

The parser attaches these clauses to a table constraint. At a column, each clause is a node of its
own after the constraint that it modifies (transformConstraintAttrs).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pglast.enums import ConstrType

from sql.binder.resolve.catalog_lookup import check_database, schema_exists
from sql.binder.state import Binding
from sql.catalog.catalog import ForeignKey, Key, Table
from sql.errors import SqlError, not_supported, undefined_schema
from sql.parser.syntax import Node, offset_to_position
from sql.statements.session import SetConstraints

_DEFERRABLE: Final = ConstrType.CONSTR_ATTR_DEFERRABLE
_DEFERRED: Final = ConstrType.CONSTR_ATTR_DEFERRED
_CLAUSES: Final = {
    _DEFERRABLE: "DEFERRABLE",
    ConstrType.CONSTR_ATTR_NOT_DEFERRABLE: "NOT DEFERRABLE",
    _DEFERRED: "INITIALLY DEFERRED",
    ConstrType.CONSTR_ATTR_IMMEDIATE: "INITIALLY IMMEDIATE",
    ConstrType.CONSTR_ATTR_ENFORCED: "ENFORCED",
    ConstrType.CONSTR_ATTR_NOT_ENFORCED: "NOT ENFORCED",
}
_MAY_WAIT: Final = frozenset(
    {ConstrType.CONSTR_PRIMARY, ConstrType.CONSTR_UNIQUE, ConstrType.CONSTR_FOREIGN}
)
_MAY_BE_IDLE: Final = frozenset({ConstrType.CONSTR_CHECK, ConstrType.CONSTR_FOREIGN})


@dataclass(frozen=True, slots=True)
class Deferrability:
    """Whether a constraint may be deferred to the commit, and whether it is by default."""

    deferrable: bool = False
    deferred: bool = False


def constraints_with_deferrability(nodes: Sequence[Node]) -> list[tuple[Node, Deferrability]]:
    """The constraints at a column, each with the clauses that follow it.

    Raises 42601, and 0A000 for NOT ENFORCED.
    """
    found: list[tuple[Node, Deferrability]] = []
    said: list[list[ConstrType]] = []
    for node in nodes:
        if node.contype not in _CLAUSES:
            found.append((node, Deferrability()))
            said.append([])
            continue
        clause = _CLAUSES[node.contype]
        fitting = _MAY_BE_IDLE if clause.endswith("ENFORCED") else _MAY_WAIT
        if not found or found[-1][0].contype not in fitting:
            raise SqlError("42601", f"misplaced {clause} clause", offset_to_position(node.location))
        said[-1].append(node.contype)
        found[-1] = (found[-1][0], _when(said[-1], node))
    for node in nodes:
        if node.contype == ConstrType.CONSTR_ATTR_NOT_ENFORCED:
            raise not_supported("NOT ENFORCED", offset_to_position(node.location))
    return found


def _when(said: Sequence[ConstrType], last: Node) -> Deferrability:
    place = offset_to_position(last.location)
    whether = [kind for kind in said if "DEFERRABLE" in _CLAUSES[kind]]
    initially = [kind for kind in said if "INITIALLY" in _CLAUSES[kind]]
    enforced = [kind for kind in said if "ENFORCED" in _CLAUSES[kind]]
    for several, clauses in (
        (whether, "DEFERRABLE/NOT DEFERRABLE"),
        (initially, "INITIALLY IMMEDIATE/DEFERRED"),
        (enforced, "ENFORCED/NOT ENFORCED"),
    ):
        if len(several) > 1:
            raise SqlError("42601", f"multiple {clauses} clauses not allowed", place)
    deferred = _DEFERRED in initially
    if deferred and whether and _DEFERRABLE not in whether:
        message = "constraint declared INITIALLY DEFERRED must be DEFERRABLE"
        raise SqlError("42601", message, place)
    return Deferrability(deferred or _DEFERRABLE in whether, deferred)


# --- SET CONSTRAINTS ---------------------------------------------------------------------------


def set_constraints(binding: Binding, node: Node) -> SetConstraints:
    """SET CONSTRAINTS ALL | names DEFERRED | IMMEDIATE."""
    deferred = bool(node.deferred)
    if node.constraints is None:
        return SetConstraints(None, deferred)
    named: list[tuple[int, str]] = []
    for relation in node.constraints:
        check_database(binding, relation, placed=False)
        try:
            named += _named(binding, relation, deferred=deferred)
        except SqlError as problem:
            return SetConstraints((), deferred, problem)
    return SetConstraints(tuple(named), deferred)


def _named(binding: Binding, relation: Node, *, deferred: bool) -> list[tuple[int, str]]:
    """The constraints of that name in the first schema that has one: table and name."""
    schema, name = relation.schemaname, relation.relname
    if schema is not None and not schema_exists(binding, schema):
        raise undefined_schema(schema)
    for candidate in binding.context.search_path if schema is None else (schema,):
        tables = [t for t in binding.context.catalog.tables.values() if t.schema == candidate]
        found = [(t.oid, key) for t in tables for key in _may_wait(t) if key.name == name]
        checks = any(check.name == name for table in tables for check in table.checks)
        if not found and not checks:
            continue
        if deferred and (checks or not all(key.deferrable for _, key in found)):
            raise SqlError("42809", f'constraint "{name}" is not deferrable')
        return [(oid, key.name) for oid, key in found if key.deferrable]
    raise SqlError("42704", f'constraint "{name}" does not exist')


def _may_wait(table: Table) -> Iterator[Key | ForeignKey]:
    yield from (key for key in table.keys if not key.index)
    yield from table.foreign_keys
