"""Choose names for range table entries and their columns (set_rtable_names of ruleutils.c).

INVARIANTS
  E1  no two entries of a query, or of one and a query around it, have one name.
  E2  columns that came later are not seen: an entry lists its columns where a name would be another
      one without the list.
"""

from collections.abc import Collection

from sql.deparse.coercion import UnknownShape
from sql.deparse.nodes import Cast, Entry, FromNode, JoinTree, Listed, QueryTree, TypedExpr, Var


def name_entries(query: QueryTree, around: frozenset[str]) -> frozenset[str]:
    """Name all entries of a query; the names of this query and of those around."""
    names = set(around)
    for entry in query.table:
        wanted = _wanted(entry)
        entry.shown = None if wanted is None else _unique(wanted, names)
        if entry.shown is not None:
            names.add(entry.shown)
    for entry in query.table:
        entry.shown_columns = [None] * len(entry.columns)
    for source in query.sources:
        _force_merged(source, {})
    for entry in query.table:
        _name_columns(entry)
    return frozenset(names)


def _wanted(entry: Entry) -> str | None:
    if entry.alias is not None:
        return entry.alias
    if entry.kind == "join":
        return None
    # Of a relation its present name stands there already.
    return entry.relation_name if entry.kind == "relation" else entry.name


def _unique(wanted: str, names: Collection[str]) -> str:
    number, name = 0, wanted
    while name in names:
        number += 1
        name = f"{wanted}_{number}"
    return name


def _force_merged(node: FromNode, forced: dict[int, str]) -> None:
    """A merged column has the name of USING on both sides (set_using_names)."""
    if not isinstance(node, JoinTree):
        return
    entry = node.entry
    for name, pair in zip(node.using, node.pairs, strict=True):
        for expr in pair:
            _force(expr, name)
    for at, name in enumerate(node.using):
        entry.shown_columns[at] = entry.shown_columns[at] or name
    _force_merged(node.left, forced)
    _force_merged(node.right, forced)


def _force(expr: TypedExpr, name: str) -> None:
    """The column that a merged column is made of."""
    if isinstance(expr, Var):
        entry = expr.entry
        entry.shown_columns[expr.at] = entry.shown_columns[expr.at] or name
        if entry.kind == "join":
            _force(entry.merged[expr.at], name)
    elif isinstance(expr, Listed):
        for part in expr.args:
            _force(part, name)
    elif isinstance(expr, Cast):
        _force(expr.arg, name)


def _name_columns(entry: Entry) -> None:
    """set_relation_column_names, set_join_column_names."""
    if entry.kind == "join" and entry.alias is not None:
        _refuse_changed_parts(entry)
    real = _joined_names(entry) if entry.kind == "join" else entry.real
    taken = {name for name in entry.shown_columns if name is not None}
    changed = False
    for at, below in enumerate(real):
        if below is None:
            continue
        name = entry.shown_columns[at]
        if name is None:
            given = at < len(entry.alias_columns)
            wanted = entry.alias_columns[at] if given else below
            is_bare_join = entry.kind == "join" and entry.alias is None
            name = wanted if is_bare_join else _unique(wanted, taken)
            taken.add(name)
            entry.shown_columns[at] = name
        changed = changed or name != below
    later: list[str] = []
    for below in entry.later:
        name = _unique(below, taken)
        taken.add(name)
        later.append(name)
        changed = changed or name != below
    entry.later_shown = later
    entry.prints_columns = _prints_columns(entry, changed=changed)


def _refuse_changed_parts(entry: Entry) -> None:
    """The list of a join's alias counts all columns of its parts, also those that came later."""
    for expr in entry.merged:
        if isinstance(expr, Var) and (expr.entry.later or None in expr.entry.real):
            raise UnknownShape("an alias of a join whose parts have changed")


def _joined_names(entry: Entry) -> list[str | None]:
    names: list[str | None] = []
    for at, expr in enumerate(entry.merged):
        if isinstance(expr, Var):
            names.append(expr.entry.shown_columns[expr.at])
        else:
            names.append(entry.shown_columns[at] or entry.columns[at])
    return names


def _prints_columns(entry: Entry, *, changed: bool) -> bool:
    if entry.kind == "function":
        return True
    if entry.kind == "join":
        return changed and entry.alias is not None
    return changed or (entry.kind != "relation" and bool(entry.alias_columns))
