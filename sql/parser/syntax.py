"""Read pglast's syntax trees: positions (exprLocation) and default column names (FigureColname).

The tree comes from pglast. This package and `sql/binder` are the adapter to it, so a
node is `Node` (dynamic) there and nowhere else.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

from pglast import ast
from pglast.enums import A_Expr_Kind, LockClauseStrength, MinMaxOp, SQLValueFunctionOp, SubLinkType

from sql.errors import SqlError, not_supported
from sql.parser.parsed_nodes import take_nodes_as_parsed

take_nodes_as_parsed()

# pglast types every attribute as optional, also those the grammar always sets; checking each would
# drown the rules of the binder. Nothing but syntax trees is a Node.
Node: TypeAlias = Any

_VALUE_FUNCTIONS: Final = {
    SQLValueFunctionOp.SVFOP_CURRENT_DATE: "current_date",
    SQLValueFunctionOp.SVFOP_CURRENT_TIME: "current_time",
    SQLValueFunctionOp.SVFOP_CURRENT_TIME_N: "current_time",
    SQLValueFunctionOp.SVFOP_CURRENT_TIMESTAMP: "current_timestamp",
    SQLValueFunctionOp.SVFOP_CURRENT_TIMESTAMP_N: "current_timestamp",
    SQLValueFunctionOp.SVFOP_LOCALTIME: "localtime",
    SQLValueFunctionOp.SVFOP_LOCALTIME_N: "localtime",
    SQLValueFunctionOp.SVFOP_LOCALTIMESTAMP: "localtimestamp",
    SQLValueFunctionOp.SVFOP_LOCALTIMESTAMP_N: "localtimestamp",
    SQLValueFunctionOp.SVFOP_CURRENT_ROLE: "current_role",
    SQLValueFunctionOp.SVFOP_CURRENT_USER: "current_user",
    SQLValueFunctionOp.SVFOP_USER: "user",
    SQLValueFunctionOp.SVFOP_SESSION_USER: "session_user",
    SQLValueFunctionOp.SVFOP_CURRENT_CATALOG: "current_catalog",
    SQLValueFunctionOp.SVFOP_CURRENT_SCHEMA: "current_schema",
}
LOCKING_WORDS: Final = {
    LockClauseStrength.LCS_FORKEYSHARE: "FOR KEY SHARE",
    LockClauseStrength.LCS_FORSHARE: "FOR SHARE",
    LockClauseStrength.LCS_FORNOKEYUPDATE: "FOR NO KEY UPDATE",
    LockClauseStrength.LCS_FORUPDATE: "FOR UPDATE",
}
"""Locking clauses as they are written."""


def is_a(node: Node, *kinds: type) -> bool:
    """isinstance, but the node stays dynamic for the type checkers."""
    return isinstance(node, kinds)


def copy_node(node: Node, **attributes: Node) -> Node:
    """A copy of a node with other attributes. Sessions share the tree of a statement, so nobody may
    change it in place.
    """
    return type(node)(**({name: getattr(node, name) for name in node} | attributes))


def value_function_name(node: Node) -> str:
    """The keyword behind a SQLValueFunction, lower case."""
    return _VALUE_FUNCTIONS[node.op]


def string_values(names: Iterable[Node] | None) -> tuple[str, ...]:
    """The texts of a list of String nodes."""
    return tuple(name.sval for name in names or ())


_STATEMENTS_WITH: Final = (
    ast.SelectStmt, ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt, ast.MergeStmt,
)  # fmt: skip
_ALIASED: Final = (
    ast.RangeVar, ast.RangeSubselect, ast.RangeFunction, ast.RangeTableFunc, ast.JoinExpr,
    ast.JsonTable,
)  # fmt: skip


def with_clause(node: Node) -> Node:
    """The WITH clause of a statement, if it has one."""
    return node.withClause if is_a(node, *_STATEMENTS_WITH) else None


def alias_of(item: Node) -> Node:
    """The alias of an item of FROM, if it has one."""
    return item.alias if is_a(item, *_ALIASED) else None


def tree_nodes(node: Node) -> Iterator[Node]:
    """All nodes of a tree."""
    waiting: list[Node] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, tuple):
            waiting.extend(part)
        elif is_a(part, ast.Node):
            yield part
            waiting.extend(getattr(part, name) for name in part)


def refuse_parameters(node: Node) -> None:
    """Raises 42P02 for the first $n: definitions have no parameters."""
    for part in tree_nodes(node):
        if is_a(part, ast.ParamRef):
            raise SqlError(
                "42P02", f"there is no parameter ${part.number}", offset_to_position(part.location)
            )


# pglast's tree leaves out where constants stand. Only errors ask for it: when one is raised, the
# statement is bound once more with the places at hand (`sql/binder/bind.py`), found by
# `sql/parser/constant_positions.py`.
_constant_places: ContextVar[Mapping[int, int]] = ContextVar("constant_places", default={})  # noqa: B039


@contextmanager
def use_constant_offsets(places: Mapping[int, int]) -> Generator[None, None, None]:
    """Within the context, `location` knows these positions of constants, by node identity."""
    token = _constant_places.set(places)
    try:
        yield
    finally:
        _constant_places.reset(token)


def location(node: Node) -> int | None:
    """The offset where an expression begins: the leftmost of its parts (exprLocation).

    As after binding: a typed constant begins at its literal.
    """
    places = _places(node)
    known = [place for place in places if place is not None and place >= 0]
    return min(known, default=None)


def _places(node: Node) -> Iterable[int | None]:
    part: Node = node
    match node:
        case None:
            return ()
        case tuple():
            return (location(part[0]),) if part else ()
        case ast.A_Const():
            return (_constant_places.get().get(id(part)),)
        case ast.A_Expr():
            return (part.location, location(part.lexpr))
        case ast.TypeCast() if isinstance(part.arg, ast.A_Const):
            return (location(part.arg),)
        case ast.TypeCast():
            return (part.location, location(part.arg), location(part.typeName))
        case ast.FuncCall():
            return (part.location, *(location(arg) for arg in (part.args or ())[:1]))
        case ast.NullTest() | ast.BooleanTest() | ast.CollateClause() | ast.A_Indirection():
            return (getattr(part, "location", None), location(part.arg))
        case ast.BoolExpr():
            return (part.location, location(part.args[0]))
        case ast.SubLink():
            return (part.location, location(part.testexpr))
        case ast.ResTarget():
            return (location(part.val),)
        case ast.NamedArgExpr():
            return (part.location, location(part.arg))
        case _:
            return (getattr(part, "location", None),)


def node_position(node: Node) -> int | None:
    """The position of a node in an error, counted from 1."""
    place = location(node)
    return None if place is None else place + 1


def offset_to_position(place: int | None) -> int | None:
    """An offset as a position, counted from 1; None for the parser's -1."""
    return None if place is None or place < 0 else place + 1


def unsupported_at(what: str, node: Node) -> SqlError:
    """0A000 with the position of a node."""
    return not_supported(what, node_position(node))


def column_name(node: Node) -> str:
    """The default name of an output column without alias (FigureColname)."""
    return _figure(node)[0] or "?column?"


_JSON_NAMES: Final[dict[type, str]] = {
    ast.JsonObjectConstructor: "json_object",
    ast.JsonArrayConstructor: "json_array",
    ast.JsonArrayQueryConstructor: "json_array",
    ast.JsonObjectAgg: "json_objectagg",
    ast.JsonArrayAgg: "json_arrayagg",
    ast.JsonParseExpr: "json",
    ast.JsonScalarExpr: "json_scalar",
    ast.JsonSerializeExpr: "json_serialize",
}


def _figure(node: Node) -> tuple[str | None, int]:
    """A name, and how good it is: 2 certain, 1 a fallback, 0 none."""
    part: Node = node
    match node:
        case ast.ColumnRef() | ast.A_Indirection():
            return _figure_reference(part)
        case ast.FuncCall():
            return part.funcname[-1].sval, 2
        case ast.A_Expr(kind=A_Expr_Kind.AEXPR_NULLIF):
            return "nullif", 2
        case ast.TypeCast():
            name, strength = _figure(part.arg)
            return (name, strength) if strength > 1 else (part.typeName.names[-1].sval, 1)
        case ast.CollateClause():
            return _figure(part.arg)
        case ast.CaseExpr():
            name, strength = _figure(part.defresult)
            return (name, strength) if strength > 1 else ("case", 1)
        case ast.SubLink():
            return _figure_sublink(part)
        case ast.SQLValueFunction():
            return value_function_name(part), 2
        case ast.CoalesceExpr():
            return "coalesce", 2
        case ast.MinMaxExpr():
            return ("greatest" if part.op == MinMaxOp.IS_GREATEST else "least"), 2
        case ast.A_ArrayExpr():
            return "array", 2
        case ast.RowExpr():
            return "row", 2
        case ast.GroupingFunc():
            return "grouping", 2
        case ast.MergeSupportFunc():
            return "merge_action", 2
        case ast.JsonFuncExpr():
            return part.op.name.removesuffix("_OP").lower(), 2
        case _ if type(node) in _JSON_NAMES:
            return _JSON_NAMES[type(node)], 2
        case _:
            return None, 0


def _figure_reference(node: Node) -> tuple[str | None, int]:
    fields = node.fields if is_a(node, ast.ColumnRef) else node.indirection
    names = [field.sval for field in fields if is_a(field, ast.String)]
    if names:
        return names[-1], 2
    return _figure(node.arg) if is_a(node, ast.A_Indirection) else (None, 0)


def _figure_sublink(node: Node) -> tuple[str | None, int]:
    match node.subLinkType:
        case SubLinkType.EXISTS_SUBLINK:
            return "exists", 2
        case SubLinkType.ARRAY_SUBLINK:
            return "array", 2
        case SubLinkType.EXPR_SUBLINK:
            return _first_column(node.subselect), 2
        case _:
            return None, 0


def _first_column(select: Node) -> str:
    while select.larg is not None:
        select = select.larg
    if select.valuesLists:
        return "column1"
    if not select.targetList:
        return "?column?"
    target = select.targetList[0]
    return target.name or column_name(target.val)
