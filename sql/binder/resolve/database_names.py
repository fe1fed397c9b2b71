"""Names of databases in statements: there is one database, which is called as the client says."""

from sql.catalog.oids import DATABASE_OIDS
from sql.errors import SqlError, not_supported


def elsewhere(name: str) -> SqlError:
    """0A000 for another name of the database, 3D000 for none."""
    if name in DATABASE_OIDS:
        return not_supported(f'changing the database "{name}" from another one')
    return SqlError("3D000", f'database "{name}" does not exist')
