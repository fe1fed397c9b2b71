"""The names of temporary schemas: `pg_temp_N`, and its alias `pg_temp`."""

from typing import Final

ALIAS: Final = "pg_temp"


PREFIX: Final = "pg_temp_"


def is_temporary(schema: str) -> bool:
    """Whether what is in this schema is temporary."""
    return schema.startswith(PREFIX)
