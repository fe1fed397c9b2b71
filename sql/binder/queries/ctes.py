"""WITH queries: order them, check recursion, and share or inline each (parse_cte.c).

INVARIANTS
  C1  a WITH query that is read twice, or that is volatile, is computed once (`With`). If it refers
      to an outer query or to the rows of a recursion, each use is a plan of its own instead.
  C2  a recursive query always has the form `base UNION [ALL] step` with one reference to itself, in
      the FROM of the step. Other forms are refused before binding.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pglast import ast
from pglast.enums import JoinType, SetOperation

from sql.binder.resolve.coercion import coerce_implicitly
from sql.binder.state import Binding, Scope, SelectResult
from sql.errors import SqlError, datatype_mismatch, not_supported
from sql.parser.syntax import Node, is_a, node_position, offset_to_position, with_clause
from sql.plan.nodes import (
    ColumnRef,
    CteId,
    CteScan,
    Expr,
    Plan,
    PlanColumn,
    Project,
    With,
    output_columns,
)
from sql.plan.renumbering import cte_scans, free_columns, replace_cte_scans, with_fresh_ids
from sql.plan.traverse import is_volatile_plan
from sql.types.bpchar import column_type
from sql.types.sql_type import NUMERIC, TEXT, SqlType, format_type, plain_type


@dataclass(frozen=True, slots=True)
class SharedCte:
    """A WITH query that its uses scan (`CteScan`), until the number of its uses is known."""

    cte: CteId
    name: str
    definition: Plan


def record_shared_cte(binding: Binding, query: SharedCte) -> None:
    """Record whether a new WITH query refers to an outer query or to a recursion."""
    reads = {scan.cte for scan in cte_scans(query.definition)}
    if free_columns(query.definition) or reads & (binding.work_tables | binding.outer_bound):
        binding.outer_bound.add(query.cte)


def with_shared_ctes(binding: Binding, plan: Plan, shared: Sequence[SharedCte]) -> Plan:
    """Put the WITH queries around the plan, or inline them at their uses (C1)."""
    uses_of = Counter(scan.cte for scan in cte_scans(plan))
    inlined: dict[CteId, SharedCte] = {}
    for query in reversed(shared):
        uses = uses_of[query.cte]
        if not uses:
            continue
        bound = query.cte in binding.outer_bound
        volatile = is_volatile_plan(query.definition)
        if bound and volatile:
            what = "a WITH query with a volatile function that depends on the query around it"
            raise not_supported(what, None)
        if volatile or (uses > 1 and not bound):
            plan = With(query.cte, query.name, query.definition, plan)
            uses = 1
        else:
            inlined[query.cte] = query
        for scan in cte_scans(query.definition):
            uses_of[scan.cte] += uses
    return _inlined(binding, plan, inlined) if inlined else plan


def _inlined(binding: Binding, plan: Plan, queries: Mapping[CteId, SharedCte]) -> Plan:
    """The plan with these queries where they are scanned, and in each other."""
    used: set[CteId] = set()

    def expanded(scan: CteScan) -> Plan:
        query = queries.get(scan.cte)
        if query is None:
            return scan
        definition = query.definition
        if scan.cte in used:
            definition, _ = with_fresh_ids(definition, binding.new_id)
        used.add(scan.cte)
        refs = [ColumnRef(column.id, column.type) for column in output_columns(definition)]
        made = replace_cte_scans(definition, expanded)
        return Project(made, scan.columns, tuple(refs[: len(scan.columns)]))

    return replace_cte_scans(plan, expanded)


# --- WITH RECURSIVE ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CteEntry:
    """One WITH query of a clause, and whether it refers to itself."""

    node: Node
    recursive: bool


def ordered_ctes(clause: Node) -> list[CteEntry]:
    """The queries of a WITH clause, ordered so that each follows those that it reads."""
    names: dict[str, Node] = {}
    for cte in clause.ctes:
        if cte.ctename in names:
            message = f'WITH query name "{cte.ctename}" specified more than once'
            raise SqlError("42712", message, offset_to_position(cte.location))
        names[cte.ctename] = cte
    if not clause.recursive:
        return [CteEntry(cte, recursive=False) for cte in clause.ctes]
    reads = {name: set(_named(cte.ctequery, frozenset(names))) for name, cte in names.items()}
    done: dict[str, CteEntry] = {}
    while len(done) < len(names):
        ready = [n for n in names if n not in done and reads[n] - {n} <= done.keys()]
        if not ready:
            stuck = next(name for name in names if name not in done)
            message = "mutual recursion between WITH items is not implemented"
            raise SqlError("0A000", message, offset_to_position(names[stuck].location))
        name = ready[0]
        entry = CteEntry(names[name], recursive=name in reads[name])
        if entry.recursive:
            _check_form(entry.node)
        done[name] = entry
    return list(done.values())


def _named(node: Node, names: frozenset[str]) -> Iterator[str]:
    """Which of these WITH queries stand in FROM clauses below a node."""
    if is_a(node, ast.RangeVar):
        if node.schemaname is None and node.relname in names:
            yield node.relname
        return
    clause = with_clause(node)
    if clause is not None:
        names -= {cte.ctename for cte in clause.ctes}
    for part in _children(node):
        yield from _named(part, names)


def _children(node: Node) -> Iterator[Node]:
    if isinstance(node, tuple):
        yield from node
    elif is_a(node, ast.Node):
        for name in node:
            value = getattr(node, name)
            if isinstance(value, tuple) or is_a(value, ast.Node):
                yield value


_MISPLACED: Final[Mapping[str, str]] = {
    "base": "its non-recursive term",
    "subquery": "a subquery",
    "outer": "an outer join",
    "intersect": "INTERSECT",
    "except": "EXCEPT",
}


def _check_form(cte: Node) -> None:
    """Raises 42P19 for a recursion that PostgreSQL does not take (checkWellFormedRecursion)."""
    query, name = cte.ctequery, cte.ctename
    if not is_a(query, ast.SelectStmt):
        message = f'recursive query "{name}" must not contain data-modifying statements'
        raise SqlError("42P19", message, offset_to_position(cte.location))
    if query.op != SetOperation.SETOP_UNION:
        message = (
            f'recursive query "{name}" does not have the form non-recursive-term UNION [ALL] '
            "recursive-term"
        )
        raise SqlError("42P19", message, offset_to_position(cte.location))
    checker = _Checker(name)
    if query.withClause is not None:
        checker.visit(query.withClause.ctes, "subquery")
    checker.visit(query.larg, "base")
    checker.visit(query.rarg, "")
    clauses = (
        ("ORDER BY", query.sortClause),
        ("OFFSET", query.limitOffset),
        ("LIMIT", query.limitCount),
        ("FOR UPDATE/SHARE", query.lockingClause),
    )
    for what, clause in clauses:
        if clause:
            first = clause[0] if isinstance(clause, tuple) else clause
            place = node_position(first.node if is_a(first, ast.SortBy) else first)
            message = f"{what} in a recursive query is not implemented"
            raise SqlError("0A000", message, place)


@dataclass(slots=True)
class _Checker:
    """Looks for references of a query to itself; a place is where one must not stand."""

    name: str
    found: int = 0

    def visit(self, node: Node, place: str) -> None:
        """Look at a node and all below."""
        if is_a(node, ast.RangeVar):
            self._reference(node, place)
        elif is_a(node, ast.SubLink):
            self.visit(node.testexpr, place)
            self.visit(node.subselect, place or "subquery")
        elif is_a(node, ast.JoinExpr):
            self._join(node, place)
        elif is_a(node, ast.SelectStmt) and not place and node.op in _SETS:
            some, other = _SETS[node.op]
            self.visit(node.larg, some if node.all else place)
            self.visit(node.rarg, some if node.all else other)
        else:
            for part in _children(node):
                self.visit(part, place)

    def _reference(self, node: Node, place: str) -> None:
        if node.schemaname is not None or node.relname != self.name:
            return
        start = f'recursive reference to query "{self.name}" must not appear'
        if place:
            message = f"{start} within {_MISPLACED[place]}"
            raise SqlError("42P19", message, offset_to_position(node.location))
        self.found += 1
        if self.found > 1:
            raise SqlError("42P19", f"{start} more than once", offset_to_position(node.location))

    def _join(self, node: Node, place: str) -> None:
        left = node.jointype in (JoinType.JOIN_RIGHT, JoinType.JOIN_FULL)
        right = node.jointype in (JoinType.JOIN_LEFT, JoinType.JOIN_FULL)
        self.visit(node.larg, place or ("outer" if left else ""))
        self.visit(node.rarg, place or ("outer" if right else ""))
        self.visit(node.quals, place)


_SETS: Final = {
    SetOperation.SETOP_INTERSECT: ("intersect", ""),
    SetOperation.SETOP_EXCEPT: ("except", "except"),
}


def recursive_column_type(type_: SqlType) -> SqlType:
    """The type of a base column that holds the values of all iterations.

    It is the widest numeric if the base has no modifier.
    """
    return NUMERIC if type_.name == "numeric" and type_.typmod < 0 else column_type(type_)


def check_recursive_type(
    name: str, index: int, base: SqlType, overall: SqlType, node: Node
) -> None:
    """42804 if the whole recursion has another type than its base."""
    if (base.name, base.typmod) != (overall.name, overall.typmod):
        raise _mismatch_overall(name, index, format_type(base), format_type(overall), node)


def check_recursive_domain(
    binding: Binding, name: str, index: int, sides: tuple[PlanColumn, PlanColumn], node: Node
) -> None:
    """42804 if the base is of a domain and the whole recursion of its base type."""
    base, step = sides
    domain = binding.domain(base.id)
    if domain is not None and binding.domain(step.id) != domain:
        raise _mismatch_overall(name, index, domain.shown, format_type(base.type.bare()), node)


def check_recursive_literal(
    binding: Binding, name: str, index: int, sides: tuple[Expr, SelectResult], node: Node
) -> None:
    """42804 if the base is an untyped literal, which becomes text, and the step has another type.

    A literal that is no value of that type fails first, as in PostgreSQL.
    """
    literal, step = sides
    overall = step.columns[index].type
    if index in step.unknown or overall.name == TEXT.name:
        return
    coerce_implicitly(binding, literal, node, plain_type(overall.name))
    raise _mismatch_overall(name, index, TEXT.name, format_type(overall.bare()), node)


def _mismatch_overall(name: str, index: int, base: str, overall: str, node: Node) -> SqlError:
    message = (
        f'recursive query "{name}" column {index + 1} has type {base} in non-recursive '
        f"term but type {overall} overall"
    )
    hint = "Cast the output of the non-recursive term to the correct type."
    return datatype_mismatch(message, node_position(node), hint=hint)


def check_recursive_term(binding: Binding, scope: Scope) -> None:
    """42P19 for an aggregate over the recursive reference."""
    if not scope.reads_itself or not scope.aggregates:
        return
    ids = {column.id for column in scope.aggregates.values()}
    places = [
        place
        for expr, place in binding.places.values()
        if isinstance(expr, ColumnRef) and expr.id in ids
    ]
    message = "aggregate functions are not allowed in a recursive query's recursive term"
    raise SqlError("42P19", message, offset_to_position(min(places, default=None)))
