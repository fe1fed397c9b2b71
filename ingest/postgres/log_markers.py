"""Messages of ours in upstream's log, by which we know that all before them has come.

newest() ─ pg_logical_emit_message ─▶ its end is told ─┐
                            └──▶ comes by the stream ──┴─▶ the position is reached
"""

from collections.abc import Generator
from contextlib import contextmanager


class LogMarkers:
    """See the module.

    Which of both comes first is open. Their contents are made by upstream and never made twice,
    since those of earlier readers of the slot may come again.
    """

    def __init__(self) -> None:
        self._asked = 0
        self._written: dict[str, int] = {}
        self._came: set[str] = set()

    @contextmanager
    def asking(self) -> Generator[None]:
        """While a message is being written, those that come are remembered."""
        self._asked += 1
        try:
            yield
        finally:
            self._asked -= 1
            if not self._asked:
                self._came.clear()

    def written(self, content: str, position: int) -> bool:
        """Whether it has come already."""
        if content in self._came:
            return True
        self._written[content] = position
        return False

    def came(self, content: bytes) -> int:
        """Its end; 0 if that is not known yet, or it is not ours."""
        text = content.decode(errors="replace")
        position = self._written.pop(text, 0)
        if not position and self._asked:
            self._came.add(text)
        return position
