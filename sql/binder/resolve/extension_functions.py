"""Look up the extension of a function: its functions are found while it is in the catalog.

An unqualified name is found whatever the search path is, so that a stored default goes on working.
"""

from sql.binder.state import Binding
from sql.catalog.catalog import NameDependency
from sql.catalog.extensions import AVAILABLE_EXTENSIONS, installed_extension
from sql.catalog.objects import EXTENSION_SPACE
from sql.errors import not_supported


def calls_extension_function(
    binding: Binding, extension: str, schema: str | None, name: str
) -> bool:
    """Whether the extension is there, in that schema. 0A000 for a function that Meridian lacks."""
    found = installed_extension(binding.context.catalog, extension)
    if found is None or schema not in (None, found.schema):
        return False
    if name in AVAILABLE_EXTENSIONS[extension].missing:
        raise not_supported(f"the function {name} of the extension {extension}")
    binding.look_ups.add(NameDependency(found.schema, found.name, found.oid, EXTENSION_SPACE))
    return True
