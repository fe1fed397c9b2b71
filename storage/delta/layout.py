"""Object names of a shard's files; its directory is called after the shard.

<shard>/part-….parquet  <shard>/deletion_vector_<uuid>.bin
<shard>/_delta_log/<version>.json  .checkpoint.parquet  .crc  _last_checkpoint
"""

import re
from typing import Final

from storage.types import ShardId, Source

LOG_DIRECTORY: Final = "_delta_log"

_LOG_FILE: Final = re.compile(r"(\d{20})\.(json|crc|checkpoint\.parquet)")


def data_path(shard: ShardId, name: Source | str) -> str:
    """The object that holds a data file or a file of deletion vectors."""
    return f"{shard}/{name}"


def log_directory(shard: ShardId) -> str:
    """The directory of the shard's Delta log."""
    return f"{shard}/{LOG_DIRECTORY}"


def commit_path(shard: ShardId, version: int) -> str:
    """The log file of one version."""
    return f"{log_directory(shard)}/{version:020}.json"


def checkpoint_path(shard: ShardId, version: int) -> str:
    """The checkpoint of one version."""
    return f"{log_directory(shard)}/{version:020}.checkpoint.parquet"


def checksum_path(shard: ShardId, version: int) -> str:
    """The checksum of one version."""
    return f"{log_directory(shard)}/{version:020}.crc"


def last_checkpoint_path(shard: ShardId) -> str:
    """The hint that tells readers where to start."""
    return f"{log_directory(shard)}/_last_checkpoint"


def parse_log_path(path: str) -> tuple[int, str] | None:
    """Version and kind (`json`, `crc`, `checkpoint.parquet`) of a file in a log, or None."""
    match = _LOG_FILE.fullmatch(path.rpartition("/")[2])
    return (int(match[1]), match[2]) if match else None
