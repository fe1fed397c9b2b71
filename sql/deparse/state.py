"""State of one analysis: the levels of a query, the names of each, and the relations below.

INVARIANTS
  S1  the text was bound before. A name that is not found is a gap of this package, never a user's
      error: `UnknownShape`, and the caller shows what was written.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sql.deparse.coercion import UnknownShape
from sql.deparse.nodes import CommonTable, Entry, QueryTree, TypedExpr, WholeRowVar
from sql.deparse.types import Type
from sql.parser.syntax import Node


@dataclass(frozen=True, slots=True)
class PresentRelation:
    """A relation as it is now; `columns` by number."""

    oid: int
    schema: str
    name: str
    columns: Mapping[int, tuple[str, Type]]


@dataclass(slots=True)
class Item:
    """A name of FROM with its columns (ParseNamespaceItem)."""

    name: str | None
    columns: list[tuple[str, TypedExpr]]
    schema: str | None = None
    entry: Entry | None = None
    names_visible: bool = True
    columns_visible: bool = True


@dataclass(slots=True)
class Level:
    """A query level. `parent`: the level whose columns it may use besides its own."""

    query: QueryTree
    parent: "Level | None" = None
    items: list[Item] = field(default_factory=list[Item])
    ctes: Mapping[str, CommonTable] = field(default_factory=dict[str, CommonTable])
    windows: Mapping[str, Node] = field(default_factory=dict[str, Node])
    value: TypedExpr | None = None
    """What VALUE is, in the check of a domain."""

    def levels(self) -> Iterator["Level"]:
        """This one and those around."""
        level: Level | None = self
        while level is not None:
            yield level
            level = level.parent


@dataclass(slots=True)
class Analysis:
    """What a definition's text means besides its words, and the functions that call each other."""

    relation: Callable[[str, str], tuple[PresentRelation, Sequence[str], Sequence[int]]]
    """A relation by schema as written (or empty) and name; the columns that the text knows."""
    declared: Callable[[Node], Type]
    """The type of a TypeName."""
    reg_text: Callable[[str, str], str]
    """The text of a constant of a reg type."""
    zone: str
    analyze_expression: "Callable[[Analysis, Level, Node], TypedExpr]"
    analyze_query: "Callable[..., QueryTree]"

    def expression(self, level: Level, node: Node) -> TypedExpr:
        """An expression; see `expressions.py`."""
        return self.analyze_expression(self, level, node)

    def query(self, node: Node, parent: Level | None, *, resolves: bool = True) -> QueryTree:
        """A query; see `queries.py`. `resolves`: untyped literals of its columns become text."""
        return self.analyze_query(self, node, parent, resolves=resolves)


def named_column(level: Level, names: Sequence[str]) -> TypedExpr:
    """The column of that name (transformColumnRef); of a bare table's name the whole row."""
    *qualifier, name = names
    for part in level.levels():
        if part.value is not None and names == ["value"]:
            return part.value
        if qualifier:
            items = [item for item in part.items if is_called(item, qualifier)]
        else:
            items = [item for item in part.items if item.columns_visible]
        found = [expr for item in items for called, expr in item.columns if called == name]
        if found:
            return found[0]
    if not qualifier:
        for part in level.levels():
            for item in part.items:
                if is_called(item, names) and item.entry is not None:
                    return WholeRowVar(item.entry)
    raise UnknownShape(".".join(names))


def is_called(item: Item, qualifier: Sequence[str]) -> bool:
    """Whether a qualified name means the item."""
    *schema, name = qualifier
    return (
        item.names_visible
        and item.name == name
        and (not schema or item.schema in (None, schema[-1]))
    )


def item_called(level: Level, qualifier: Sequence[str]) -> Item:
    """The item before `.*`."""
    for part in level.levels():
        for item in part.items:
            if is_called(item, qualifier):
                return item
    raise UnknownShape(".".join(qualifier))
