"""Track the rows of a table that parts of a statement delete or replace, so that each changes once.

INVARIANTS
  W1  a row is claimed once in a statement, by the first part that finds it: a join that finds a row
      twice changes it once.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64

from ingest.copy_text.kernels import Column
from storage.types import Source

_FEW: Final = 10
"""Rows that are claimed one by one: what numpy and Arrow ask for a start is dearer."""


class ClaimedRows:
    """See the module. `before`: those of earlier parts of the statement on the same table."""

    def __init__(self, before: "Sequence[ClaimedRows]" = ()) -> None:
        self.rows: dict[Source, BitMap64] = {}
        self._before = tuple(before)

    def take(self, sources: Column, indexes: Column) -> npt.NDArray[np.bool_]:
        """Claim these rows; a mask of those that were not claimed before (W1)."""
        if len(sources) <= _FEW:
            named = [Source(str(sources[row])) for row in range(len(sources))]
            numbers = indexes.to_numpy(zero_copy_only=False).tolist()
            claimed = [self.claim(name, at) for name, at in zip(named, numbers, strict=True)]
            return np.array(claimed, dtype=np.bool_)
        encoded = sources.dictionary_encode()
        assert isinstance(encoded, pa.DictionaryArray), "what was encoded is a dictionary"
        codes = encoded.indices.to_numpy(zero_copy_only=False)
        numbers = indexes.to_numpy(zero_copy_only=False)
        fresh = np.ones(len(numbers), dtype=np.bool_)
        for code, name in enumerate(encoded.dictionary.to_pylist()):
            chosen = np.flatnonzero(codes == code)
            fresh[chosen] = self._claimed(Source(str(name)), numbers[chosen].tolist())
        return fresh

    def _claimed(self, source: Source, indexes: Sequence[int]) -> list[bool]:
        known = self.rows.setdefault(source, BitMap64())
        others = [part.rows[source] for part in self._before if source in part.rows]
        if not others:
            once = BitMap64(indexes)
            if len(once) == len(indexes) and once.isdisjoint(known):
                known.update(indexes)
                return [True] * len(indexes)
        return [self._is_fresh(known, others, index) for index in indexes]

    def claim(self, source: Source, index: int) -> bool:
        """Claim one row; False if it was claimed before."""
        known = self.rows.setdefault(source, BitMap64())
        others = [part.rows[source] for part in self._before if source in part.rows]
        return self._is_fresh(known, others, index)

    def _is_fresh(self, known: BitMap64, others: Sequence[BitMap64], index: int) -> bool:
        if index in known or any(index in rows for rows in others):
            return False
        known.add(index)
        return True

    def has(self, source: Source, index: int) -> bool:
        """Whether a row has been claimed, by this part or an earlier one."""
        return any(index in part.rows.get(source, ()) for part in (self, *self._before))
