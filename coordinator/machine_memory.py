"""How much memory a server takes, if nobody says it: a share of what the machine has."""

import os
from pathlib import Path
from typing import Final

MEMORY_BESIDE_ENGINE_MB: Final = 512
"""Least memory of the process beside the local engine's: half of it is the server's own."""

_CONTAINER_LIMITS: Final = (
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
)


LOCAL_MEMORY_MB: Final = 1_024
"""Memory of the local engine, if nothing else is said."""


def default_memory_mb() -> int:
    """Three quarters of what this machine, or its container, has; never too little to start."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for file in _CONTAINER_LIMITS:
        try:
            found.append(int(Path(file).read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue  # there is none, or it is `max`
    return max(min(found) * 3 // 4 >> 20, LOCAL_MEMORY_MB + MEMORY_BESIDE_ENGINE_MB)
