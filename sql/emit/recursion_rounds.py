"""Split a recursion that an engine cannot run into iterations, computed before the statement.

    with recursive t as (B union S) select .. from t
      ─▶  m1: the rows of B, each once
          m2: those of the last iteration, as long as there are any
              S over m2, except m1     the next iteration, which becomes m2 and is added to m1
          select .. from m1

The rest of the plan, base and step are plans over relations, which may have recursions themselves.

INVARIANTS
  T1  a relation computed before the statement refers to no outer row. One that refers to the last
      iteration of an enclosing recursion is computed anew in every iteration; any other once, when
      it is first read.
  T2  a WITH query that base or step reads is computed before them as well: once, not in every
      iteration, and not at all if no step reads it.
  T3  a recursion in an expression's subquery is computed even if no row demands it. One that may
      fail is refused; one that overflows or does not end does so where PostgreSQL might not run it.
  T4  rows are compared as EXCEPT compares them: by PostgreSQL's equality, NULLs equal.
  T5  a recursion ends early where LIMIT stands over it with nothing but projections between, as
      PostgreSQL's does. Behind conditions and joins, and if it is read twice, it runs to its end.

Not here: running it (`compute/spark/recursion_rounds.py`); UNION ALL with a plain step, which the
engine runs itself (`emit/ctes.py`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final, TypeAlias, TypeVar

from sql.emit.emitted_query import DerivedRelation, EmittedQuery, Iterations
from sql.errors import SqlError
from sql.plan.nodes import (
    ColumnId,
    Const,
    CteId,
    CteScan,
    DistinctRows,
    Expr,
    Filter,
    GroupBy,
    Join,
    JoinKind,
    Limit,
    Param,
    Plan,
    PlanColumn,
    Project,
    Recursive,
    RelationId,
    Scan,
    SetOp,
    SetOpKind,
    Subquery,
    With,
)
from sql.plan.renumbering import cte_scans, free_columns, parts_with_columns, rebuild_parts
from sql.plan.traverse import plan_nodes, walk
from sql.rewrite.column_ids import IdRange, range_of_column_ids
from sql.rewrite.failure_analysis import plan_may_fail
from sql.types.sql_type import Value

_T = TypeVar("_T")
Emit: TypeAlias = Callable[[Plan, Mapping[RelationId, str], Sequence[Value]], EmittedQuery]

_KEEPING_LEFT: Final = (JoinKind.CROSS, JoinKind.INNER, JoinKind.LEFT)
_KEEPING_RIGHT: Final = (JoinKind.CROSS, JoinKind.INNER, JoinKind.RIGHT)


def is_plain_step(plan: Recursive) -> bool:
    """Whether every row of a step comes from one row of the last iteration, by joins and
    conditions.
    """
    scans = sum(scan.cte == plan.cte for scan in cte_scans(plan.step))
    return scans == 1 and not _is_grouped(plan.step) and _row_by_row(plan.step, plan.cte)


def _is_grouped(plan: Plan) -> bool:
    """Whether groups are made in the step of a recursion."""
    return any(isinstance(node, GroupBy) for node in plan_nodes(plan))


def _row_by_row(plan: Plan, cte: CteId) -> bool:
    """Whether the rows of the last round come up to here as they are, one by one."""
    match plan:
        case CteScan():
            return plan.cte == cte
        case Project() | Filter():
            return _row_by_row(plan.input, cte)
        case Join():
            if any(scan.cte == cte for scan in cte_scans(plan.left)):
                return plan.kind in _KEEPING_LEFT and _row_by_row(plan.left, cte)
            kept = plan.kind in _KEEPING_RIGHT and not plan.lateral
            return kept and _row_by_row(plan.right, cte)
        case _:
            return False


def emit_with_iterations(
    plan: Plan,
    relations: Mapping[RelationId, str],
    parameters: Sequence[Value],
    emit: Emit,
    unsupported: Callable[[str], SqlError],
    *,
    prefix: str,
) -> EmittedQuery:
    """The plan as a statement and the relations computed before it. `prefix`: of the names of these
    relations. `emit`: writes one statement of a plan without such recursions. `unsupported`: the
    error for a plan that the engine refuses.
    """
    in_rounds = [part for part in _recursions(plan) if _takes_rounds(part)]
    if not in_rounds:
        return emit(plan, relations, parameters)
    definitions = {part.cte: part.definition for part in _withs(plan)}
    emission = _Emission(emit, unsupported, parameters, prefix, dict(relations), definitions)
    emission.note_read(in_rounds)
    return emission.query(plan)


def _takes_rounds(plan: Recursive) -> bool:
    return not (plan.all and is_plain_step(plan)) and bool(plan.columns)


def _recursions(plan: Plan) -> Iterator[Recursive]:
    """All recursions of a plan, at every depth."""
    return (node for node in walk(plan) if isinstance(node, Recursive))


def _withs(plan: Plan) -> Iterator[With]:
    """All WITH queries that are made once, at every depth."""
    return (node for node in walk(plan) if isinstance(node, With))


@dataclass(slots=True)
class _Emission:
    """The emission of one statement and of what is made for it."""

    emit: Emit
    unsupported: Callable[[str], SqlError]
    parameters: Sequence[Value]
    prefix: str
    relations: dict[RelationId, str]
    definitions: Mapping[CteId, Plan]
    read: set[CteId] = field(default_factory=set[CteId])
    """The WITH queries that recursions read (T2)."""
    rows_max: dict[CteId, int] = field(default_factory=dict[CteId, int])
    """How many rows of a recursion are enough (T5)."""
    stand_ins: dict[CteId, RelationId] = field(default_factory=dict[CteId, RelationId])
    """What is scanned in place of WITH queries and of the last rounds of recursions."""
    made: dict[RelationId, DerivedRelation] = field(
        default_factory=dict[RelationId, DerivedRelation]
    )
    last: set[RelationId] = field(default_factory=set[RelationId])
    numbers: Iterator[int] = field(
        default_factory=lambda: range_of_column_ids(IdRange.RECURSION_ROUNDS)
    )
    names: Iterator[int] = field(default_factory=lambda: count(1))

    def note_read(self, plans: Sequence[Plan]) -> None:
        """Note that these plans, and the WITH queries that they read, are computed before the
        statement.
        """
        for scan in (scan for plan in plans for scan in cte_scans(plan)):
            if scan.cte in self.definitions and scan.cte not in self.read:
                self.read.add(scan.cte)
                self.note_read([self.definitions[scan.cte]])

    def query(self, plan: Plan) -> EmittedQuery:
        """A plan as a statement over relations that are computed before it."""
        over_made = self._taken_out(plan)
        read = list(dict.fromkeys(scan.relation for scan in _scans(over_made)))
        made = tuple(self.made[relation] for relation in read if relation in self.made)
        rounds = frozenset(self.relations[one] for one in read if one in self.last)
        query = self.emit(over_made, self.relations, self.parameters)
        return replace(query, made=made, rounds=rounds.union(*[one.within for one in made]))

    def _taken_out(self, value: _T) -> _T:
        """The plan with scans in place of what is made before it, at every depth."""
        match value:
            case CteScan() if value.cte in self.stand_ins:
                relation = self.stand_ins[value.cte]
                return _scan(relation, value.name, value.columns)  # type: ignore[return-value]
            case With() if value.cte in self.read:
                self._make(value)
                return self._taken_out(value.input)  # type: ignore[return-value]
            case Recursive() if _takes_rounds(value):
                return self._in_rounds(value)  # type: ignore[return-value]
            case Limit():
                self._note_limit(value)
            case Subquery():
                self._check_subquery(value)
            case _:
                pass
        return rebuild_parts(value, self._taken_out)

    def _relation(self) -> RelationId:
        """A new relation, with a name."""
        name = f"{self.prefix}_{next(self.names)}"
        relation = RelationId(name)
        assert relation not in self.relations, "what is made has names of its own"
        self.relations[relation] = name
        return relation

    def _make(self, plan: With) -> None:
        """A WITH query, made once (T2)."""
        query = self.query(plan.definition)
        relation = self.stand_ins[plan.cte] = self._relation()
        self.made[relation] = DerivedRelation(self.relations[relation], query)

    def _in_rounds(self, plan: Recursive) -> Scan:
        """A recursion, made in rounds (T1)."""
        if free_columns(plan):
            raise self.unsupported("WITH RECURSIVE that refers to the query around it")
        base = self.query(plan.base if plan.all else DistinctRows(plan.base))
        last = self.stand_ins[plan.cte] = self._relation()
        self.last.add(last)
        relation = self._relation()
        step = plan.step if plan.all else self._new_rows(plan, relation)
        rows_max = self.rows_max.get(plan.cte)
        rounds = Iterations(self.query(step), self.relations[last], not plan.all, rows_max)
        self.made[relation] = DerivedRelation(self.relations[relation], base, rounds)
        return _scan(relation, plan.name, plan.columns)

    def _new_rows(self, plan: Recursive, relation: RelationId) -> SetOp:
        """The rows of the step that no round had (T4)."""
        columns = [replace(column, id=ColumnId(next(self.numbers))) for column in plan.columns]
        before = _scan(relation, plan.name, columns)
        return SetOp(SetOpKind.EXCEPT, False, plan.step, before, plan.columns)

    def _note_limit(self, plan: Limit) -> None:
        """How many rows of a recursion are enough, if a limit takes them as they come (T5)."""
        below = plan.input
        while isinstance(below, Project):
            below = below.input
        if not isinstance(below, Recursive) or plan.ties:
            return
        limit, offset = self._known(plan.limit), self._known(plan.offset)
        if limit is not None and limit[0] is not None and offset is not None:
            self.rows_max[below.cte] = max(limit[0], 0) + max(offset[0] or 0, 0)

    def _known(self, expr: Expr | None) -> tuple[int | None] | None:
        """A number of rows, in a tuple of one: None is NULL, or none that is given. No tuple if it
        is computed.
        """
        value: Value = None
        if isinstance(expr, Const):
            value = expr.value
        elif isinstance(expr, Param):
            value = self.parameters[expr.index - 1]
        elif expr is not None:
            return None
        return (value if isinstance(value, int) else None,)

    def _check_subquery(self, expr: Subquery) -> None:
        """Refuses what might fail though nobody asks for it (T3)."""
        for part in _recursions(expr.plan):
            if _takes_rounds(part) and self._may_fail(part):
                raise self.unsupported("a recursion that may fail, in a subquery,")

    def _may_fail(self, plan: Plan) -> bool:
        """Sums and products aside, which hardly any recursion is without."""
        read = {scan.cte for scan in cte_scans(plan)} & self.definitions.keys()
        return plan_may_fail(plan, by_overflow=False, by_several=False) or any(
            self._may_fail(self.definitions[cte]) for cte in read
        )


def _scan(relation: RelationId, name: str, columns: Sequence[PlanColumn]) -> Scan:
    return Scan(relation, name, tuple(columns), tuple(range(len(columns))))


def _scans(value: object) -> Iterator[Scan]:
    """All scans of relations in a plan, at every depth."""
    if isinstance(value, Scan):
        yield value
    for part in parts_with_columns(value):
        yield from _scans(part)
