"""Make a SELECT FOR UPDATE a part of its statement, which runs first and locks the rows it finds.

    select a from t where b order by a limit 1 for update
      ─▶ LockingQuery `locking 1`: the query, with the identity and the key of each row of t
         Scan(`locking 1`) stands where the query stood

The part finds its rows, locks them, and keeps them for the rest of the statement. If a row is not
free, the statement waits and begins again.

INVARIANTS
  R1  a part refers to no outer query, and parts run in the order in which they were bound.
  R2  every row of a locked table that the query yields has its identity and its primary key in
      hidden columns at the end; NULL where an outer join has found none.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sql.binder.expressions.row_calls import acts_in
from sql.binder.queries.target_list import TargetEntry
from sql.binder.resolve.query_result import resolve_unknown_columns
from sql.binder.state import Binding, FromItem, SelectResult
from sql.catalog.catalog import Table
from sql.catalog.meridian_schema import is_server_state
from sql.errors import SqlError, not_supported
from sql.parser.syntax import Node
from sql.plan.nodes import (
    ColumnId,
    Const,
    CteScan,
    Expr,
    Filter,
    Join,
    Limit,
    Plan,
    PlanColumn,
    Project,
    RelationId,
    Scan,
    SetOp,
    SetOpKind,
    Sort,
    With,
    output_columns,
)
from sql.plan.projections import column_reference
from sql.plan.pruning import prune_columns
from sql.plan.renumbering import free_columns
from sql.plan.traverse import (
    column_ids,
    inputs,
    plan_nodes,
    rewrite_inputs,
    scans,
)
from sql.statements.bound import (
    BoundQuery,
    BoundStatement,
    CopyOut,
    CreateTableAs,
    Modify,
    ModifyingWith,
    RefreshMaterializedView,
)
from sql.statements.locking import CANDIDATES, LockedRows, LockingQuery, LockPolicy, RowLockStrength
from sql.types.sql_type import INT8, TEXT


@dataclass(slots=True)
class WantedLocks:
    """What the locking clauses of one SELECT ask for, by table scan of its FROM."""

    scans: dict[int, "_Wanted"] = field(default_factory=dict[int, "_Wanted"])
    """By the identity of the scan."""

    def add(
        self,
        binding: Binding,
        plan: Plan,
        items: Iterable[FromItem],
        strength: RowLockStrength,
        policy: LockPolicy,
    ) -> None:
        """A clause over these items of FROM; the strongest of several counts."""
        by_shard = {RelationId(table.shard): table for table in binding.tables.values()}
        for item in items:
            ids = {id_ for _, expr in item.columns for id_ in column_ids(expr)}
            for scan in _scans_of(plan, ids):
                table = by_shard.get(scan.relation)
                if table is None or is_server_state(table):
                    continue  # rows that nobody can change
                if table.query is not None:
                    message = f'cannot lock rows in materialized view "{table.name}"'
                    raise SqlError("42809", message)
                wanted = _Wanted(table, strength, policy)
                known = self.scans.get(id(scan), wanted)
                self.scans[id(scan)] = _Wanted(
                    table, max(strength, known.strength), max(policy, known.policy)
                )


@dataclass(frozen=True, slots=True)
class _Wanted:
    table: Table
    strength: RowLockStrength
    policy: LockPolicy


@dataclass(slots=True)
class Locking:
    """A SELECT whose rows carry what locks them; `hidden`: these columns, in order (R2)."""

    plan: Plan
    found: list[tuple[_Wanted, Sequence[PlanColumn]]]

    @property
    def hidden(self) -> Sequence[PlanColumn]:
        """All hidden columns."""
        return [column for _, columns in self.found for column in columns]

    def targets(self, node: Node) -> list[TargetEntry]:
        """The hidden columns as entries of the target list that are not shown."""
        return [
            TargetEntry(column.name, column_reference(column), node, junk=True)
            for column in self.hidden
        ]


def _scans_of(plan: Plan, ids: set[ColumnId]) -> Iterator[Scan]:
    """The table scans below an item of FROM, which outputs these columns."""
    if not ids & {column.id for column in output_columns(plan)}:
        return
    if isinstance(plan, Scan):
        yield plan
        return
    below = [child for child in inputs(plan) if ids & {c.id for c in output_columns(child)}]
    if below:
        for child in below:
            yield from _scans_of(child, ids)
    else:
        # The item's own query: a subquery or a view.
        yield from (node for child in inputs(plan) for node in _below(child))


def _below(plan: Plan) -> Iterator[Scan]:
    if isinstance(plan, Scan):
        yield plan
    for child in inputs(plan):
        yield from _below(child)


def with_locked_rows(binding: Binding, plan: Plan, wanted: WantedLocks) -> Locking:
    """The rows of FROM and WHERE with the hidden columns (R2)."""
    adding = _Adding(binding, wanted.scans)
    made = adding.plan(plan)
    shown = {column.id for column in output_columns(made)}
    if any(column.id not in shown for _, columns in adding.found for column in columns):
        raise not_supported("FOR UPDATE of rows that a subquery combines")
    return Locking(made, adding.found)


class _Adding:
    """Adds hidden columns to the scans of locked tables, and hands them up."""

    def __init__(self, binding: Binding, wanted: Mapping[int, _Wanted]) -> None:
        self._binding = binding
        self._wanted = wanted
        self.found: list[tuple[_Wanted, Sequence[PlanColumn]]] = []

    def plan(self, plan: Plan) -> Plan:
        wanted = self._wanted.get(id(plan))
        if isinstance(plan, Scan):
            return plan if wanted is None else self._identified(plan, wanted)
        if isinstance(plan, SetOp) and plan.kind is SetOpKind.UNION and plan.all:
            return self._united(plan)
        before = len(self.found)
        made = rewrite_inputs(plan, self.plan)
        if len(self.found) == before:
            return plan
        match made:
            case Filter() | Join() | Sort() | Limit() | With():
                return made
            case Project():
                return self._handed_up(made, before)
            case _:
                raise not_supported("FOR UPDATE of rows that a subquery combines")

    def _identified(self, scan: Scan, wanted: _Wanted) -> Scan:
        new = self._binding.new_column
        identity = scan.identity or (new("source", TEXT), new("index", INT8))
        scan = replace(scan, identity=identity)
        primary = next((key for key in wanted.table.keys if key.primary), None)
        columns = () if primary is None else primary.columns
        keys = [scan.columns[scan.ordinals.index(ordinal)] for ordinal in columns]
        self.found.append((wanted, (*identity, *keys)))
        return scan

    def _united(self, plan: SetOp) -> Plan:
        """UNION ALL: a row has those of its own side, and NULL for those of the other one."""
        before = len(self.found)
        left = self.plan(plan.left)
        middle = len(self.found)
        right = self.plan(plan.right)
        found = self.found[before:]
        if not found:
            return plan
        places = range(len(found))
        sides = [
            self._side(made, output_columns(side), found, own)
            for made, side, own in (
                (left, plan.left, places[: middle - before]),
                (right, plan.right, places[middle - before :]),
            )
        ]
        new = self._binding.new_column
        self.found[before:] = [
            (wanted, tuple([new(column.name, column.type) for column in columns]))
            for wanted, columns in found
        ]
        hidden = [column for _, columns in self.found[before:] for column in columns]
        return replace(plan, left=sides[0], right=sides[1], columns=(*plan.columns, *hidden))

    def _side(
        self,
        plan: Plan,
        shown: Sequence[PlanColumn],
        found: Sequence[tuple[_Wanted, Sequence[PlanColumn]]],
        own: range,
    ) -> Project:
        exprs: list[Expr] = [column_reference(column) for column in shown]
        for place, (_, columns) in enumerate(found):
            exprs += [
                column_reference(column) if place in own else Const(None, column.type)
                for column in columns
            ]
        columns = [*shown, *(column for _, columns in found for column in columns)]
        made = tuple([self._binding.new_column(column.name, column.type) for column in columns])
        return Project(plan, made, tuple(exprs))

    def _handed_up(self, plan: Project, before: int) -> Project:
        columns, exprs = list(plan.columns), list(plan.exprs)
        for place in range(before, len(self.found)):
            wanted, hidden = self.found[place]
            made = [self._binding.new_column(column.name, column.type) for column in hidden]
            columns += made
            exprs += [column_reference(column) for column in hidden]
            self.found[place] = wanted, made
        return Project(plan.input, tuple(columns), tuple(exprs))


def locking_part(
    binding: Binding, result: SelectResult, locking: Locking, shown: int
) -> SelectResult:
    """Let the query run first, as a part of its own; its rows stand where it stood (R1).

    `result` ends in the projection that drops the hidden columns, which are the last of its input.
    """
    resolve_unknown_columns(binding, result)
    plan = _with_hidden(binding, result.plan, sum(len(columns) for _, columns in locking.found))
    if free_columns(plan):
        raise not_supported("FOR UPDATE in a subquery that refers to an outer query")
    if acts_in(plan):
        raise not_supported("a function that acts for each row of a query FOR UPDATE")
    check_self_contained(plan, "FOR UPDATE")
    relation = RelationId(f"locking {len(binding.locking) + 1}")
    place = shown
    rows: list[LockedRows] = []
    for wanted, columns in locking.found:
        keys = tuple(range(place + 2, place + len(columns)))
        rows.append(LockedRows(wanted.table, wanted.strength, wanted.policy, place, keys))
        place += len(columns)
    plan, limit = _with_more_rows(plan, rows)
    part = LockingQuery(relation, prune_columns(plan), shown, tuple(rows), limit=limit)
    binding.locking.append(part)
    made = tuple([binding.new_column(column.name, column.type) for column in result.columns])
    for column, before in zip(made, result.columns, strict=True):
        binding.follow(column.id, before.id)
    scan = Scan(relation, "locked rows", made, tuple(range(len(made))))
    return replace(result, plan=scan, columns=made, unknown={})


def _with_more_rows(plan: Plan, rows: Sequence[LockedRows]) -> tuple[Plan, int | None]:
    """SKIP LOCKED of one table with a constant LIMIT: the plan with a higher one, and the LIMIT."""
    if len(rows) != 1 or rows[0].policy is not LockPolicy.SKIP:
        return plan, None
    match plan:
        case Project():
            below, limit = _with_more_rows(plan.input, rows)
            return (plan, None) if limit is None else (replace(plan, input=below), limit)
        case Limit(limit=Const(value=int() as limit) as const, offset=None, ties=False):
            return replace(plan, limit=replace(const, value=limit + CANDIDATES)), limit
        case _:
            return plan, None


def _with_hidden(binding: Binding, plan: Plan, count: int) -> Plan:
    """The plan of the rows as they are shown, with the hidden columns behind them."""
    assert isinstance(plan, Project), "the last step drops hidden columns, or gives types"
    below = output_columns(plan.input)
    if isinstance(plan.input, Project) and len(below) == len(plan.columns):
        # It gives types to what the projection below shows.
        inner = _with_hidden(binding, plan.input, count)
        hidden = output_columns(inner)[-count:]
        plan = replace(plan, input=inner)
    else:
        hidden = below[-count:]
    made = tuple([binding.new_column(column.name, column.type) for column in hidden])
    refs = tuple([column_reference(column) for column in hidden])
    return Project(plan.input, (*plan.columns, *made), (*plan.exprs, *refs))


def check_self_contained(plan: Plan, what: str) -> None:
    """0A000 if it reads a WITH query that is computed for several of its uses (R1)."""
    known = {node.cte for node in plan_nodes(plan) if isinstance(node, With)}
    if any(isinstance(node, CteScan) and node.cte not in known for node in plan_nodes(plan)):
        raise not_supported(f"{what} beside a WITH query that is used several times")


def with_locking_parts(binding: Binding, bound: BoundStatement) -> BoundStatement:
    """The statement with the parts that lock rows and run first (R1)."""
    if not binding.locking:
        return bound
    tables = {RelationId(table.shard): table for table in binding.tables.values()}
    parts = tuple([replace(part, tables=_read(part.plan, tables)) for part in binding.locking])
    match bound:
        case BoundQuery():
            return replace(bound, tables=_read(bound.plan, tables), locking=parts)
        case Modify() | ModifyingWith() | CreateTableAs() | RefreshMaterializedView():
            return replace(bound, locking=parts)
        case CopyOut(query=query):
            read = _read(query.plan, tables)
            return replace(bound, query=replace(query, tables=read, locking=parts))
        case _:
            raise not_supported("FOR UPDATE in this statement")


def _read(plan: Plan, tables: Mapping[RelationId, Table]) -> tuple[Table, ...]:
    names = dict.fromkeys(scan.relation for scan in scans(plan))
    return tuple([tables[name] for name in names if name in tables])
