"""WITH CHECK OPTION in a bound statement; `sql/binder/dml/check_option.py` makes it."""

from dataclasses import dataclass

from sql.catalog.catalog import Table
from sql.plan.nodes import Plan


@dataclass(frozen=True, slots=True)
class ViewChecks:
    """WITH CHECK OPTION of `views`. `plan`: over `Scan(relation="new")`, whose input has the
    table's columns and a row's number (int8); it outputs the number, and for each view whether the
    row satisfies it: NULL means no. `tables`: those that it reads.
    """

    plan: Plan
    views: tuple[str, ...]
    tables: tuple[Table, ...] = ()
