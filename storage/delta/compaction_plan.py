"""Choose the files that compaction rewrites: small ones of similar size, half deleted ones.

Pure, for the core. The rewriting is `compaction.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from storage.live_files import LiveFile

_MEBIBYTE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class CompactionLimits:
    """Which files are worth rewriting, and how much is rewritten at once."""

    small_bytes: int = 16 * _MEBIBYTE
    """Files below are merged. Larger: fewer files to open, the same rows rewritten more often."""

    files_min: int = 8
    """Small files that start a compaction. Larger: slower scans. Smaller: more rewriting."""

    deleted_share: float = 0.3
    """Of a file's rows: more deleted ones make it worth rewriting, whatever its size."""

    file_bytes_max: int = 256 * _MEBIBYTE
    """Larger files are left alone: one is held in memory while it is rewritten."""

    input_bytes_max: int = 512 * _MEBIBYTE
    """Of one compaction; the rest waits for the next. Smaller: more versions."""

    output_bytes: int = 64 * _MEBIBYTE
    """A rewritten file that has come so far takes no further source."""

    tiered: bool = True
    """Only small files of similar size together: a row is rewritten a few times while its file
    grows, not with every flush."""

    def on_request(self) -> "CompactionLimits":
        """For OPTIMIZE: whatever makes fewer files or drops rows."""
        return replace(self, files_min=2, deleted_share=0.0, tiered=False)


def choose_files(files: Sequence[LiveFile], limits: CompactionLimits) -> tuple[LiveFile, ...]:
    """The files of a version to rewrite now, in order; none if it is not worth it."""
    small: list[LiveFile] = []
    heavy: list[LiveFile] = []
    for live in files:
        # A file without a live row leaves the table with the next flush anyway.
        if live.dead or live.file.size_bytes > limits.file_bytes_max:
            continue
        if live.deleted and len(live.deleted) >= limits.deleted_share * live.file.rows:
            heavy.append(live)
        elif _live_bytes(live) < limits.small_bytes:
            small.append(live)
    if limits.tiered:
        small = _of_similar_size(small, limits.files_min)
    chosen = heavy + (small if len(small) + len(heavy) >= limits.files_min else [])
    names = {live.file.name for live in chosen}
    return _within([live for live in files if live.file.name in names], limits.input_bytes_max)


def _live_bytes(live: LiveFile) -> float:
    return live.file.size_bytes * (1 - len(live.deleted) / live.file.rows)


def _of_similar_size(small: list[LiveFile], files_min: int) -> list[LiveFile]:
    """The smallest files of which none is larger than twice the smaller ones together."""
    taken: list[LiveFile] = []
    total = 0.0
    for live in sorted(small, key=_live_bytes):
        size = _live_bytes(live)
        if taken and size > 2 * total:
            if len(taken) >= files_min:
                return taken
            taken, total = [], 0.0
        taken.append(live)
        total += size
    return taken


def _within(chosen: list[LiveFile], bytes_max: int) -> tuple[LiveFile, ...]:
    """As many as fit; one always does."""
    total = 0
    for number, live in enumerate(chosen):
        total += live.file.size_bytes
        if number and total > bytes_max:
            return tuple(chosen[:number])
    return tuple(chosen)
