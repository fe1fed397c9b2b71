"""WITH CHECK OPTION as a bound statement carries it; `dml/check_option.py` makes it."""

from dataclasses import dataclass

from sql.catalog.catalog import Table
from sql.plan.nodes import Plan


@dataclass(frozen=True, slots=True)
class ViewChecks:
    """WITH CHECK OPTION of `views`. `plan`: over `Scan(relation="new")`, whose input has the
    table's columns and a row's place (int8); it makes the place, and for each view whether the row
    may be: NULL says no. `tables`: what it reads.
    """

    plan: Plan
    views: tuple[str, ...]
    tables: tuple[Table, ...] = ()
