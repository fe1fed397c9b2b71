"""The typed binder: statements of the parser to bound statements, by PostgreSQL's rules.

Entry point of `sql/` together with `sql/parse.py`; the real work is in the modules around it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sql.catalog import Catalog
from sql.parse import Statement
from sql.statements import Prepared
from sql.types import SqlType


@dataclass(frozen=True, slots=True)
class BindContext:
    """What a statement's meaning depends on besides its text.

    `now`: microseconds, the transaction's start: now() and its kin become constants, so a statement that
    is `stable` must be bound again in every transaction (see `uses_now`).
    """

    catalog: Catalog
    search_path: Sequence[str]
    now: int
    timezone: str = "UTC"
    user: str = "meridian"
    database: str = "meridian"


def bind(
    statement: Statement, context: BindContext, parameters: Sequence[SqlType | None]
) -> Prepared:
    """Bind one statement. `parameters`: types that the client declared, None or missing to infer.

    Raises SqlError with the position in the text the client sent.
    """
    raise AssertionError("contract only")
