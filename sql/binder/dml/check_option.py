"""WITH CHECK OPTION: the view conditions that rows written through views must meet.

INVARIANTS
  H1  a view's condition is checked if the view has the option, or a view over it has it CASCADED.
      Conditions of lower views are checked first.
"""

from sql.binder.dml.returning import NEW_ROWS_RELATION, scanned_tables
from sql.binder.dml.target_relation import TargetRelation
from sql.binder.dml.updatable_views import CASCADED
from sql.binder.resolve.relations import table_scan
from sql.binder.state import Binding
from sql.plan.nodes import ColumnRef, Expr, Project, Scan
from sql.plan.pruning import prune_columns
from sql.statements.view_checks import ViewChecks
from sql.types.sql_type import BOOL, INT8


def view_checks(binding: Binding, written: TargetRelation) -> ViewChecks | None:
    """The conditions of the views that a statement writes through (H1)."""
    numbers: list[int] = []
    cascaded = False
    for number, level in reversed([*enumerate(written.levels)]):
        cascaded = cascaded or level.view.check_option == CASCADED
        if level.condition is not None and (cascaded or level.view.check_option):
            numbers.insert(0, number)
    if not numbers:
        return None
    columns = table_scan(binding, written.table).columns
    place = binding.new_column("place", INT8)
    every = (*columns, place)
    rows = Scan(NEW_ROWS_RELATION, written.table.name, every, tuple(range(len(every))))
    conditions = written.conditions(columns)
    exprs: list[Expr] = [ColumnRef(place.id, INT8)]
    exprs += [asked for asked in map(conditions.__getitem__, numbers) if asked is not None]
    names = tuple([written.levels[number].view.name for number in numbers])
    made = tuple([binding.new_column(name, BOOL) for name in names])
    project = Project(rows, (binding.new_column("place", INT8), *made), tuple(exprs))
    plan = prune_columns(project)
    return ViewChecks(plan, names, scanned_tables(binding, plan))
