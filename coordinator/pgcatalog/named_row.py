"""The shape of a catalog's row before it has its columns' order."""

from collections.abc import Mapping
from typing import TypeAlias

from sql.types.sql_type import Value

NamedRow: TypeAlias = Mapping[str, Value]
"""Values by the names of columns; it names the columns it has (W2 of `relations.py`)."""
