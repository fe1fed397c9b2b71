"""CREATE, ALTER and DROP EXTENSION: those whose functions are built in can be had, others not.

The functions of an extension stand in stored texts by their names. So DROP EXTENSION looks for
calls in all of them.
"""

from collections.abc import Iterator, Sequence

from pglast.enums import DropBehavior

from sql.binder.resolve.catalog_lookup import check_may_create, existing_schemas, schema_exists
from sql.binder.state import Binding
from sql.binder.stored.stored_texts import all_stored_texts
from sql.catalog.catalog import Catalog
from sql.catalog.extensions import (
    AVAILABLE_EXTENSIONS,
    PLPGSQL,
    AvailableExtension,
    calls_extension,
    installed_extension,
)
from sql.catalog.objects import ExtensionDefinition
from sql.errors import SqlError, not_supported, undefined_schema
from sql.parser.syntax import Node
from sql.statements.ddl import ChangeObjects, CreateObject
from sql.types.sql_type import quoted_name


def create_extension(binding: Binding, node: Node) -> CreateObject | ChangeObjects:
    """CREATE EXTENSION [IF NOT EXISTS]. Raises 42710, 0A000, 22023, 3F000."""
    name: str = node.extname
    if installed_extension(binding.context.catalog, name) is not None:
        said = f'extension "{name}" already exists'
        if not node.if_not_exists:
            raise SqlError("42710", said)
        return ChangeObjects("CREATE EXTENSION", notices=(("42710", f"{said}, skipping", None),))
    options = {option.defname: option.arg for option in node.options or ()}
    found = _available(name)
    release = options["new_version"].sval if "new_version" in options else found.release
    if release != found.release:
        message = f'extension "{name}" has no installation script nor update path for version'
        raise SqlError("22023", f'{message} "{release}"')
    schema = _schema(binding, found, options["schema"].sval if "schema" in options else None)
    made = ExtensionDefinition(0, schema, name, release=release)
    return CreateObject(made, "CREATE EXTENSION")


def _available(name: str) -> AvailableExtension:
    found = AVAILABLE_EXTENSIONS.get(name)
    if found is None:
        there = ", ".join(sorted(AVAILABLE_EXTENSIONS))
        raise SqlError(
            "0A000",
            f'extension "{name}" is not available',
            hint=f"Available extensions: {there}.",
        )
    return found


def _schema(binding: Binding, found: AvailableExtension, wanted: str | None) -> str:
    if wanted is not None:
        check_may_create(wanted, found.name)
        if not schema_exists(binding, wanted):
            raise undefined_schema(wanted)
        return wanted
    context = binding.context
    for name in existing_schemas(context, context.creation_path):
        check_may_create(name, found.name)
        if schema_exists(binding, name):
            return name
    raise SqlError("3F000", "no schema has been selected to create in")


def alter_extension(binding: Binding, node: Node) -> ChangeObjects:
    """ALTER EXTENSION .. UPDATE: there is one version of each."""
    found = find_extension(binding.context.catalog, node.extname)
    options = {option.defname: option.arg for option in node.options or ()}
    release = options["new_version"].sval if "new_version" in options else found.release
    if release != found.release:
        message = f'extension "{found.name}" has no update path from version "{found.release}"'
        raise SqlError("22023", f'{message} to version "{release}"')
    said = f'version "{release}" of extension "{found.name}" is already installed'
    return ChangeObjects("ALTER EXTENSION", notices=(("00000", said, None),))


def find_extension(catalog: Catalog, name: str) -> ExtensionDefinition:
    """The extension of that name. Raises 42704."""
    found = installed_extension(catalog, name)
    if found is None:
        raise SqlError("42704", f'extension "{name}" does not exist')
    return found


def drop_extensions(binding: Binding, node: Node) -> ChangeObjects:
    """DROP EXTENSION [IF EXISTS]. Raises 42704, 2BP01; 0A000 with CASCADE over what calls it."""
    catalog = binding.context.catalog
    dropped: dict[str, ExtensionDefinition] = {}
    notices: list[tuple[str, str, str | None]] = []
    for item in node.objects:
        found = installed_extension(catalog, item.sval)
        if found is None and node.missing_ok:
            said = f'extension "{item.sval}" does not exist, skipping'
            notices.append(("00000", said, None))
        else:
            dropped[item.sval] = find_extension(catalog, item.sval)
    if PLPGSQL.name in dropped:
        raise not_supported("DROP EXTENSION plpgsql")
    refuse_used_extensions(
        catalog, [*dropped.values()], cascade=node.behavior == DropBehavior.DROP_CASCADE
    )
    return ChangeObjects("DROP EXTENSION", dropped=(*dropped.values(),), notices=(*notices,))


def refuse_used_extensions(
    catalog: Catalog, extensions: Sequence[ExtensionDefinition], *, cascade: bool
) -> None:
    """2BP01 if a stored text calls a function of these; 0A000 if it should be dropped along."""
    users = [*_users(catalog, extensions)]
    if not users:
        return
    if cascade:
        raise not_supported("DROP EXTENSION .. CASCADE while a definition calls its functions")
    names = ", ".join(found.shown for found in extensions)
    raise SqlError(
        "2BP01",
        f"cannot drop extension {names} because other objects depend on it",
        detail="\n".join(users),
        hint="Use DROP ... CASCADE to drop the dependent objects too.",
    )


def refuse_renamed_calls(catalog: Catalog, extension: ExtensionDefinition) -> None:
    """0A000 if a stored text calls a function of the extension with its schema, which gets another
    name.
    """
    prefixes = (f"{extension.schema}.", f"{quoted_name(extension.schema)}.")
    for kept in all_stored_texts(catalog):
        qualified = any(prefix in kept.text for prefix in prefixes)
        if qualified and calls_extension(kept.text, extension.name):
            what = f"a schema whose name {kept.what} has"
            raise not_supported(f"renaming {what} before a function of {extension.shown}")


def _users(catalog: Catalog, extensions: Sequence[ExtensionDefinition]) -> Iterator[str]:
    for kept in all_stored_texts(catalog) if extensions else ():
        for found in extensions:
            if calls_extension(kept.text, found.name):
                yield f"{kept.what} depends on extension {found.shown}"
