"""Domain constraints: check a value against NOT NULL and CHECK wherever it becomes a domain value.

    CAST (e AS d) ─▶ e, checked in the query
    INSERT, UPDATE, COPY .. ─▶ rows, checked by `coordinator/execution/dml/domain_constraints.py`

A domain's values are values of its base type: functions, operators, engines and files see only the
base type. A column records its domain (`Column.domain`), an expression does not.

INVARIANTS
  D1  a value is checked when it becomes a domain value, and nowhere else: stored values have been
      checked before.
  D2  NOT NULL is checked before the CHECK constraints, which follow in the order of their names, as
      in PostgreSQL.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from sql.binder.resolve.relations import table_scan
from sql.binder.resolve.visible_names import shown_type_name
from sql.binder.state import BindContext, Binding, FromItem, Scope
from sql.binder.stored.column_expressions import (
    NEW_ROWS,
    bind_stored,
    bound_check,
    parse_stored_expression,
    with_defined_default,
)
from sql.catalog.catalog import Column, Table
from sql.catalog.objects import Domain
from sql.errors import SqlError, not_supported
from sql.functions.table import function_by_id
from sql.plan.nodes import Call, ColumnRef, Const, Expr, IsTest, Plan, Project, Test
from sql.plan.traverse import is_volatile_expression
from sql.types.sql_type import BOOL, TEXT


def null_violation(context: BindContext, domain: Domain) -> SqlError:
    """23502."""
    message = f"domain {_shown(context, domain)} does not allow null values"
    return SqlError("23502", message, schema=domain.schema, datatype=domain.name)


def check_violation(context: BindContext, domain: Domain, name: str) -> SqlError:
    """23514."""
    message = f'value for domain {_shown(context, domain)} violates check constraint "{name}"'
    return SqlError("23514", message, schema=domain.schema, datatype=domain.name, constraint=name)


def _shown(context: BindContext, domain: Domain) -> str:
    return shown_type_name(context.catalog, context.search_path, domain.schema, domain.name)


def ordered_checks(domain: Domain) -> list[tuple[str, str]]:
    """The checks in the order of their names (D2)."""
    return sorted(domain.checks, key=lambda check: check[0].encode())


def value_scope(value: Expr) -> Scope:
    """A scope in which VALUE means this expression."""
    return Scope(clause="domain constraints", items=[FromItem(None, [("value", value)])])


def bound_domain_check(binding: Binding, value: Expr, text: str) -> Expr:
    """A CHECK of the domain, applied to this value."""
    node = parse_stored_expression(text)
    return bind_stored(binding, partial(bound_check, binding, value_scope(value), node))


def checked_value(binding: Binding, value: Expr, domain: Domain) -> Expr:
    """A value of the base type with the checks that make it a domain value (D2)."""
    rules: list[tuple[Expr, SqlError]] = []
    context = binding.context
    if domain.not_null:
        rules.append((IsTest(Test.IS_NOT_NULL, value, BOOL), null_violation(context, domain)))
    for name, text in ordered_checks(domain):
        broken = check_violation(context, domain, name)
        rules.append((bound_domain_check(binding, value, text), broken))
    if rules and is_volatile_expression(value):
        raise not_supported(f"a volatile value of domain {_shown(context, domain)}")
    row, result = function_by_id("checked(any,bool,text,text,text,text,text)"), value
    for verdict, error in rules:
        told = (error.sqlstate, error.message, error.schema, error.datatype, error.constraint)
        result = Call(row, (result, verdict, *(Const(text, TEXT) for text in told)), value.type)
    return result


def with_domain_default(binding: Binding, column: Column) -> Column:
    """The column; without a default of its own it gets its domain's."""
    domain = column.domain
    taken = column.has_default or column.sequence or column.identity or column.generated
    if domain is None or not domain.default or taken:
        return column
    node = parse_stored_expression(domain.default)
    made = bind_stored(binding, partial(with_defined_default, binding, column, node))
    return replace(made, default_of_domain=True)


def domain_checks_of(table: Table) -> Iterator[tuple[int, Domain, str, str]]:
    """Ordinal, domain, name and text of every domain CHECK of a table's columns, in checking
    order.
    """
    for ordinal, column in enumerate(table.columns):
        if column.domain is not None:
            for name, text in ordered_checks(column.domain):
                yield ordinal, column.domain, name, text


def domain_check_plan(binding: Binding, table: Table) -> Plan:
    """One boolean column per domain CHECK over rows of `new`: false where a row violates it."""
    scanned = table_scan(binding, table, relation=NEW_ROWS)
    exprs: list[Expr] = []
    for ordinal, _, _, text in domain_checks_of(table):
        made = scanned.columns[ordinal]
        exprs.append(bound_domain_check(binding, ColumnRef(made.id, made.type), text))
    columns = tuple([binding.new_column("rule", BOOL) for _ in exprs])
    return Project(scanned, columns, tuple(exprs))
