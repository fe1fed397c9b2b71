"""CHECK constraints of CREATE and ALTER TABLE: bind the conditions, and choose PostgreSQL's names.

INVARIANTS
  E1  the name of a constraint is unique in its table.
"""

from collections.abc import Collection, Container, Sequence
from functools import partial

from sql.binder.state import Binding
from sql.binder.stored.column_expressions import (
    bound_check,
    check_scope,
    referenced_column_names,
    stored_text_of,
    without_position,
)
from sql.binder.stored.table_changes import without_qualifiers
from sql.catalog.catalog import CheckConstraint, Table
from sql.catalog.constraint_names import (
    ConstraintsBeside,
    make_object_name,
    settled_constraint_names,
)
from sql.errors import SqlError, duplicate_constraint, not_supported
from sql.parser.syntax import Node, offset_to_position


def bind_checks(
    binding: Binding,
    table: Table,
    nodes: Sequence[Node],
    *,
    named: Collection[str] = (),
    altered: bool = False,
) -> tuple[CheckConstraint, ...]:
    """Additional checks of a table that has its columns and older checks.

    `named`: the columns whose NOT NULL has its name already. `altered`: by ALTER TABLE, for which
    PostgreSQL reports no position in a condition.
    """
    if not nodes:
        return ()
    beside = ConstraintsBeside(binding.context.catalog, table)
    own = settled_constraint_names(table, named)
    new: set[str] = set()
    checks: list[CheckConstraint] = []
    for node in nodes:
        name = node.conname
        if name in new and not altered:
            raise SqlError("42710", f'check constraint "{name}" already exists')
        if name in own or name in new:
            raise duplicate_constraint(name, table.name)
        check = _check(binding, table, node, (own | new, beside), altered=altered)
        new.add(check.name)
        checks.append(check)
    return tuple(checks)


def _check(
    binding: Binding, table: Table, node: Node, taken: Sequence[Container[str]], *, altered: bool
) -> CheckConstraint:
    if node.is_enforced is False:
        raise not_supported("NOT ENFORCED", offset_to_position(node.location))
    _, scope = check_scope(binding, table)
    bound = partial(bound_check, binding, scope, node.raw_expr)
    without_position(bound) if altered else bound()
    name = node.conname
    if name is None:
        # One alone gives it its name, wherever it stands.
        used_columns = referenced_column_names(node.raw_expr)
        name = _free_name(table.name, used_columns[0] if len(used_columns) == 1 else "", taken)
    text = without_qualifiers(stored_text_of(binding, node.raw_expr))
    return CheckConstraint(name, text, no_inherit=bool(node.is_no_inherit))


def _free_name(table: str, column: str, taken: Sequence[Container[str]]) -> str:
    number = 0
    while True:
        name = make_object_name(table, column, f"check{number or ''}")
        if all(name not in names for names in taken):
            return name
        number += 1
