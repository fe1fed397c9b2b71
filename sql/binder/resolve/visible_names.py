"""Whether a name alone finds a type, and how a type's name is therefore shown.

INVARIANTS
  V1  a name without schema finds the same type again, with the search path that it was shown for
      (TypeIsVisible).
"""

from collections.abc import Sequence

from sql.catalog.catalog import Catalog
from sql.catalog.objects import ViewDefinition
from sql.catalog.system_catalogs import PG_CATALOG, system_catalogs
from sql.parser.type_names import is_builtin_type
from sql.types.catalog_types import is_catalog_type
from sql.types.sql_type import quoted_name


def type_is_visible(catalog: Catalog, search_path: Sequence[str], schema: str, name: str) -> bool:
    """Whether the name alone finds the type, a relation's row type too (V1)."""
    first = () if PG_CATALOG in search_path else (PG_CATALOG,)
    for one in (*first, *search_path):
        if one == schema:
            return True
        if _has_type(catalog, one, name):
            return False
    return False


def shown_type_name(catalog: Catalog, search_path: Sequence[str], schema: str, name: str) -> str:
    """A user's type as format_type() writes it, without `[]`."""
    visible = type_is_visible(catalog, search_path, schema, name)
    return quoted_name(name) if visible else f"{quoted_name(schema)}.{quoted_name(name)}"


def _has_type(catalog: Catalog, schema: str, name: str) -> bool:
    if schema == PG_CATALOG and (is_builtin_type(name) or is_catalog_type(name)):
        return True
    if (schema, name) in system_catalogs() or (schema, name) in catalog.tables:
        return True
    named = catalog.type_named(schema, name)
    return named is not None or isinstance(catalog.relation(schema, name), ViewDefinition)
