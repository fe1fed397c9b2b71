"""Bounds of key columns of data files, decoded once: which files may hold a key.

    statistics of a file ─▶ least and greatest value of each key column ─▶ compared at each look-up

INVARIANTS
  N1  data files and their statistics never change, so bounds stay right and are never updated.
  N2  a file whose statistics cannot be read or compared may hold every key.
"""

from collections.abc import Hashable
from typing import Any, Final, TypeAlias

from compute.access.key_predicates import SingleKey
from compute.arrow import arrow_type
from storage.batch import DataFile
from storage.delta.statistics import column_bounds
from storage.errors import Corrupt

Bounds: TypeAlias = tuple[tuple[int, Any, Any], ...]
"""Of key columns by their place in the key, those that have both a least and a greatest value."""

FILES_MAX: Final = 10_000
"""Files whose bounds are known. Larger: more memory, about 300 bytes each."""


class FileBounds:
    """See the module. Threads may share it: bounds that are made twice are the same."""

    def __init__(self, files_max: int = FILES_MAX) -> None:
        self._known: dict[Hashable, Bounds] = {}
        self._files_max = files_max

    def may_hold(self, place: Hashable, file: DataFile, key: SingleKey) -> bool:
        """Whether a file may hold a key. `place`: names the file and the columns of the key."""
        bounds = self._known.get(place)
        if bounds is None:
            if len(self._known) >= self._files_max:
                self._known.clear()
            bounds = self._known[place] = _bounds(file, key)
        values = key.values
        try:
            for at, least, greatest in bounds:
                if not least <= values[at] <= greatest:
                    return False
        except (TypeError, ArithmeticError):
            return True  # N2
        return True


def _bounds(file: DataFile, key: SingleKey) -> Bounds:
    columns = [key.table.columns[ordinal] for ordinal in key.key.columns]
    found: list[tuple[int, Any, Any]] = []
    for at, column in enumerate(columns):
        try:
            least, greatest = column_bounds(file.stats_json, column.field, arrow_type(column.type))
        except (Corrupt, TypeError, ArithmeticError):
            return ()
        if least is not None and greatest is not None:
            found.append((at, least, greatest))
    return tuple(found)
