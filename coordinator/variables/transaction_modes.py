"""Check whether transaction modes may still change (check_transaction_isolation and neighbours).

Not here: the modes themselves (`variables.py`) and their effect (`transaction.py`).
"""

from typing import Final

from coordinator import session_errors as wrong
from sql.errors import SqlError

_COMMANDS: Final = {
    "transaction_isolation": "SET TRANSACTION ISOLATION LEVEL",
    "consistency": "SET consistency",
}


def check_mode(
    name: str,
    *,
    before: str,
    after: str,
    queried: bool,
    nested: bool,
    read_only: bool,
    stale: bool,
) -> None:
    """Raises 25001, 0A000. `queried`: there was a query; `nested`: there are savepoints;
    `read_only`: it reads the past, which nobody can write; `stale`: under bounded staleness.
    """
    match name:
        case "transaction_isolation" | "consistency" if after != before:
            command = _COMMANDS[name]
            if queried:
                raise wrong.required_before_any_query(command)
            if nested:
                raise wrong.not_in_subtransaction(
                    f"{command} must not be called in a subtransaction"
                )
            if stale and after == "serializable" and name == "transaction_isolation":
                raise wrong.serializable_with_bounded_staleness()
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
