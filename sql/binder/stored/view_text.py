"""Display the query of a view with the current names of its relations and columns (pg_get_viewdef).

    stored:    SELECT a FROM t           t has been renamed to u, its column a to b
    displayed: SELECT a FROM u AS t(a)

INVARIANTS
  W1  the displayed text means the same as the view. The old name of a relation or column becomes an
      alias of its current name, and columns that were added later stay hidden.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pglast import ast
from pglast.stream import RawStream

from sql.binder.stored.views import parse_view_query, query_with_column_names
from sql.catalog.catalog import Catalog, Table
from sql.catalog.objects import ViewDefinition
from sql.parser.syntax import Node, is_a, tree_nodes
from sql.types.sql_type import quoted_name


@dataclass(frozen=True, slots=True)
class _Named:
    """A relation as a view names it, and what it is called now."""

    schema: str | None
    """Where its name needs one."""
    name: str
    before: Mapping[int, str]
    """What its columns were called, by number."""
    now: Mapping[int, str]

    @property
    def renamed(self) -> bool:
        """Whether a column has another name."""
        return any(self.before.get(number) not in (None, name) for number, name in self.now.items())

    @property
    def others(self) -> bool:
        """Whether columns came later, or have gone."""
        return self.before.keys() != self.now.keys()


_Relations: TypeAlias = Mapping[tuple[str, str], _Named]


def view_query_text(catalog: Catalog, path: Collection[str], view: ViewDefinition) -> str:
    """The text of the view's query; relations in the schemas of `path` are shown without their
    schema.
    """
    bare = query_with_column_names(view.text, view.columns)
    found = {
        (schema, name): _named(catalog, path, schema, oid, dict(zip(numbers, names, strict=True)))
        for schema, name, oid, names, numbers in view.relations
    }
    relations = {key: now for key, now in found.items() if now is not None}
    if all(_is_as_written(key, now) for key, now in relations.items()):
        return bare
    tree = parse_view_query(bare)
    by_name = len(relations) == 1 and not any(map(_counts_columns, tree_nodes(tree)))
    _Rewriting(relations, by_name=by_name).inside(tree, frozenset())
    for part in tree_nodes(tree):
        if is_a(part, ast.ColumnRef):
            # The table is an alias now.
            part.fields = part.fields[-2:]
    return str(RawStream()(tree))


def _is_as_written(key: tuple[str, str], now: _Named) -> bool:
    return key == (now.schema or "", now.name) and not now.renamed and not now.others


def _named(
    catalog: Catalog, path: Collection[str], schema: str, oid: int, names: Mapping[int, str]
) -> _Named | None:
    views = (view for view in catalog.views() if view.oid == oid)
    present = catalog.by_oid(oid) or next(views, None)
    if present is None:
        return None
    if isinstance(present, Table):
        columns = {present.number_of(at): c.name for at, c in enumerate(present.columns)}
    else:
        columns = dict(enumerate(present.columns, 1))
    needed = schema or present.schema not in path
    return _Named(present.schema if needed else None, present.name, names, columns)


def _counts_columns(part: Node) -> bool:
    """Whether it matters how many columns there are, and what they are called."""
    if is_a(part, ast.JoinExpr):
        return bool(part.isNatural or (part.alias and part.alias.colnames))
    return is_a(part, ast.A_Star)


class _Rewriting:
    """Puts the names of now into a tree of our own. `by_name`: other columns are in nobody's
    way.
    """

    def __init__(self, relations: _Relations, *, by_name: bool) -> None:
        self._relations = relations
        self._by_name = by_name

    def inside(self, node: Node, hidden: frozenset[str]) -> None:
        """All of a node; `hidden`: names of WITH queries, which hide relations."""
        if is_a(node, ast.SelectStmt) and node.withClause is not None:
            hidden = self._with(node.withClause, hidden)
        for name in node:
            value = getattr(node, name)
            if is_a(value, ast.WithClause):
                continue
            sampled = is_a(node, ast.RangeTableSample)
            if isinstance(value, tuple):
                made = tuple([self._changed(one, hidden, sampled=sampled) for one in value])
                setattr(node, name, made)
            elif is_a(value, ast.Node):
                setattr(node, name, self._changed(value, hidden, sampled=sampled))

    def _with(self, clause: Node, hidden: frozenset[str]) -> frozenset[str]:
        names = [cte.ctename for cte in clause.ctes]
        for at, cte in enumerate(clause.ctes):
            self.inside(cte, hidden | {*(names if clause.recursive else names[:at])})
        return hidden | {*names}

    def _changed(self, node: Node, hidden: frozenset[str], *, sampled: bool) -> Node:
        if is_a(node, ast.RangeVar):
            of_with = node.schemaname is None and node.relname in hidden
            now = self._relations.get((node.schemaname or "", node.relname))
            if of_with or now is None:
                return node
            if now.others and not self._by_name and not sampled:
                return _as_it_was(node, now)
            return _aliased(node, now)
        if isinstance(node, tuple):
            return tuple([self._changed(one, hidden, sampled=sampled) for one in node])
        if is_a(node, ast.Node):
            self.inside(node, hidden)
        return node


def _as_it_was(node: Node, now: _Named) -> Node:
    """The relation as a subquery with the columns that it had; nobody uses those that are gone."""
    items = ", ".join(
        quoted_name(was)
        if was == (name := now.now.get(number))
        else f"{'NULL' if name is None else quoted_name(name)} AS {quoted_name(was)}"
        for number, was in now.before.items()
    )
    place = f"{quoted_name(now.schema)}." if now.schema else ""
    source = f"SELECT FROM (SELECT {items} FROM {place}{quoted_name(now.name)}) AS t"
    (made,) = parse_view_query(source).fromClause
    made.alias = node.alias or ast.Alias(aliasname=node.relname)
    return made


def _aliased(node: Node, now: _Named) -> Node:
    """The relation by its name of now, and by aliases that are what it was called."""
    alias = node.alias
    given = [name.sval for name in alias.colnames or ()] if alias else []
    if now.renamed or (now.others and given):
        names = _listed(now, given)
        alias = ast.Alias(
            aliasname=alias.aliasname if alias else node.relname,
            colnames=tuple([ast.String(sval=name) for name in names]),
        )
    elif alias is None and now.name != node.relname:
        alias = ast.Alias(aliasname=node.relname)
    node.schemaname, node.relname, node.alias = now.schema, now.name, alias
    return node


def _listed(now: _Named, given: Sequence[str]) -> Iterator[str]:
    """An alias for each column of now; `given`: for the first of those that there were."""
    known = dict(zip(now.before, [*given, *[*now.before.values()][len(given) :]], strict=True))
    taken = {*known.values()}
    for number, name in now.now.items():
        apart, tries = known.get(number, name), 0
        while number not in known and apart in taken:
            tries += 1
            apart = f"{name}_{tries}"
        taken.add(apart)
        yield apart
