"""Whether our answer to a statement is PostgreSQL's, a refusal, or wrong.

INVARIANTS
  E1  rows count in order only where the statement says ORDER BY at its end; otherwise as a
      multiset.
  E2  a value is the same text, byte by byte, but for what is documented: an unconstrained numeric
      has no trailing zeros and at most 18 decimals.
  E3  an answer where PostgreSQL fails, another SQLSTATE, another position is wrong. 0A000 is a
      refusal wherever it stands. A number or a time beyond what we hold (22003, 22008) and too
      deep or too long a statement (54001) are refusals where PostgreSQL answers.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from enum import Enum

import pglast

from tests.postgres.queries.answers import Answer, Column, Done, Failed, Row, Rows

_LIMITS = frozenset({"22003", "22008", "54001"})


class Verdict(Enum):
    """What an answer is beside PostgreSQL's."""

    EQUAL = "equal"
    REFUSED = "refused"
    WRONG = "WRONG"


def judge(text: str, found: Sequence[Answer], expected: Sequence[Answer]) -> Verdict:
    """The verdict on all answers to one Query."""
    if list(found) == list(expected):
        return Verdict.EQUAL
    ordered = _ordered(text)
    for at, (ours, theirs) in enumerate(zip(found, expected, strict=False)):
        if not _same(ours, theirs, ordered=at < len(ordered) and ordered[at]):
            return Verdict.REFUSED if _is_refusal(ours, theirs) else Verdict.WRONG
    return Verdict.EQUAL if len(found) == len(expected) else Verdict.WRONG


def without_modifiers(answers: Sequence[Answer]) -> tuple[Answer, ...]:
    """INTERSECT and EXCEPT show the left side's, but not to Describe (`deviations.txt`)."""
    return tuple(
        replace(answer, columns=tuple(replace(column, modifier=-1) for column in answer.columns))
        if isinstance(answer, Rows)
        else answer
        for answer in answers
    )


def _ordered(text: str) -> list[bool]:
    """For each statement, whether the order of its rows is told (E1)."""
    try:
        statements = pglast.parse_sql(text)
    except pglast.Error:
        return []
    return [_is_ordered(raw.stmt) for raw in statements]


def _is_ordered(statement: object) -> bool:
    if type(statement).__name__ == "ExecuteStmt":
        return True
    if type(statement).__name__ in ("ExplainStmt", "VariableShowStmt"):
        return True
    return bool(getattr(statement, "sortClause", None))


def _is_refusal(found: Answer, expected: Answer) -> bool:
    if not isinstance(found, Failed):
        return False
    if found.sqlstate == "0A000":
        return True
    return found.sqlstate in _LIMITS and not isinstance(expected, Failed)


def _same(found: Answer, expected: Answer, *, ordered: bool) -> bool:
    match found, expected:
        case Failed(), Failed():
            return (found.sqlstate, found.position) == (expected.sqlstate, expected.position)
        case Done(), Done():
            return found.tag == expected.tag
        case Rows(), Rows():
            return (
                found.columns == expected.columns
                and found.tag == expected.tag
                and _same_rows(found, expected, ordered=ordered)
            )
        case _:
            return False


def _same_rows(found: Rows, expected: Rows, *, ordered: bool) -> bool:
    if len(found.rows) != len(expected.rows):
        return False
    columns = expected.columns
    ours, theirs = list(found.rows), list(expected.rows)
    if not ordered:
        # What is there exactly so on both sides is no neighbour that a rounded key could mix up.
        ours, theirs = _beyond(ours, theirs), _beyond(theirs, ours)
        ours.sort(key=lambda row: _sort_key(columns, row))
        theirs.sort(key=lambda row: _sort_key(columns, row))
    return all(
        same_value(column, a, b)
        for left, right in zip(ours, theirs, strict=True)
        for column, a, b in zip(columns, left, right, strict=True)
    )


def _beyond(rows: Sequence[Row], others: Sequence[Row]) -> list[Row]:
    return list((Counter(rows) - Counter(others)).elements())


def _sort_key(columns: tuple[Column, ...], row: Row) -> list[str]:
    """Equal for values that count as the same."""
    return [_rough(column, value) for column, value in zip(columns, row, strict=True)]


def _rough(column: Column, value: str | None) -> str:
    if value is None:
        return "\\N"
    number = _decimal(value) if column.type == "numeric" else None
    return value if number is None else f"{float(number) + 0:.10g}"


def same_value(column: Column, found: str | None, expected: str | None) -> bool:
    """Whether two texts of a value count as the same (E2)."""
    if found == expected:
        return True
    if found is None or expected is None:
        return False
    a, b = _decimal(found), _decimal(expected)
    if a is None or b is None or column.type != "numeric" or column.modifier != -1:
        return False
    return abs(a - b) <= _off(b)


def _off(expected: Decimal) -> Decimal:
    """How much a numeric may be off: nothing, but what 18 digits behind the point do not show."""
    exponent = expected.as_tuple().exponent
    assert isinstance(exponent, int), "finite numbers have an exponent"
    return Decimal(1).scaleb(-18) if exponent < -18 else Decimal(0)


def _decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
