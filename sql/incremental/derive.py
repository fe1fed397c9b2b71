"""Choose how a query is maintained, and make the program of it.

┌ Project, Filter, Sort ─ a node whose keys are shown ─▶ keys:    stored rows with affected keys
├ every node is determined ────────────────────────────▶ changes: the rows that go, by value
└ others ──────────────────────────────────────────────▶ full:    all rows, compared
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from sql.errors import SqlError
from sql.incremental.added_groups import GroupSums, can_be_added_to, group_sums
from sql.incremental.affected_rows import joined_with_equal_keys, reading_subqueries
from sql.incremental.node_changes import (
    ADDED,
    AFFECTED,
    FULL,
    ROW_BY_ROW,
    NodeChanges,
    at_side,
)
from sql.incremental.node_keys import KeyedInputs, keyed_inputs
from sql.incremental.normalize import with_queries_inlined
from sql.incremental.program import (
    LEAVING_ROWS,
    STORED_ROWS,
    ChangesByKey,
    ChangesByValue,
    InputSide,
    KeysStep,
    MaintenanceProgram,
    NodeNote,
    NotIncremental,
    ProgramPlan,
    StepTerm,
    Strategy,
    step_scan,
)
from sql.incremental.shown_nodes import RowNode, rows_above, shown_places, undetermined_below
from sql.plan.changes_of_plans import undetermined_part
from sql.plan.conditions import conjunction
from sql.plan.nodes import (
    BoolOp,
    Coalesce,
    ColumnId,
    ColumnRef,
    Const,
    CteScan,
    Distinct,
    DistinctOn,
    DistinctRows,
    Expr,
    Filter,
    GroupBy,
    IsTest,
    Join,
    JoinKind,
    Limit,
    Logical,
    Plan,
    PlanColumn,
    Project,
    Recursive,
    Scan,
    SetOp,
    SetOpKind,
    SetScan,
    Sort,
    Test,
    Values,
    Window,
    With,
    output_columns,
)
from sql.plan.projections import append_columns, column_reference, column_references
from sql.plan.pruning import prune_columns
from sql.plan.renumbering import defined_columns
from sql.plan.system_columns import relations_with_versions
from sql.plan.traverse import (
    inputs,
    is_volatile_plan,
    plan_expressions,
    scans,
    subqueries,
    substitute_columns,
    walk,
)
from sql.types.comparability import check_equality
from sql.types.sql_type import BOOL, INT4, INT8, TEXT, SqlType


def maintenance_program(plan: Plan) -> MaintenanceProgram | NotIncremental:
    """How the rows of a query change with its inputs. The plan is that of the stored rows: its
    columns have the types of the view's.
    """
    if is_volatile_plan(plan):
        return NotIncremental("volatile functions")
    if relations_with_versions(plan):
        return NotIncremental("ctid or xmin")
    if not output_columns(plan):
        return NotIncremental("no columns")
    used = [column.id for column in defined_columns(plan)]
    used += [ColumnId(part.cte) for part in walk(plan) if isinstance(part, With | Recursive)]
    changes = NodeChanges(1 + max(used, default=0))
    plan = prune_columns(with_queries_inlined(plan, changes.new_id))
    return _Choice(plan, changes).program()


@dataclass(slots=True)
class _KeyedTop:
    """The nodes at the top of a plan, row by row, and the one with keys below them. `shown`: which
    keys stand in which columns of the plan.
    """

    above: tuple[RowNode, ...]
    node: Plan
    keyed: KeyedInputs
    shown: Mapping[int, int]


@dataclass(slots=True)
class _SummedTop:
    """The same of a node whose groups are added to. `keys`, `aggregates`: the columns of the plan
    that they are shown in.
    """

    above: tuple[RowNode, ...]
    node: GroupBy
    keys: Sequence[int]
    aggregates: Sequence[int]


class _Choice:
    """The derivation for one plan."""

    def __init__(self, plan: Plan, changes: NodeChanges) -> None:
        self._plan = plan
        self._changes = changes
        self._columns = output_columns(plan)

    def program(self) -> MaintenanceProgram:
        summed = _summed_top(self._plan)
        if summed is not None and undetermined_below(summed.node) is None:
            return self._by_sums(summed)
        top = _keyed_top(self._plan)
        undetermined = undetermined_part(self._plan)
        if top is not None and undetermined_below(top.node) is None:
            return self._by_key(top)
        if undetermined is not None:
            return self._full(f"several answers are right: {undetermined}")
        step = self._changes.result(self._plan)
        every = frozenset(scan.relation for scan in scans(self._plan))
        for node, relations in self._changes.whole:
            if every <= relations:
                self._changes = NodeChanges(int(self._changes.new_id()))
                return self._full(f"every change may bear on all rows: {node_title(node)}")
        columns = step.columns[:-1]
        return self._made(
            ChangesByValue(step.relation, ProgramPlan.of(self._stored_like(columns))),
            Strategy.CHANGES,
            None,
        )

    def _made(
        self,
        result: ChangesByValue | ChangesByKey,
        strategy: Strategy,
        reason: str | None,
        keys: Sequence[int] = (),
    ) -> MaintenanceProgram:
        relations = dict.fromkeys(scan.relation for scan in scans(self._plan))
        return MaintenanceProgram(
            tuple(relations),
            tuple(self._changes.steps),
            result,
            self._columns,
            strategy,
            reason,
            tuple(self._notes(self._plan, 0, strategy)),
            tuple(keys),
        )

    def _notes(self, plan: Plan, depth: int, strategy: Strategy) -> Iterator[NodeNote]:
        way = self._changes.ways.get(id(plan))
        # A projection of rows says nothing.
        is_silent = isinstance(plan, Project) and way in (None, ROW_BY_ROW)
        if strategy is Strategy.FULL and not is_silent:
            yield NodeNote(depth, node_title(plan), FULL)
            return
        if way is not None and not is_silent:
            yield NodeNote(depth, node_title(plan), way)
            depth += 1
        within = (inner.plan for expr in plan_expressions(plan) for inner in subqueries(expr))
        for below in chain(inputs(plan), within):
            yield from self._notes(below, depth, strategy)

    # --- full ----------------------------------------------------------------------------------

    def _full(self, reason: str) -> MaintenanceProgram:
        """All rows, compared with all that are stored."""
        sources = self._changes.sources([self._plan])
        rows = at_side(self._plan, InputSide.AFTER)
        terms = (StepTerm(ProgramPlan.of(rows), sources),)
        result = ChangesByKey(sources, ProgramPlan.of(self._stored()), terms)
        return self._made(result, Strategy.FULL, reason)

    # --- by key --------------------------------------------------------------------------------

    def _by_key(self, top: _KeyedTop) -> MaintenanceProgram:
        changes = self._changes
        shown = tuple(top.shown)
        keyed = KeyedInputs(tuple([tuple([k[at] for at in shown]) for k in top.keyed.keys]))
        keys = changes.keys_of(top.node, keyed)
        changes.ways[id(top.node)] = f"{AFFECTED} ({self._names(top)})"
        rows = self._above(top.above, changes.keyed_node(top.node, keyed, keys, InputSide.AFTER))
        found = self._stored_with(keys, [top.shown[at] for at in shown])
        sources = frozenset([keys.relation])
        result = ChangesByKey(sources, ProgramPlan.of(found), (StepTerm(rows, sources),))
        is_unique = isinstance(top.node, GroupBy) and top.node.sets is None
        places = [*top.shown.values()] if is_unique and len(shown) == len(top.keyed.keys[0]) else []
        return self._made(result, Strategy.KEYS, None, places)

    def _above(self, above: Sequence[RowNode], rows: Plan) -> ProgramPlan:
        """The plan of the view with something else in the place of the node with keys."""
        for node in reversed(above):
            self._changes.ways[id(node)] = ROW_BY_ROW
            rows = replace(node, input=rows)
        return ProgramPlan.of(rows)

    # --- by sums -------------------------------------------------------------------------------

    def _by_sums(self, top: _SummedTop) -> MaintenanceProgram:
        changes, node = self._changes, top.node
        sums = group_sums(node, changes.column)
        units = changes.units(node.input, sums.units, sums.exprs)
        scan = step_scan(units.relation, units.columns)
        made = changes.made_keys(
            sums.columns, sums.sums(scan, units.columns[-1]), frozenset([units.relation])
        )
        sources, keyed = frozenset([made.relation]), bool(node.keys)
        names = ", ".join(self._columns[place].name for place in top.keys)
        changes.ways[id(node)] = f"{ADDED} ({names})" if keyed else ADDED
        rest = changes.made_keys(*self._rest(top, sums, made), sources)
        rows: Plan = at_side(node, InputSide.AFTER)
        found: Plan = self._stored()
        if keyed:
            by_key = KeyedInputs((node.keys,))
            rows = changes.keyed_node(node, by_key, rest, InputSide.AFTER)
            found = self._stored_with(made, top.keys)
        added = self._above(top.above, self._added(top, sums, made))
        computed = self._above(top.above, rows)
        terms = (StepTerm(added, sources), StepTerm(computed, frozenset([rest.relation])))
        result = ChangesByKey(sources, ProgramPlan.of(found), terms)
        return self._made(result, Strategy.SUMS, None, top.keys)

    def _added(self, top: _SummedTop, sums: GroupSums, made: KeysStep) -> Plan:
        """The groups that are added to, as the node gives them."""
        stored = replace(self._stored(), identity=None)
        kind = JoinKind.RIGHT if _knows_absent(top, sums) else JoinKind.INNER
        joined, new = self._beside_sums(kind, stored, top, made)
        refs, old = column_references(stored.columns), _old_values(stored, top, sums)
        keys = [refs[place] for place in top.keys]
        mine = [new[column.id] for column in sums.columns[: sums.keys]]
        exprs: list[Expr] = [Coalesce(pair, pair[0].type) for pair in zip(keys, mine, strict=True)]
        exprs += [substitute_columns(value, new) for value in sums.added(old)]
        condition = conjunction([sums.may_be_added(old), sums.remains(old)])
        rows = Filter(joined, substitute_columns(condition, new))
        return Project(rows, output_columns(top.node), tuple(exprs))

    def _rest(
        self, top: _SummedTop, sums: GroupSums, made: KeysStep
    ) -> tuple[Sequence[PlanColumn], Plan]:
        """The keys of the other groups."""
        changes = self._changes
        stored = replace(self._stored(), identity=None)
        there = changes.column("there", BOOL)
        marked = append_columns(stored, {there: Const(True, BOOL)})
        joined, new = self._beside_sums(JoinKind.RIGHT, marked, top, made)
        may_be = sums.may_be_added(_old_values(stored, top, sums))
        others: Expr = Logical(BoolOp.NOT, (substitute_columns(may_be, new),), BOOL)
        if not _knows_absent(top, sums):
            is_none = IsTest(Test.IS_NULL, column_reference(there), BOOL)
            others = Logical(BoolOp.OR, (is_none, others), BOOL)
        rows = Filter(joined, others)
        if not top.keys:
            key = changes.column("k", INT4)
            return (key,), Project(rows, (key,), (Const(0, INT4),))
        keys = tuple([changes.new_column(column) for column in sums.columns[: sums.keys]])
        shown = tuple([new[column.id] for column in sums.columns[: sums.keys]])
        return keys, Project(rows, keys, shown)

    def _beside_sums(
        self, kind: JoinKind, stored: Plan, top: _SummedTop, made: KeysStep
    ) -> tuple[Plan, Mapping[ColumnId, Expr]]:
        """Stored rows and the sums of their groups, and what the columns of these are called."""
        scan = self._changes.scan_of_keys(made)()
        refs = column_references(scan.columns)
        new: dict[ColumnId, Expr] = {
            column.id: ref for column, ref in zip(made.columns, refs, strict=True)
        }
        mine = column_references(output_columns(stored))
        pairs = zip([mine[place] for place in top.keys], refs, strict=False)
        equal = [Distinct(left, right, True, BOOL) for left, right in pairs]
        on = conjunction(equal) if equal else Const(True, BOOL)
        return Join(kind, stored, scan, on), new

    def _names(self, top: _KeyedTop) -> str:
        return ", ".join(self._columns[place].name for place in top.shown.values())

    def _stored(self) -> Scan:
        changes = self._changes
        columns = tuple([changes.new_column(column) for column in self._columns])
        identity = (
            PlanColumn(changes.new_id(), "source", TEXT),
            PlanColumn(changes.new_id(), "index", INT8),
        )
        every = tuple(range(len(columns)))
        return Scan(STORED_ROWS, STORED_ROWS, columns, every, identity)

    def _stored_with(self, keys: KeysStep, places: Sequence[int]) -> Plan:
        """The stored rows with these keys."""
        stored = self._stored()
        refs = column_references([stored.columns[place] for place in places])
        keys = replace(keys, columns=keys.columns[: len(places)])
        return joined_with_equal_keys(stored, refs, self._changes.scan_of_keys(keys))

    def _stored_like(self, columns: Sequence[PlanColumn]) -> Plan:
        """The stored rows that equal one that goes, in the columns that can be compared."""
        stored = self._stored()
        places = [at for at, column in enumerate(columns) if _is_comparable(column.type)]
        if not places:
            return stored
        changes = self._changes
        refs = column_references([stored.columns[place] for place in places])

        def gone() -> Scan:
            made = tuple([changes.new_column(columns[place]) for place in places])
            return Scan(LEAVING_ROWS, LEAVING_ROWS, made, tuple(places))

        return joined_with_equal_keys(stored, refs, gone)


def _summed_top(plan: Plan) -> _SummedTop | None:
    """The node whose groups are added to, if all of it is shown."""
    above, node = rows_above(plan)
    if not isinstance(node, GroupBy) or not can_be_added_to(node) or reading_subqueries(node):
        return None
    places = shown_places(above, node)
    shown = [places.get(ref) for ref in column_references(output_columns(node))]
    known = [place for place in shown if place is not None]
    if len(known) < len(shown):
        return None
    keys = len(node.keys)
    return _SummedTop(tuple(above), node, known[:keys], known[keys:])


def _knows_absent(top: _SummedTop, sums: GroupSums) -> bool:
    """Whether a group that is not stored had no rows: nothing above leaves groups out, and groups
    go with their last rows.
    """
    return sums.counted is not None and not any(isinstance(one, Filter) for one in top.above)


def _old_values(stored: Scan, top: _SummedTop, sums: GroupSums) -> list[Expr]:
    """The values of the aggregates before; those of a group without rows if it is not stored."""
    refs = column_references([stored.columns[place] for place in top.aggregates])
    if not _knows_absent(top, sums):
        return [*refs]
    return [
        Coalesce((ref, Const(0, INT8)), INT8) if call.function.name == "count" else ref
        for ref, call in zip(refs, top.node.aggregates, strict=True)
    ]


def _keyed_top(plan: Plan) -> _KeyedTop | None:
    """The node whose keys are columns of the plan, if there is one below rows by rows."""
    above, node = rows_above(plan)
    union_all = isinstance(node, SetOp) and node.kind is SetOpKind.UNION and node.all
    if union_all or not isinstance(node, GroupBy | Window | DistinctRows | DistinctOn | SetOp):
        return None
    keyed = keyed_inputs(node)
    if keyed is None:
        return None
    places = shown_places(above, node)
    shown: dict[int, int] = {}
    for at, key in enumerate(_shown_keys(node, keyed)):
        if key in places:
            shown[at] = places[key]
    return _KeyedTop(tuple(above), node, keyed, shown) if shown else None


def _shown_keys(node: Plan, keyed: KeyedInputs) -> Sequence[Expr]:
    """The keys as expressions over the node's own columns."""
    match node:
        case GroupBy():
            columns: Mapping[Expr, PlanColumn] = dict(
                zip(reversed(node.keys), reversed(node.key_columns), strict=True)
            )
            return [ColumnRef(columns[key].id, columns[key].type) for key in keyed.keys[0]]
        case SetOp():
            return column_references(node.columns)
        case _:
            return keyed.keys[0]


def _is_comparable(type_: SqlType) -> bool:
    try:
        check_equality(type_, None)
    except SqlError:
        return False
    return True


def node_title(plan: Plan) -> str:
    """A node as EXPLAIN of a program names it."""
    match plan:
        case Scan():
            return f"Scan on {plan.name}"
        case SetOp():
            return f"{plan.kind.value.capitalize()}{' All' if plan.all else ''}"
        case Join():
            return f"{plan.kind.value.capitalize()} Join"
        case GroupBy():
            return "Aggregate"
        case DistinctRows() | DistinctOn():
            return "Unique"
        case Window():
            return "WindowAgg"
        case Recursive():
            return "Recursive Union"
        case Project():
            return "Projection"
        case Values() | SetScan() | CteScan() | With():
            return "Result"
        case Filter():
            return "Filter"
        case Sort():
            return "Sort"
        case Limit():
            return "Limit"
