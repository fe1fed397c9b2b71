"""Find the domain of an expression, as PostgreSQL's exprType() does.

A domain value behaves as a value of its base type in every computation. The domain matters only
where a definition is derived from the expression (CREATE TABLE AS, LIKE, views), whose columns keep
the constraints, and for `pg_typeof()`.

INVARIANTS
  D5  an expression that chooses among values of one domain has that domain, and so has a call that
      does. An expression that computes has none.
"""

from collections.abc import Sequence

from sql.binder.state import Binding
from sql.catalog.objects import Domain, DomainDefinition
from sql.functions.table import Function
from sql.plan.nodes import (
    Call,
    Case,
    Coalesce,
    ColumnRef,
    Const,
    Expr,
    Extreme,
    PlanColumn,
    Subquery,
    SubqueryKind,
    output_columns,
)
from sql.types.sql_type import SqlType


def domain_of(binding: Binding, expr: Expr) -> Domain | None:
    """The domain of an expression (D5)."""
    cast = binding.casts.get(id(expr))
    if cast is not None:
        return cast[1]
    match expr:
        case ColumnRef(id=id_):
            return binding.domain(id_)
        case Coalesce(args=args) | Extreme(args=args):
            return _of_all(binding, args)
        case Case(whens=whens, otherwise=otherwise):
            return _of_all(binding, [*(value for _, value in whens), otherwise])
        case Subquery(kind=SubqueryKind.SCALAR, plan=plan):
            return binding.domain(output_columns(plan)[0].id)
        case Call() if expr.function.name == "checked":
            return _checked(binding, expr)
        case _:
            return None


def domain_of_call(binding: Binding, function: Function, exprs: Sequence[Expr]) -> Domain | None:
    """The domain of a call whose result type is its arguments' type (anyelement)."""
    if function.result not in ("anyelement", "anycompatible"):
        return None
    given = [
        expr
        for expr, declared in zip(exprs, function.args, strict=False)
        if declared == function.result and expr.type.name != "unknown"
    ]
    return _of_all(binding, given) if given else None


def type_of_domain(binding: Binding, domain: Domain) -> SqlType:
    """The base type of a domain, with its modifier."""
    found = binding.context.catalog.type_named(domain.schema, domain.name)
    assert isinstance(found, DomainDefinition), "a domain in use is there"
    return found.type


def _of_all(binding: Binding, exprs: Sequence[Expr]) -> Domain | None:
    first, *others = (domain_of(binding, expr) for expr in exprs)
    return first if all(other == first for other in others) else None


def _checked(binding: Binding, call: Call) -> Domain | None:
    """Of a cast to a domain with rules that has become part of another expression since."""
    schema, name = (str(arg.value) for arg in call.args[4:6] if isinstance(arg, Const))
    found = binding.context.catalog.type_named(schema, name)
    return found.domain if isinstance(found, DomainDefinition) else None


def set_column_domain(binding: Binding, column: PlanColumn, expr: Expr) -> None:
    """Record the origin of a column that passes this expression through: domain and table
    column.
    """
    domain = domain_of(binding, expr)
    if domain is not None:
        binding.domains[column.id] = domain
    if isinstance(expr, ColumnRef) and domain == binding.domain(expr.id):
        origin = binding.origins.get(expr.id)
        if origin is not None:
            binding.origins[column.id] = origin
