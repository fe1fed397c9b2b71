"""Choose the names that a transaction rests on (A6 of `coordinator/core/validation.py`).

    level            statements that write    queries
    serializable     uses, [look-ups]         uses, [look-ups]
    weaker           uses                     nothing

INVARIANTS
  N1  at every level rows are committed only if the definitions that they were computed by are
      current: whatever writes rests on all its uses. The levels that validate what was read do the
      same for what queries have used. (Tables are A2's: one that was only read counts at these
      levels alone.)
  N2  reads of the catalog conflict with nobody: a look-up is left out, unless the session has set
      `validate_catalog_reads` and reads are validated at all.
"""

from collections.abc import Collection

from coordinator.core.transactions import VALIDATING
from coordinator.execution.context import Execution
from coordinator.transaction.transaction import SessionTransaction
from coordinator.variables.variables import Variables
from sql.catalog.catalog import NameDependency
from sql.statements.bound import ParameterizedStatement


def names_to_rest_on(
    execution: Execution, prepared: ParameterizedStatement, *, writes: bool
) -> Collection[NameDependency]:
    """The names of this statement that must mean the same at the commit (N1, N2)."""
    return dependent_names(execution.transaction, execution.variables, prepared, writes=writes)


def dependent_names(
    transaction: SessionTransaction,
    variables: Variables,
    prepared: ParameterizedStatement,
    *,
    writes: bool,
) -> Collection[NameDependency]:
    """The same, in a transaction."""
    if not prepared.look_ups:
        return ()
    if transaction.isolation not in VALIDATING:
        return prepared.uses if writes else ()
    validated = variables.flag("validate_catalog_reads")
    return prepared.look_ups if validated else prepared.uses
