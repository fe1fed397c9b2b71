"""Rows of pg_extension, pg_available_extensions and pg_available_extension_versions.

A row names the columns it has (W2 of `pgcatalog/relations.py`).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from coordinator.pgcatalog.named_row import NamedRow
from sql.binder.state import BindContext
from sql.catalog.acl import OWNER
from sql.catalog.extensions import AVAILABLE_EXTENSIONS, installed_extensions
from sql.catalog.oids import schema_oid


def _pg_extension(context: BindContext) -> Iterator[NamedRow]:
    for found in installed_extensions(context.catalog):
        yield {
            "oid": found.oid,
            "extname": found.name,
            "extowner": OWNER,
            "extnamespace": schema_oid(found.schema),
            "extrelocatable": not AVAILABLE_EXTENSIONS[found.name].schema,
            "extversion": found.release,
        }


def _pg_available_extensions(context: BindContext) -> Iterator[NamedRow]:
    installed = {found.name: found.release for found in installed_extensions(context.catalog)}
    for found in AVAILABLE_EXTENSIONS.values():
        yield {
            "name": found.name,
            "default_version": found.release,
            "installed_version": installed.get(found.name),
            "comment": found.comment,
        }


def _pg_available_extension_versions(context: BindContext) -> Iterator[NamedRow]:
    installed = {found.name for found in installed_extensions(context.catalog)}
    for found in AVAILABLE_EXTENSIONS.values():
        yield {
            "name": found.name,
            "version": found.release,
            "installed": found.name in installed,
            "superuser": True,
            "trusted": True,
            "relocatable": not found.schema,
            "schema": found.schema or None,
            "comment": found.comment,
        }


EXTENSION_ROWS: Final[Mapping[str, Callable[[BindContext], Iterator[NamedRow]]]] = {
    "pg_available_extension_versions": _pg_available_extension_versions,
    "pg_available_extensions": _pg_available_extensions,
    "pg_extension": _pg_extension,
}
