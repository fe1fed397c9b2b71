"""Names of temporary schemas: `pg_temp_N`, and its alias `pg_temp`."""

from typing import Final

ALIAS: Final = "pg_temp"


PREFIX: Final = "pg_temp_"


def is_temporary(schema: str) -> bool:
    """Whether a schema holds temporary objects."""
    return schema.startswith(PREFIX)
