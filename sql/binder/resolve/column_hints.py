"""Suggest columns with a similar name for an undefined column (searchRangeTableForCol).

Source: PostgreSQL's parse_relation.c (searchRangeTableForCol, updateFuzzyAttrMatchState).
"""

from collections.abc import Iterable, Sequence
from typing import Final

_DISTANCE_MAX: Final = 3


def similar_columns(
    relations: Iterable[tuple[str, Sequence[str]]], qualifier: str | None, name: str
) -> Sequence[str]:
    """The one or two columns most like `name`, each as `relation.column`.

    The answer is empty if no column is similar, or more than two are. `relations`: those of the
    query, with their columns.
    """
    best, found = _DISTANCE_MAX + 1, list[str]()
    for relation, columns in relations:
        penalty = 0 if qualifier is None else _distance(qualifier, relation)
        for column in columns:
            distance = _distance(column, name)
            # What differs in more than half of the letters is no other spelling.
            if penalty > best or distance > len(name.encode()) // 2:
                continue
            distance += penalty
            if distance < best:
                best, found = distance, [f"{relation}.{column}"]
            elif distance == best and len(found) == 2:
                # Too many at this distance: only a smaller one says anything.
                best, found = best - 1, []
            elif distance == best and distance <= _DISTANCE_MAX:
                found.append(f"{relation}.{column}")
    return found


def _distance(left: str, right: str) -> int:
    """Levenshtein's, in letters."""
    above: list[int] = [*range(len(right) + 1)]
    for row, letter in enumerate(left, 1):
        line = [row]
        for at, other in enumerate(right):
            changed = above[at] + (letter != other)
            line.append(min(changed, above[at + 1] + 1, line[at] + 1))
        above = line
    return above[-1]
