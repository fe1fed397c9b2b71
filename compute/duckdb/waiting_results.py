"""The rest of a result that waits in a file for its slow consumer.

    a stream whose consumer has asked for nothing for SLOW_S ─▶ its rest in a file ─▶ read back

A stream that waits keeps what DuckDB has begun: row groups, vectors, buffers, some tens of
megabytes for each client that does not read. A few of them may: a cursor that is fetched from now
and then should not be computed to its end. Beyond that, rests go into files.

INVARIANTS
  W1  a file's rows come before what the stream still has, and before what it failed with.
  W2  a file has no name once it is written: nothing is left of it when the process ends.
"""

import itertools
from pathlib import Path
from typing import Final

import pyarrow as pa

SLOW_S: Final = 0.25
"""Larger: clients that do not read hold the engine's memory for longer. Smaller: results are
written to files whose clients only do something else for a moment."""

SLOW_STREAMS_MAX: Final = 2
"""Slow streams that may wait as they are. Larger: more memory. Smaller: more is written."""

WAITING_BYTES_MAX: Final = 1 << 30
"""Of one file; the stream waits with what is left. Larger: more disk for clients that may never
read. Smaller: larger results keep the engine's memory."""

_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression="lz4")
_numbers = itertools.count(1)


class WaitingResult:
    """See the module; one thread at a time."""

    def __init__(self, directory: Path, schema: pa.Schema) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._path = directory / f"result-{next(_numbers)}"
        self._sink = pa.OSFile(str(self._path), "wb")
        self._writer = pa.ipc.new_stream(self._sink, schema, options=_OPTIONS)
        self._source: pa.NativeFile | None = None
        self._reader: pa.RecordBatchReader | None = None

    @property
    def has_room(self) -> bool:
        """Whether more may be written."""
        return bool(self._sink.tell() < WAITING_BYTES_MAX)

    def write(self, batch: pa.RecordBatch) -> None:
        """More rows. Raises OSError."""
        self._writer.write_batch(batch)

    def finish(self) -> None:
        """From now on it is read (W2). Raises OSError."""
        self._writer.close()
        self._sink.close()
        self._source = pa.OSFile(str(self._path), "rb")
        self._path.unlink()
        self._reader = pa.ipc.open_stream(self._source)

    def read(self) -> pa.RecordBatch | None:
        """The next rows, None at the end."""
        assert self._reader is not None, "it is read when it is written"
        try:
            return self._reader.read_next_batch()
        except StopIteration:
            return None

    def close(self) -> None:
        """Nobody reads it any more."""
        self._path.unlink(missing_ok=True)
        if not self._sink.closed:
            self._sink.close()
        self._reader = None
        if self._source is not None:
            self._source.close()
