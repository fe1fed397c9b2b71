"""Check whether transaction modes may still change (check_transaction_isolation and neighbours).

Not here: the modes themselves (`variables.py`) and their effect (`transaction.py`).
"""

from coordinator import session_errors as wrong
from sql.errors import SqlError


def check_mode(
    name: str, *, before: str, after: str, queried: bool, nested: bool, read_only: bool
) -> None:
    """Raises 25001. `queried`: there was a query; `nested`: there are savepoints; `read_only`: it
    reads the past, which nobody can write.
    """
    match name:
        case "transaction_isolation" if after != before:
            if queried:
                raise wrong.required_before_any_query("SET TRANSACTION ISOLATION LEVEL")
            if nested:
                raise wrong.not_in_subtransaction(
                    "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction"
                )
        case "transaction_read_only" if after == "off" and before == "on":
            if nested or read_only:
                raise wrong.not_in_subtransaction(
                    "cannot set transaction read-write mode inside a read-only transaction"
                )
            if queried:
                message = "transaction read-write mode must be set before any query"
                raise SqlError("25001", message)
        case "transaction_deferrable" if nested:
            raise wrong.not_in_subtransaction(
                "SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction"
            )
        case "transaction_deferrable" if queried:
            raise wrong.required_before_any_query("SET TRANSACTION [NOT] DEFERRABLE")
        case _:
            pass
