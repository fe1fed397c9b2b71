"""Names of temporary schemas: `pg_temp_N`, and its alias `pg_temp`."""

from typing import Final

TEMPORARY_SCHEMA_ALIAS: Final = "pg_temp"


TEMPORARY_SCHEMA_PREFIX: Final = "pg_temp_"


def is_temporary_schema(schema: str) -> bool:
    """Whether a schema holds temporary objects."""
    return schema.startswith(TEMPORARY_SCHEMA_PREFIX)
