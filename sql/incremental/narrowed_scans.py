"""Which rows of large relations a plan needs: those that small relations beside them are joined to.

    Join(stored rows, keys, stored.k = keys.k)     stored rows with k among the keys are enough

A scan is *narrowed* by another plan whose rows it is joined to. That plan may read other scans, if
they were narrowed before.

INVARIANTS
  W1  a plan over its narrowed scans has the rows that it has over all of them: rows that are left
      out have no partner in an inner join, or on the kept side of an outer one.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sql.plan.conditions import compared_columns, conjunction, flatten_conjuncts
from sql.plan.nodes import (
    ColumnId,
    ColumnRef,
    CteScan,
    Distinct,
    DistinctRows,
    Expr,
    Filter,
    GroupBy,
    Join,
    JoinKind,
    Plan,
    Project,
    Recursive,
    RelationId,
    Scan,
    SetOp,
    SetOpKind,
    Sort,
    With,
    output_columns,
)
from sql.plan.traverse import plan_nodes, rewrite_inputs, scans, substitute_columns
from sql.types.sql_type import WHOLE_NUMBER_TYPES


@dataclass(frozen=True, slots=True)
class ScanColumn:
    """A column of a narrowed scan, by its place in it, and the one of the other plan that it is
    equal to. `nulls`: NULLs are equal, too.
    """

    place: int
    equal: int
    nulls: bool


@dataclass(frozen=True, slots=True)
class NarrowedScan:
    """A scan of which only rows count that are equal to a row of another plan in all columns."""

    scan: Scan
    beside: Plan
    columns: tuple[ScanColumn, ...]


def narrowed_scans(plan: Plan, large: frozenset[RelationId]) -> tuple[NarrowedScan, ...] | None:
    """How to narrow all scans of these relations, in an order in which it can be done (W1); None:
    some have to be read whole.
    """
    nodes = [*plan_nodes(plan)]
    if any(isinstance(node, With | CteScan | Recursive) for node in nodes):
        return None
    joins = [node for node in nodes if isinstance(node, Join)]
    if any(join.lateral and any(scans(join.right)) for join in joins):
        return None
    wide = [node for node in nodes if isinstance(node, Scan) and node.relation in large]
    left = {id(scan): scan for scan in wide}
    # One that stands twice, or in a subquery, is not told apart or not reached.
    if len(left) < sum(scan.relation in large for scan in scans(plan)):
        return None
    found: list[NarrowedScan] = []
    while left:
        known = len(found)
        for join in joins:
            found += _narrowed_by(join, left)
        if len(found) == known:
            return None
    return tuple(found)


def _narrowed_by(join: Join, left: dict[int, Scan]) -> Iterator[NarrowedScan]:
    """The scans that a join narrows; they are taken off those that are left."""
    for beside, side in _narrowing_sides(join):
        own = {column.id for column in output_columns(beside)}
        # By scan and by the plan that narrows it.
        found: dict[tuple[int, int], tuple[Plan, list[ScanColumn]]] = {}
        for equal, column, nulls in _equalities(join, own):
            source = _known_source(beside, equal.id, left)
            if source is None:
                continue
            known, ref = source
            place = [one.id for one in output_columns(known)].index(ref)
            for scan, at in _traced(side, column.id):
                if id(scan) in left and _are_comparable(scan, at, equal):
                    _, columns = found.setdefault((id(scan), id(known)), (known, []))
                    columns.append(ScanColumn(at, place, nulls))
        for (key, _), (known, columns) in found.items():
            if key in left:
                yield NarrowedScan(left.pop(key), known, tuple(columns))


def _narrowing_sides(join: Join) -> Iterator[tuple[Plan, Plan]]:
    if join.lateral:
        return
    if join.kind in (JoinKind.INNER, JoinKind.LEFT):
        yield join.left, join.right
    if join.kind in (JoinKind.INNER, JoinKind.RIGHT):
        yield join.right, join.left


def _equalities(
    join: Join, own: Collection[ColumnId]
) -> Iterator[tuple[ColumnRef, ColumnRef, bool]]:
    """One of these columns, one of the other side, and whether NULLs are equal."""
    for conjunct in () if join.condition is None else flatten_conjuncts(join.condition):
        refs = compared_columns(conjunct)
        if refs is None:
            continue
        first, second = refs if refs[0].id in own else refs[::-1]
        if first.id in own and second.id not in own:
            yield first, second, isinstance(conjunct, Distinct)


def _known_source(
    plan: Plan, column: ColumnId, left: Mapping[int, Scan]
) -> tuple[Plan, ColumnId] | None:
    """A part of the plan that has all values of a column, and what it is called there, without a
    scan that is not narrowed yet; None: there is none.
    """
    while any(id(scan) in left for scan in scans(plan)):
        match plan:
            case Filter() | Sort() | DistinctRows():
                plan = plan.input
            case Project():
                made = {c.id: e for c, e in zip(plan.columns, plan.exprs, strict=True)}
                expr = made[column]
                if not isinstance(expr, ColumnRef):
                    return None
                plan, column = plan.input, expr.id
            case Join(kind=JoinKind.INNER | JoinKind.CROSS, lateral=False):
                is_left = any(one.id == column for one in output_columns(plan.left))
                plan = plan.left if is_left else plan.right
            case _:
                return None
    return plan, column


def _are_comparable(scan: Scan, place: int, equal: ColumnRef) -> bool:
    """Whether the values are equal as those of one type are."""
    names = scan.columns[place].type.name, equal.type.name
    return names[0] == names[1] or WHOLE_NUMBER_TYPES.issuperset(names)


def _traced(plan: Plan, column: ColumnId) -> Sequence[tuple[Scan, int]]:
    """The scans that a column comes from as it is, and its place there, if rows with other values
    there make no row with this one.
    """
    match plan:
        case Scan():
            return [(plan, at) for at, one in enumerate(plan.columns) if one.id == column]
        case Project():
            for made, expr in zip(plan.columns, plan.exprs, strict=True):
                if made.id == column:
                    return _traced(plan.input, expr.id) if isinstance(expr, ColumnRef) else ()
            return ()
        case Filter() | Sort() | DistinctRows():
            return _traced(plan.input, column)
        case GroupBy(sets=None):
            for made, key in zip(plan.key_columns, plan.keys, strict=True):
                if made.id == column:
                    return _traced(plan.input, key.id) if isinstance(key, ColumnRef) else ()
            return ()
        case Join(lateral=False):
            return _traced_in_join(plan, column)
        case SetOp(kind=SetOpKind.UNION, all=True):
            found: list[tuple[Scan, int]] = []
            for at, one in enumerate(plan.columns):
                if one.id == column:
                    for side in (plan.left, plan.right):
                        found += _traced(side, output_columns(side)[at].id)
            return found
        case _:
            return ()


def _traced_in_join(plan: Join, column: ColumnId) -> Sequence[tuple[Scan, int]]:
    sides: list[Plan] = []
    if plan.kind is not JoinKind.RIGHT:
        sides.append(plan.left)
    if plan.kind is not JoinKind.LEFT:
        sides.append(plan.right)
    if plan.kind is JoinKind.FULL:
        return ()
    return [one for side in sides for one in _traced(side, column)]


# --- equalities where they can narrow ------------------------------------------------------------


def equalities_at_joins(plan: Plan) -> Plan:
    """The same rows, with the equalities of columns that filters ask for at the joins below them,
    as far down as both columns are there.
    """
    plan = rewrite_inputs(plan, equalities_at_joins)
    if not isinstance(plan, Filter):
        return plan
    below, kept = plan.input, list[Expr]()
    for conjunct in flatten_conjuncts(plan.predicate):
        moved = None if compared_columns(conjunct) is None else _moved_down(below, conjunct)
        if moved is None:
            kept.append(conjunct)
        else:
            below = moved
    return Filter(below, conjunction(kept)) if kept else below


def _moved_down(plan: Plan, conjunct: Expr) -> Plan | None:
    """The plan with a condition at a join in it; None: it has none for these columns."""
    refs = compared_columns(conjunct)
    assert refs is not None, "who calls has asked"
    wanted = {refs[0].id, refs[1].id}
    match plan:
        case Filter() | Sort() | DistinctRows():
            below = _moved_down(plan.input, conjunct)
            return None if below is None else replace(plan, input=below)
        case Project():
            made = {c.id: e for c, e in zip(plan.columns, plan.exprs, strict=True)}
            if not all(isinstance(made.get(id_), ColumnRef) for id_ in wanted):
                return None
            below = _moved_down(plan.input, substitute_columns(conjunct, made))
            return None if below is None else replace(plan, input=below)
        case Join(lateral=False):
            return _at_join(plan, conjunct, wanted)
        case _:
            return None


def _at_join(plan: Join, conjunct: Expr, wanted: set[ColumnId]) -> Plan | None:
    left = {column.id for column in output_columns(plan.left)}
    if wanted <= left and plan.kind is not JoinKind.RIGHT and plan.kind is not JoinKind.FULL:
        below = _moved_down(plan.left, conjunct)
        return None if below is None else replace(plan, left=below)
    if not wanted & left and plan.kind is not JoinKind.LEFT and plan.kind is not JoinKind.FULL:
        below = _moved_down(plan.right, conjunct)
        return None if below is None else replace(plan, right=below)
    if wanted <= left or not wanted & left:
        return None
    if plan.kind is JoinKind.CROSS:
        return replace(plan, kind=JoinKind.INNER, condition=conjunct)
    if plan.kind is JoinKind.INNER:
        assert plan.condition is not None, "only a cross join has none"
        return replace(plan, condition=conjunction([conjunct, plan.condition]))
    return None
