"""The rows of a transaction that are in memory, counted: for its own limit, and the server's."""

from coordinator.memory_account import Holding


class CountedInlineRows:
    """See the module. `memory`: what they are accounted to, if they are."""

    def __init__(self) -> None:
        self.nbytes = 0
        self.memory: Holding | None = None

    def add(self, nbytes: int) -> None:
        """So many bytes are about to be written. Raises 53200."""
        if self.memory is not None:
            self.memory.add(nbytes)
        self.nbytes += nbytes

    def added(self, nbytes: int) -> None:
        """So many bytes were written."""
        self.left(self.nbytes + nbytes)

    def left(self, nbytes: int) -> None:
        """So many bytes are left, whatever there was."""
        if self.memory is not None:
            self.memory.note(nbytes)
        self.nbytes = nbytes
