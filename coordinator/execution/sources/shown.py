"""The rows of `meridian.connections`: where each goes, and where its password is, never what."""

from collections.abc import Iterator

from sql.binder.resolve.role_names import roles_of
from sql.binder.state import BindContext
from sql.catalog.objects import Subject
from sql.catalog.ownership import object_privileges, owned_object
from sql.catalog.sources import connections_of
from sql.types.sql_type import Value

_PASSWORD_PLACES = ("password env", "password file")


def connection_rows(context: BindContext) -> Iterator[tuple[Value, ...]]:
    """One for each connection of the statement's catalog, in the order of their making."""
    catalog, roles = context.catalog, roles_of(context)
    for found in sorted(connections_of(catalog), key=lambda one: one.oid):
        options = dict(found.options)
        places = [
            f"{place.removeprefix('password ')}: {options[place]}"
            for place in _PASSWORD_PLACES
            if place in options
        ]
        yield (
            found.schema,
            found.name,
            found.connector,
            options["host"],
            int(options["port"]) if "port" in options else None,
            options["database"],
            options["user"],
            places[0] if places else None,
            options.get("ssl mode"),
            options.get("ca file"),
            roles.name(object_privileges(catalog, owned_object(found)).owner),
            catalog.comments.get(Subject(found.kind, found.oid)),
        )
