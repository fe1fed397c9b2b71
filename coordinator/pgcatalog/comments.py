"""Rows of pg_description and pg_shdescription: the comments that COMMENT has set.

A row names the columns it has (W2 of `pgcatalog/relations.py`).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from coordinator.pgcatalog.named_row import NamedRow
from coordinator.pgcatalog.recorded import recorded_comments
from sql.binder.state import BindContext
from sql.catalog.catalog import Catalog
from sql.catalog.extensions import AVAILABLE_EXTENSIONS, PLPGSQL
from sql.catalog.objects import Subject
from sql.catalog.oids import DATABASE_OIDS, derived_oid, schema_oid

_PG_CLASS: Final = 1259
_CLASSES: Final = {
    "relation": _PG_CLASS, "column": _PG_CLASS, "index": _PG_CLASS, "constraint": 2606,
    "schema": 2615, "type": 1247, "extension": 3079, "statistics": 3381,
}  # fmt: skip
PUBLIC_SCHEMA: Final = Subject("schema", "public")
"""PostgreSQL is born with a comment on it, and pg_dump moves any other."""

_PG_DATABASE, _PG_AUTHID = 1262, 1260


def _oid(subject: Subject) -> int:
    match subject:
        case Subject("schema", str(name)):
            return schema_oid(name)
        case Subject("constraint" | "index" as kind, int(table), str(name)):
            return derived_oid(kind, table, name)
        case Subject(of=int(oid)):
            return oid
        case _:
            raise AssertionError(f"something else is commented on: {subject}")


def _pg_description(context: BindContext) -> Iterator[NamedRow]:
    yield from recorded_comments()
    yield {
        "objoid": PLPGSQL.oid,
        "classoid": _CLASSES["extension"],
        "description": AVAILABLE_EXTENSIONS[PLPGSQL.name].comment,
    }
    if PUBLIC_SCHEMA not in context.catalog.comments and "public" in context.catalog.schemas:
        yield {
            "objoid": _oid(PUBLIC_SCHEMA),
            "classoid": _CLASSES["schema"],
            "description": "standard public schema",
        }
    for subject, text in _comments(context.catalog):
        if subject.kind in _CLASSES:
            yield {
                "objoid": _oid(subject),
                "classoid": _CLASSES[subject.kind],
                "objsubid": subject.part if subject.kind == "column" else 0,
                "description": text,
            }


_DATABASES: Final = {
    "template1": "default template for new databases",
    "template0": "unmodifiable empty database",
    "postgres": "default administrative connection database",
}


def _pg_shdescription(context: BindContext) -> Iterator[NamedRow]:
    said = {subject.of for subject, _ in _comments(context.catalog) if subject.kind == "database"}
    for name, text in _DATABASES.items():
        if name not in said:
            yield {"objoid": DATABASE_OIDS[name], "classoid": _PG_DATABASE, "description": text}
    for subject, text in _comments(context.catalog):
        if subject.kind == "database":
            oid = DATABASE_OIDS[str(subject.of)]
            yield {"objoid": oid, "classoid": _PG_DATABASE, "description": text}
        elif subject.kind == "role":
            yield {"objoid": subject.of, "classoid": _PG_AUTHID, "description": text}


def _comments(catalog: Catalog) -> list[tuple[Subject, str]]:
    return sorted(catalog.comments.items(), key=repr)


COMMENT_ROWS: Final[Mapping[str, Callable[[BindContext], Iterator[NamedRow]]]] = {
    "pg_description": _pg_description,
    "pg_shdescription": _pg_shdescription,
}
