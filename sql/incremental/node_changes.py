"""The changes of each node of a plan, as terms that add up to them (D1, D2).

    changes(node) ─▶ terms: weighted plans over changes of inputs, and over inputs before and after

A term has the columns of its node, and the weight. What keys restrict is made once, as a step.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Final, TypeVar

from sql.incremental.affected_rows import (
    Correlation,
    ScanKeys,
    find_correlation,
    join_correlation,
    reading_subqueries,
    restrict_to_keys,
)
from sql.incremental.node_keys import (
    KeyedInputs,
    keyed_inputs,
    listed_query,
    node_inputs,
    relations_read,
    with_conditions_above,
)
from sql.incremental.program import (
    ChangesStep,
    InputSide,
    KeysStep,
    ProgramPlan,
    StepTerm,
    side_of_input,
    step_scan,
)
from sql.plan.changes_of_plans import has_exact_equality
from sql.plan.nodes import (
    ColumnId,
    Const,
    DistinctRows,
    Expr,
    Filter,
    Join,
    JoinKind,
    Plan,
    PlanColumn,
    Project,
    RelationId,
    Scan,
    SetOp,
    SetOpKind,
    Sort,
    Subquery,
    output_columns,
)
from sql.plan.projections import column_reference, column_references
from sql.plan.renumbering import rebuild_parts
from sql.plan.traverse import rewrite_inputs, scans
from sql.types.sql_type import INT8, SqlType

_T = TypeVar("_T")

ROW_BY_ROW: Final = "row by row"
CHANGES_OF_SIDES: Final = "changes of each side, beside all rows of the other one"
OF_ONE_SIDE: Final = "changes of the kept rows; affected keys of the others"
AFFECTED: Final = "affected keys"
ADDED: Final = "added to, or affected keys"
FULL: Final = "full"


@dataclass(frozen=True, slots=True)
class WeightedTerm:
    """Changes of a node: its columns and, somewhere, the weight. None if all sources are empty."""

    plan: Plan
    weight: PlanColumn
    sources: frozenset[RelationId]


def at_side(value: _T, side: InputSide) -> _T:
    """The plan or expression over its inputs as they are before or after."""
    made = rebuild_parts(value, lambda part: at_side(part, side))
    if isinstance(made, Scan):
        return replace(made, relation=side_of_input(made.relation, side))
    return made


class NodeChanges:
    """Derives the changes of nodes, and collects the steps that they need."""

    def __init__(self, first_id: int) -> None:
        self._ids = count(first_id)
        self.steps: list[ChangesStep | KeysStep] = []
        self.ways: dict[int, str] = {}
        """By identity of a node, how it is maintained."""
        self.whole: list[tuple[Plan, frozenset[RelationId]]] = []
        """The nodes that are full, and the inputs whose changes they are computed anew for."""
        self._changes_of_scans: dict[tuple[RelationId, tuple[int, ...]], ChangesStep] = {}

    def new_column(self, like: PlanColumn) -> PlanColumn:
        """A column with an id of its own."""
        return replace(like, id=ColumnId(next(self._ids)))

    def column(self, name: str, type_: SqlType) -> PlanColumn:
        """A new column."""
        return PlanColumn(ColumnId(next(self._ids)), name, type_)

    def weight(self) -> PlanColumn:
        """A new column of weights."""
        return self.column("weight", INT8)

    def new_id(self) -> ColumnId:
        """An id that no column has."""
        return ColumnId(next(self._ids))

    # --- one node ------------------------------------------------------------------------------

    def changes(self, plan: Plan) -> tuple[WeightedTerm, ...]:
        """The terms of a node."""
        if not any(scans(plan)):
            return ()
        match plan:
            case Scan():
                self.ways[id(plan)] = "its changes"
                return (self._read(self._scan(plan), plan.columns),)
            case Sort():
                self.ways[id(plan)] = "not maintained: rows of a view have no order"
                return self.changes(plan.input)
            case Filter() | Project():
                return self._by_rows(plan)
            case Join():
                return self._join(plan)
            case SetOp(kind=SetOpKind.UNION, all=True):
                self.ways[id(plan)] = ROW_BY_ROW
                terms = (*self.changes(plan.left), *self.changes(plan.right))
                return tuple([_named(term, plan.columns) for term in terms])
            case _:
                return self._by_keys(plan)

    def _scan(self, plan: Scan) -> ChangesStep:
        """The step with the changes of an input, as far as these columns show them."""
        key = (plan.relation, plan.ordinals)
        known = self._changes_of_scans.get(key)
        if known is not None:
            return known
        terms: list[StepTerm] = []
        for side, sign in ((InputSide.WENT, -1), (InputSide.CAME, 1)):
            relation = side_of_input(plan.relation, side)
            rows = replace(plan, relation=relation)
            terms.append(StepTerm(ProgramPlan.of(self._signed(rows, sign)), frozenset([relation])))
        name = RelationId(f"changes {len(self.steps)} of {plan.name}")
        step = ChangesStep(name, (*plan.columns, self.weight()), tuple(terms))
        self.steps.append(step)
        self._changes_of_scans[key] = step
        return step

    def _read(self, step: ChangesStep, columns: Sequence[PlanColumn]) -> WeightedTerm:
        """The rows of a step, in these columns."""
        weight = self.weight()
        plan = step_scan(step.relation, (*columns, weight))
        return WeightedTerm(plan, weight, frozenset([step.relation]))

    def _signed(self, plan: Plan, sign: int) -> Plan:
        """All rows of a plan, with a weight."""
        columns = output_columns(plan)
        exprs: tuple[Expr, ...] = (*column_references(columns), Const(sign, INT8))
        return Project(plan, (*columns, self.weight()), exprs)

    def _by_rows(self, plan: Filter | Project) -> tuple[WeightedTerm, ...]:
        if reading_subqueries(plan):
            return self._beside_subqueries(plan)
        self.ways[id(plan)] = ROW_BY_ROW
        return tuple([_over_term(plan, term) for term in self.changes(plan.input)])

    # --- joins ---------------------------------------------------------------------------------

    def _join(self, plan: Join) -> tuple[WeightedTerm, ...]:
        inner = plan.kind in (JoinKind.INNER, JoinKind.CROSS)
        if reading_subqueries(plan):
            return self._by_rows(with_conditions_above(plan)) if inner else self._whole(plan)
        if plan.lateral and any(scans(plan.right)):
            return self._lateral(plan)
        if inner or (plan.lateral and not any(scans(plan.right))):
            self.ways[id(plan)] = CHANGES_OF_SIDES
            return self._telescoped(plan)
        if plan.kind is JoinKind.FULL:
            return self._by_keys(plan)
        kept, other = plan.left, plan.right
        if plan.kind is JoinKind.RIGHT:
            kept, other = other, kept

        def make(rows: Plan, side: InputSide) -> Plan:
            beside = at_side(other, side)
            left, right = (rows, beside) if plan.kind is JoinKind.LEFT else (beside, rows)
            return replace(plan, left=left, right=right)

        return self._kept(plan, kept, [other], [join_correlation(plan, other)], make)

    def _telescoped(self, plan: Join) -> tuple[WeightedTerm, ...]:
        """Changes of the left side with the right one after, and of the right side with the left
        one before: what is new on both sides is counted once.
        """
        columns, found = output_columns(plan), list[WeightedTerm]()
        for term in self.changes(plan.left):
            made = replace(plan, left=term.plan, right=at_side(plan.right, InputSide.AFTER))
            found.append(_shown(made, columns, term))
        for term in self.changes(plan.right):
            made = replace(plan, left=at_side(plan.left, InputSide.BEFORE), right=term.plan)
            found.append(_shown(made, columns, term))
        return tuple(found)

    def _lateral(self, plan: Join) -> tuple[WeightedTerm, ...]:
        def make(rows: Plan, side: InputSide) -> Plan:
            return replace(plan, left=rows, right=at_side(plan.right, side))

        return self._kept(plan, plan.left, [plan.right], [find_correlation(plan.right)], make)

    # --- nodes that are made of rows of one side, beside others -----------------------------------

    def _beside_subqueries(self, plan: Filter | Project) -> tuple[WeightedTerm, ...]:
        queries = reading_subqueries(plan)
        found = [find_correlation(query) for query in queries]
        listed = listed_query(plan)
        if listed is not None:
            return self._listed(plan, listed)

        def make(rows: Plan, side: InputSide) -> Plan:
            return at_side_of_expressions(plan, rows, side)

        return self._kept(plan, plan.input, queries, found, make)

    def _listed(self, plan: Filter | Project, listed: Subquery) -> tuple[WeightedTerm, ...]:
        """A filter `args IN (query)`: rows with these values are affected."""

        def make(rows: Plan, side: InputSide) -> Plan:
            return at_side_of_expressions(plan, rows, side)

        def affected(keys: ScanKeys) -> Plan:
            before = at_side(plan.input, InputSide.BEFORE)
            return restrict_to_keys(before, list(listed.args), keys)

        values = column_references(output_columns(listed.plan))
        terms = [_over(plan, make, term) for term in self.changes(plan.input)]
        keys = self._keys([(listed.plan, values)])
        self.ways[id(plan)] = OF_ONE_SIDE
        return (*terms, self._differenced(plan, affected, make, keys))

    def _kept(
        self,
        plan: Plan,
        kept: Plan,
        others: Sequence[Plan],
        found: Sequence[Correlation | None],
        make: Callable[[Plan, InputSide], Plan],
    ) -> tuple[WeightedTerm, ...]:
        """`make(rows of kept, side of the others)` adds up over rows of the kept side."""
        terms = [_over(plan, make, term) for term in self.changes(kept)]
        correlation = found[0] if len(found) == 1 else None
        if correlation is None:
            sources = self.sources(others)
            self.ways[id(plan)] = "changes of the kept rows; full if the others change"
            self.whole.append((plan, relations_read(others)))
            rows = at_side(kept, InputSide.BEFORE)
            step = self._difference(
                make(rows, InputSide.AFTER), make(rows, InputSide.BEFORE), sources
            )
            return (*terms, self._read(step, output_columns(plan)))
        self.ways[id(plan)] = OF_ONE_SIDE
        before = at_side(kept, InputSide.BEFORE)
        affected = partial(correlation.affected, before)

        keys = self._keys([(correlation.inner, correlation.keys)])
        return (*terms, self._differenced(plan, affected, make, keys))

    def _differenced(
        self,
        plan: Plan,
        affected: Callable[[ScanKeys], Plan],
        make: Callable[[Plan, InputSide], Plan],
        keys: KeysStep,
    ) -> WeightedTerm:
        """The affected rows, with the others after and before."""
        scan = self.scan_of_keys(keys)
        after = make(affected(scan), InputSide.AFTER)
        before = make(affected(scan), InputSide.BEFORE)
        step = self._difference(after, before, frozenset([keys.relation]))
        return self._read(step, output_columns(plan))

    # --- nodes with keys -----------------------------------------------------------------------

    def _by_keys(self, plan: Plan) -> tuple[WeightedTerm, ...]:
        """The node for affected keys, after and before; for all rows if it has no keys."""
        keyed = keyed_inputs(plan)
        if keyed is None:
            return self._whole(plan)
        self.ways[id(plan)] = AFFECTED
        keys = self.keys_of(plan, keyed)
        sides = [self.keyed_node(plan, keyed, keys, s) for s in (InputSide.AFTER, InputSide.BEFORE)]
        step = self._difference(sides[0], sides[1], frozenset([keys.relation]))
        return (self._read(step, output_columns(plan)),)

    def keys_of(self, plan: Plan, keyed: KeyedInputs) -> KeysStep:
        """The keys that changes of the node's inputs affect."""
        return self._keys([*zip(node_inputs(plan), keyed.keys, strict=True)])

    def keyed_node(self, plan: Plan, keyed: KeyedInputs, keys: KeysStep, side: InputSide) -> Plan:
        """The node over the rows of its inputs with these keys."""
        scan, places = self.scan_of_keys(keys), iter(keyed.keys)

        def restricted(below: Plan) -> Plan:
            return restrict_to_keys(at_side(below, side), next(places), scan)

        return rewrite_inputs(plan, restricted)

    def _keys(self, parts: Iterable[tuple[Plan, Sequence[Expr]]]) -> KeysStep:
        """The keys of the changes of these plans, all in the same columns."""
        terms: list[StepTerm] = []
        columns: tuple[PlanColumn, ...] = ()
        for plan, exprs in parts:
            columns = columns or tuple(
                [PlanColumn(self.new_id(), f"k{at}", expr.type) for at, expr in enumerate(exprs)]
            )
            for term in self.changes(plan):
                found = Project(term.plan, columns, tuple(exprs))
                terms.append(StepTerm(ProgramPlan.of(DistinctRows(found)), term.sources))
        name = RelationId(f"keys {len(self.steps)}")
        distinct = None
        if not all(has_exact_equality(column.type) for column in columns):
            distinct = ProgramPlan.of(DistinctRows(step_scan(name, columns)))
        step = KeysStep(name, columns, tuple(terms), distinct)
        self.steps.append(step)
        return step

    def scan_of_keys(self, step: KeysStep) -> ScanKeys:
        """Makes scans of a step's keys."""
        return lambda: step_scan(step.relation, [self.new_column(c) for c in step.columns])

    # --- whole nodes ---------------------------------------------------------------------------

    def _whole(self, plan: Plan) -> tuple[WeightedTerm, ...]:
        """The node over all of its inputs, after and before."""
        self.ways[id(plan)] = FULL
        sources = self.sources([plan])
        self.whole.append((plan, relations_read([plan])))
        step = self._difference(
            at_side(plan, InputSide.AFTER), at_side(plan, InputSide.BEFORE), sources
        )
        return (self._read(step, output_columns(plan)),)

    def sources(self, plans: Iterable[Plan]) -> frozenset[RelationId]:
        """The changes of all inputs of plans."""
        return frozenset(self._scan(one).relation for plan in plans for one in scans(plan))

    def _difference(self, after: Plan, before: Plan, sources: frozenset[RelationId]) -> ChangesStep:
        """A step with the rows of one plan that another one has not, and the other way round."""
        terms = [
            StepTerm(ProgramPlan.of(self._signed(plan, sign)), sources)
            for plan, sign in ((after, 1), (before, -1))
        ]
        return self._changes_step(output_columns(after), terms)

    def result(self, plan: Plan) -> ChangesStep:
        """The last step: the changes of the whole plan."""
        columns = output_columns(plan)
        terms = [
            StepTerm(ProgramPlan.of(_shown(term.plan, columns, term).plan), term.sources)
            for term in self.changes(plan)
        ]
        return self._changes_step(columns, terms)

    def units(
        self, plan: Plan, columns: Sequence[PlanColumn], exprs: Sequence[Expr]
    ) -> ChangesStep:
        """A step with these expressions over the changes of a plan, one row for each change."""
        terms: list[StepTerm] = []
        for term in self.changes(plan):
            shown = (*exprs, column_reference(term.weight))
            made = Project(term.plan, (*columns, term.weight), shown)
            terms.append(StepTerm(ProgramPlan.of(made), term.sources))
        return self._changes_step(columns, terms, units=True)

    def made_keys(
        self, columns: Sequence[PlanColumn], plan: Plan, sources: frozenset[RelationId]
    ) -> KeysStep:
        """A step with the rows of a plan."""
        name = RelationId(f"keys {len(self.steps)}")
        step = KeysStep(name, tuple(columns), (StepTerm(ProgramPlan.of(plan), sources),), None)
        self.steps.append(step)
        return step

    def _changes_step(
        self,
        columns: Sequence[PlanColumn],
        terms: Sequence[StepTerm],
        *,
        units: bool = False,
    ) -> ChangesStep:
        name = RelationId(f"changes {len(self.steps)}")
        step = ChangesStep(name, (*columns, self.weight()), tuple(terms), units)
        self.steps.append(step)
        return step


# --- putting terms together -----------------------------------------------------------------------


def at_side_of_expressions(plan: Filter | Project, rows: Plan, side: InputSide) -> Plan:
    """The node over other rows, its subqueries over their inputs before or after."""
    if isinstance(plan, Filter):
        return Filter(rows, at_side(plan.predicate, side))
    return replace(plan, input=rows, exprs=at_side(plan.exprs, side))


def _over(plan: Plan, make: Callable[[Plan, InputSide], Plan], term: WeightedTerm) -> WeightedTerm:
    """A node over the changes of its kept side, the others after."""
    made = make(term.plan, InputSide.AFTER)
    if isinstance(made, Project):
        return _projected(made, term)
    return _shown(made, output_columns(plan), term)


def _over_term(plan: Filter | Project, term: WeightedTerm) -> WeightedTerm:
    if isinstance(plan, Project):
        return _projected(replace(plan, input=term.plan), term)
    return replace(term, plan=Filter(term.plan, plan.predicate))


def _projected(plan: Project, term: WeightedTerm) -> WeightedTerm:
    exprs = (*plan.exprs, column_reference(term.weight))
    made = replace(plan, columns=(*plan.columns, term.weight), exprs=exprs)
    return replace(term, plan=made)


def _shown(plan: Plan, columns: Sequence[PlanColumn], term: WeightedTerm) -> WeightedTerm:
    """The columns in this order, the weight last."""
    shown = (*columns, term.weight)
    made = plan if output_columns(plan) == shown else Project(plan, shown, column_references(shown))
    return replace(term, plan=made)


def _named(term: WeightedTerm, columns: Sequence[PlanColumn]) -> WeightedTerm:
    """The columns of a term by other names."""
    own = tuple([c for c in output_columns(term.plan) if c.id != term.weight.id])
    refs = (*column_references(own), column_reference(term.weight))
    return replace(term, plan=Project(term.plan, (*columns, term.weight), refs))
