"""Encode catalog objects other than tables as JSON for the stash: their fields, by name.

Every later version reads them: a field that is missing has its default, and fields that are unknown
are a newer version's, which does not start on an older server.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TypeAlias, cast

from sql.catalog.objects import OBJECT_CLASSES, CatalogObject, Subject

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


def encode_object(thing: CatalogObject) -> dict[str, Json]:
    """An object with its kind."""
    body: dict[str, Json] = {field.name: getattr(thing, field.name) for field in fields(thing)}
    return {"kind": thing.kind, **body}


def decode_object(record: Mapping[str, Json]) -> CatalogObject:
    """The object that `encode_object` wrote."""
    kind = OBJECT_CLASSES.get(cast("str", record["kind"]))
    assert kind is not None, f"K3: unknown kind of object {record['kind']}"
    body = {name: _frozen(value) for name, value in record.items() if name != "kind"}
    return kind(**body)  # type: ignore[arg-type] # JSON has what the fields had


def encode_subject(subject: Subject) -> tuple[str, int | str, int | str]:
    """What something is said about."""
    return subject.kind, subject.of, subject.part


def decode_subject(record: Sequence[Json]) -> Subject:
    """The subject that `encode_subject` wrote."""
    return Subject(*cast("tuple[str, int | str, int | str]", tuple(record)))


def _frozen(value: Json) -> object:
    """Lists are tuples again."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_frozen(item) for item in value)
    return value
