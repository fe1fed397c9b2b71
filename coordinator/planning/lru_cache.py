"""A bounded mapping that forgets the least recently used entry."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruMapping(Generic[K, V]):
    """See the module. `size_max`: of all entries together; None: their number alone is bounded."""

    def __init__(self, limit: int, size_max: int | None = None) -> None:
        self._limit = limit
        self._size_max = size_max
        self._size = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """The value, now the most recent one."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: K, value: V, size: int = 0) -> None:
        """Remember; forget the oldest ones at the limits."""
        known = self._entries.pop(key, None)
        self._size += size - (0 if known is None else known[1])
        self._entries[key] = value, size
        while self._is_full():
            _, (_, freed) = self._entries.popitem(last=False)
            self._size -= freed

    def _is_full(self) -> bool:
        too_large = self._size_max is not None and self._size > self._size_max
        return bool(self._entries) and (too_large or len(self._entries) > self._limit)
