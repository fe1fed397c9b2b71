"""The isolation level that a driver's transaction really has, whatever name SHOW gives it."""

from collections.abc import Iterable
from typing import Final

STRICT: Final = "strict serializable"
EXPLAIN: Final = "explain timestamp for select 1"
"""Answers lines for `named_level`."""


def named_level(lines: Iterable[str]) -> str:
    """The level that EXPLAIN TIMESTAMP names."""
    (level,) = [line for line in lines if line.startswith("Isolation: ")]
    return level.removeprefix("Isolation: ")
