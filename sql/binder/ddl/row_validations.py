"""Validate existing rows against new constraints: plans that must find no row.

NOT NULL   rows with NULL                   23502     a single row of the plan is a violation
CHECK      rows for which it is false       23514
a key      keys that several rows have      23505
"""

from collections.abc import Sequence

from sql.binder.resolve.relations import table_scan
from sql.binder.state import Binding
from sql.binder.stored.column_expressions import bound_check, check_scope, parse_stored_expression
from sql.catalog.catalog import Key, Table
from sql.functions.table import functions, operators
from sql.plan.conditions import conjunction
from sql.plan.nodes import (
    Aggregate,
    Call,
    ColumnRef,
    Const,
    Expr,
    Filter,
    GroupBy,
    IsTest,
    Limit,
    Plan,
    Project,
    Test,
)
from sql.plan.pruning import prune_columns
from sql.statements.ddl import Validation
from sql.types.sql_type import BOOL, INT4, INT8


def row_validations(
    binding: Binding,
    table: Table,
    required: Sequence[str],
    checks: Sequence[str],
    keys: Sequence[Key],
) -> tuple[Validation, ...]:
    """Validations of new NOT NULL columns, checks and keys of a table."""
    made = [_not_null(binding, table, name) for name in dict.fromkeys(required)]
    made += [_check(binding, table, name) for name in dict.fromkeys(checks)]
    made += [_key(binding, table, key) for key in keys]
    return tuple(made)


def _first(plan: Plan) -> Plan:
    return prune_columns(Limit(plan, Const(1, INT8), None))


def _not_null(binding: Binding, table: Table, name: str) -> Validation:
    rows = table_scan(binding, table)
    (column,) = [
        made
        for made, column in zip(rows.columns, table.columns, strict=True)
        if column.name == name
    ]
    ref = ColumnRef(column.id, column.type)
    plan = Filter(rows, IsTest(Test.IS_NULL, ref, BOOL))
    message = f'column "{name}" of relation "{table.name}" contains null values'
    return Validation(_first(_one(binding, plan)), "23502", message, column=name)


def first_violation(binding: Binding, plan: Plan) -> Plan:
    """One of the plan's rows, if there are any."""
    return _first(_one(binding, plan))


def _one(binding: Binding, plan: Plan) -> Plan:
    return Project(plan, (binding.new_column("one", INT4),), (Const(1, INT4),))


def _check(binding: Binding, table: Table, name: str) -> Validation:
    (check,) = [check for check in table.checks if check.name == name]
    rows, scope = check_scope(binding, table, relation=None)
    holds = bound_check(binding, scope, parse_stored_expression(check.expression))
    plan = Filter(rows, IsTest(Test.IS_FALSE, holds, BOOL))
    message = f'check constraint "{name}" of relation "{table.name}" is violated by some row'
    return Validation(_first(_one(binding, plan)), "23514", message, constraint=name)


def _key(binding: Binding, table: Table, key: Key) -> Validation:
    rows = table_scan(binding, table)
    refs: list[Expr] = [
        ColumnRef(rows.columns[ordinal].id, rows.columns[ordinal].type) for ordinal in key.columns
    ]
    plan: Plan = rows
    if key.nulls_distinct:
        present = [IsTest(Test.IS_NOT_NULL, ref, BOOL) for ref in refs]
        plan = Filter(rows, conjunction(present))
    made = tuple(
        [binding.new_column(table.columns[at].name, table.columns[at].type) for at in key.columns]
    )
    counted = binding.new_column("count", INT8)
    (count,) = [row for row in functions("count") if not row.args]
    aggregate = Aggregate(count, (), False, None, (), INT8)
    grouped = GroupBy(plan, made, tuple(refs), (counted,), (aggregate,))
    (more,) = [row for row in operators(">") if row.args == ("int8", "int8")]
    several = Call(more, (ColumnRef(counted.id, INT8), Const(1, INT8)), BOOL)
    shown = tuple([binding.new_column(column.name, column.type) for column in made])
    found = Project(Filter(grouped, several), shown, tuple([ColumnRef(c.id, c.type) for c in made]))
    message = f'could not create unique index "{key.name}"'
    return Validation(_first(found), "23505", message, constraint=key.name, key=key)
