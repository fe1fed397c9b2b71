"""Names of functions in literals and values of regproc (regprocin).

All are PostgreSQL's own, so that what a name means depends on no catalog.
"""

from sql.errors import SqlError, not_supported
from sql.pg_proc import by_name, is_ambiguous
from sql.postgresql_names import postgresql_names
from sql.qualified_names import name_parts
from sql.system_catalogs import PG_CATALOG


def function_named(text: str, place: int | None) -> int | None:
    """The oid of the only function of that name; None if there is none. Raises 42602 for no name,
    42725 if there are several, 0A000 for what PostgreSQL alone has.
    """
    *schema, name = name_parts(text, place)
    if len(schema) > 1:
        shown = ".".join([*schema, name])
        message = f"cross-database references are not implemented: {shown}"
        raise SqlError("0A000", message, place)
    if schema not in ([], [PG_CATALOG]):
        return None
    found, theirs = by_name().get(name), postgresql_names().functions.get(name, ())
    if is_ambiguous(name) or len(theirs) > 1:
        raise SqlError("42725", f'more than one function named "{text}"', place)
    if found is None and theirs:
        raise not_supported(f"function {name}", place)
    return None if found is None else found[0].oid
