"""Find the constants of expressions, those of long lists as such."""

from collections.abc import Iterator, Sequence

from sql.plan.constant_items import ConstantItems
from sql.plan.constant_rows import ConstantWhens
from sql.plan.nodes import Case, Const, Expr, InList, InRows
from sql.plan.traverse import expression_nodes


def constant_parts(exprs: Sequence[Expr]) -> Iterator[Const | ConstantItems]:
    """Every constant in them, outside of subqueries."""
    for expr in exprs:
        for node in expression_nodes(expr):
            if isinstance(node, Const):
                yield node
            elif isinstance(node, InList) and isinstance(node.items, ConstantItems):
                yield node.items
            elif isinstance(node, Case) and isinstance(node.whens, ConstantWhens):
                yield from (node.whens.keys, node.whens.results)
            elif isinstance(node, InRows):
                yield from [each for each in node.columns if isinstance(each, ConstantItems)]
