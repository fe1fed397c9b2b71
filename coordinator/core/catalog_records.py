"""Encode catalog changes as JSON for the stash, and decode them.

Every later version reads them: fields are only ever added.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast

from coordinator.core.messages.catalog_changes import (
    AttachView,
    CatalogChange,
    LeaveView,
    PutComment,
    PutObject,
    PutPrivileges,
    PutReadHold,
    PutRole,
    PutSchema,
    PutSettings,
    PutTable,
    PutTimeline,
    RemoveObject,
    RemoveReadHold,
    RemoveRole,
    RemoveSchema,
    RemoveTable,
    RemoveTimeline,
)
from coordinator.core.object_records import (
    decode_object,
    decode_privileges,
    decode_role,
    decode_subject,
    encode_object,
    encode_privileges,
    encode_role,
    encode_subject,
)
from sql.catalog.catalog import (
    SYSTEM_TIMELINE,
    CheckConstraint,
    Column,
    ForeignKey,
    Key,
    ReadHold,
    Table,
    Timeline,
)
from sql.catalog.objects import Comment, Domain, ExactView, Feed, StoredQuery
from sql.catalog.stored_settings import SettingScope
from sql.types.sql_type import Interval, SqlType, Value

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"


def encode_change(change: CatalogChange) -> dict[str, Json]:
    """One change as a JSON object."""
    match change:
        case PutTable(table=table):
            return {"put_table": _encode_table(table)}
        case RemoveTable(table=table):
            return {"remove_table": _encode_table(table)}
        case PutComment(comment=comment):
            return {"put_comment": [*encode_subject(comment.subject), comment.text]}
        case PutRole(role=role):
            return {"put_role": encode_role(role)}
        case RemoveRole(role=role):
            return {"remove_role": encode_role(role)}
        case PutPrivileges(subject=subject, rights=rights):
            return {"put_rights": [encode_subject(subject), encode_privileges(rights)]}
        case PutSettings(scope=scope, texts=texts):
            return {"put_settings": [scope.database, scope.role, texts]}
        case PutObject(object=thing):
            return {"put_object": encode_object(thing)}
        case RemoveObject(object=thing):
            return {"remove_object": encode_object(thing)}
        case PutSchema(name=name):
            return {"put_schema": name}
        case RemoveSchema(name=name):
            return {"remove_schema": name}
        case PutTimeline(timeline=timeline):
            record: dict[str, Json] = {"name": timeline.name, "manual": timeline.manual}
            return {"put_timeline": {**record, "part": timeline.part}}
        case RemoveTimeline(name=name):
            return {"remove_timeline": name}
        case PutReadHold(hold=hold):
            return {"put_read_hold": {"name": hold.name, "timeline": hold.timeline, "ts": hold.ts}}
        case RemoveReadHold(name=name):
            return {"remove_read_hold": name}
        case AttachView(oid=oid, view=view):
            rests = sorted(view.inputs), sorted(view.definitions)
            return {"attach_view": [oid, *rests, view.computed_at]}
        case LeaveView(oid=oid):
            return {"leave_view": oid}


def decode_change(record: Mapping[str, Json]) -> CatalogChange:
    """The change that `encode_change` wrote."""
    ((kind, body),) = record.items()
    match kind:
        case "put_table":
            return PutTable(_decode_table(_object(body)))
        case "remove_table":
            return RemoveTable(_decode_table(_object(body)))
        case "put_comment":
            *subject, text = cast("Sequence[Json]", body)
            return PutComment(Comment(decode_subject(subject), _optional_text(text)))
        case "put_role":
            return PutRole(decode_role(_object(body)))
        case "remove_role":
            return RemoveRole(decode_role(_object(body)))
        case "put_rights":
            whose, said = cast("tuple[Sequence[Json], Mapping[str, Json]]", body)
            return PutPrivileges(decode_subject(whose), decode_privileges(said))
        case "put_settings":
            database, role, texts = cast("tuple[int, int, Sequence[str]]", body)
            return PutSettings(SettingScope(database, role), (), tuple(texts))
        case "put_object":
            return PutObject(decode_object(_object(body)))
        case "remove_object":
            return RemoveObject(decode_object(_object(body)))
        case "put_schema":
            return PutSchema(_text(body))
        case "remove_schema":
            return RemoveSchema(_text(body))
        case "put_timeline":
            record = _object(body)
            part = _text(record.get("part", ""))
            return PutTimeline(Timeline(_text(record["name"]), bool(record["manual"]), part))
        case "remove_timeline":
            return RemoveTimeline(_text(body))
        case "put_read_hold":
            return PutReadHold(_decode_hold(_object(body)))
        case "remove_read_hold":
            return RemoveReadHold(_text(body))
        case "attach_view":
            oid, inputs, definitions, ts = cast(
                "tuple[int, Sequence[int], Sequence[int], int]", body
            )
            return AttachView(oid, ExactView(frozenset(inputs), frozenset(definitions), ts))
        case "leave_view":
            return LeaveView(_integer(body))
        case _:
            raise AssertionError(f"K3: unknown catalog record {kind}")


def _encode_table(table: Table) -> dict[str, Json]:
    record: dict[str, Json] = {
        "oid": table.oid,
        "schema": table.schema,
        "name": table.name,
        "shard": table.shard,
        "version": table.version,
        "columns": [_encode_column(column) for column in table.columns],
    }
    further: dict[str, Json] = {
        "history_us": table.history_us,
        "keys": [_encode_key(key) for key in table.keys],
        "checks": [asdict(check) for check in table.checks],
        "numbers": table.numbers,
        "foreign_keys": [_encode_foreign(key) for key in table.foreign_keys],
        "on_commit": table.on_commit,
        "clustered": table.clustered,
        "parameters": table.parameters,
        "unlogged": table.unlogged,
        "unique_indexes": table.unique_indexes,
        "query": None if table.query is None else _encode_query(table.query),
        "feed": None if table.feed is None else asdict(table.feed),
        "change_feed": table.change_feed,
    }
    if table.timeline != SYSTEM_TIMELINE.name:
        record["timeline"] = table.timeline
    return record | _said(further)


def _said(fields: Mapping[str, Json]) -> dict[str, Json]:
    """Those that differ from their defaults, which are empty: a start reads all of them."""
    return {name: value for name, value in fields.items() if value}


def _encode_key(key: Key) -> dict[str, Json]:
    record: dict[str, Json] = {
        "name": key.name,
        "columns": key.columns,
        "primary": key.primary,
        "nulls_distinct": key.nulls_distinct,
    }
    further: dict[str, Json] = {
        "index": key.index,
        "deferrable": key.deferrable,
        "deferred": key.deferred,
        "orders": key.orders,
        "parameters": key.parameters,
        "include": key.include,
    }
    return record | _said(further)


def _decode_table(record: Mapping[str, Json]) -> Table:
    # A start reads every table, and little is said of most.
    further = {name: _FURTHER[name](said) for name, said in record.items() if name in _FURTHER}
    return Table(
        _integer(record["oid"]),
        _text(record["schema"]),
        _text(record["name"]),
        _text(record["shard"]),
        tuple([_decode_column(column) for column in _objects(record["columns"])]),
        _integer(record["version"]),
        **cast("dict[str, Any]", further),
    )


def _decode_feed(record: Json) -> Feed | None:
    if record is None:
        return None
    body = _object(record)
    seen = cast("Sequence[tuple[str, str]]", body.get("seen", ()))
    return Feed(
        _integer(body["source"]),
        _text(body["reference"]),
        _names(body.get("columns", ())),
        _names(body.get("key", ())),
        tuple((name, type_) for name, type_ in seen),
    )


def _names(record: Json) -> tuple[str, ...]:
    return tuple(map(_text, cast("Sequence[Json]", record)))


def _encode_query(query: StoredQuery) -> dict[str, Json]:
    state = [[name, _encode_type(type_)] for name, type_ in query.state]
    return {**asdict(query), "state": state}


def _decode_query(record: Json) -> StoredQuery | None:
    if record is None:
        return None
    body = _object(record)
    relations = cast(
        "Sequence[tuple[str, str, int, Sequence[str], Sequence[int]]]", body["relations"]
    )
    uses = cast("Sequence[tuple[int, int]]", body["uses"])
    state = cast("Sequence[tuple[str, Json]]", body.get("state", ()))
    return StoredQuery(
        _text(body["text"]),
        tuple(
            (schema, name, oid, tuple(names), tuple(numbers))
            for schema, name, oid, names, numbers in relations
        ),
        tuple((oid, number) for oid, number in uses),
        bool(body["is_populated"]),
        bool(body.get("on_commit", False)),
        tuple((name, _decode_type(type_)) for name, type_ in state),
    )


def _encode_type(type_: SqlType) -> Json:
    return [type_.name, type_.typmod, type_.precision, type_.scale, type_.trim]


def _decode_type(record: Json) -> SqlType:
    name, typmod, precision, scale, trim = cast(
        "tuple[str, int, int | None, int | None, bool]", record
    )
    return SqlType(name, typmod, precision, scale, trim)


def _encode_foreign(key: ForeignKey) -> dict[str, Json]:
    return {
        "name": key.name,
        "columns": key.columns,
        "table": key.table,
        "references": key.references,
        "on_delete": key.on_delete,
        "on_update": key.on_update,
        "deferrable": key.deferrable,
        "deferred": key.deferred,
        "match_full": key.match_full,
        "set_columns": key.set_columns,
        "validated": key.validated,
    }


def _decode_foreign(record: Mapping[str, Json]) -> ForeignKey:
    return ForeignKey(
        _text(record["name"]),
        tuple(cast("Sequence[int]", record["columns"])),
        _integer(record["table"]),
        tuple(cast("Sequence[int]", record["references"])),
        _text(record["on_delete"]),
        _text(record["on_update"]),
        bool(record.get("deferrable", False)),
        bool(record.get("deferred", False)),
        bool(record.get("match_full", False)),
        tuple(cast("Sequence[int]", record.get("set_columns", ()))),
        bool(record.get("validated", True)),
    )


def _decode_check(record: Mapping[str, Json]) -> CheckConstraint:
    return CheckConstraint(
        _text(record["name"]),
        _text(record["expression"]),
        bool(record.get("validated", True)),
        bool(record.get("no_inherit", False)),
    )


def _decode_key(record: Mapping[str, Json]) -> Key:
    return Key(
        _text(record["name"]),
        tuple(cast("Sequence[int]", record["columns"])),
        bool(record["primary"]),
        bool(record["nulls_distinct"]),
        bool(record.get("index", False)),
        bool(record.get("deferrable", False)),
        bool(record.get("deferred", False)),
        tuple(map(_text, cast("Sequence[Json]", record.get("orders", ())))),
        tuple(map(_text, cast("Sequence[Json]", record.get("parameters", ())))),
        tuple(cast("Sequence[int]", record.get("include", ()))),
    )


def _decode_hold(record: Mapping[str, Json]) -> ReadHold:
    return ReadHold(_text(record["name"]), _text(record["timeline"]), _integer(record["ts"]))


def _encode_column(column: Column) -> dict[str, Json]:
    type_ = column.type
    record: dict[str, Json] = {
        "name": column.name,
        "type": [type_.name, type_.typmod, type_.precision, type_.scale, type_.trim],
        "not_null": column.not_null,
        "has_default": column.has_default,
        "default": _encode_value(column.default),
    }
    further: dict[str, Json] = {
        "expression": column.expression,
        "number": column.number,
        "stored": column.stored,
        "sequence": column.sequence,
        "identity": column.identity,
        "generated": column.generated,
        "not_null_name": column.not_null_name,
        "domain": None if column.domain is None else asdict(column.domain),
        "default_of_domain": column.default_of_domain,
        "collation": column.collation,
        "invariant": column.invariant,
        "default_text": column.default_text,
    }
    return record | _said(further)


def _decode_column(record: Mapping[str, Json]) -> Column:
    if len(record) == _PLAIN_FIELDS and record["default"] is None:
        type_ = tuple(cast("Sequence[str | int | bool | None]", record["type"]))
        named = _text(record["name"]), bool(record["not_null"]), bool(record["has_default"])
        return _plain_column(*named, type_)
    return Column(
        name=_text(record["name"]),
        type=_decode_type(record["type"]),
        not_null=bool(record["not_null"]),
        has_default=bool(record["has_default"]),
        default=_decode_value(record["default"]),
        expression=_optional_text(record.get("expression")),
        number=_integer(record.get("number", 0)),
        stored=_text(record.get("stored", "")),
        sequence=_integer(record.get("sequence", 0)),
        identity=_text(record.get("identity", "")),
        generated=_optional_text(record.get("generated")),
        not_null_name=_text(record.get("not_null_name", "")),
        domain=_decode_domain(record.get("domain")),
        default_of_domain=bool(record.get("default_of_domain", False)),
        collation=_text(record.get("collation", "")),
        invariant=_text(record.get("invariant", "")),
        default_text=_text(record.get("default_text", "")),
    )


_PLAIN_FIELDS: Final = 5
"""Of a column about which nothing more is said; most are such."""


@lru_cache(maxsize=10_000)
def _plain_column(name: str, not_null: bool, has_default: bool, type_: Sequence[Json]) -> Column:
    """Many tables have columns that are alike; they are one in memory, too."""
    return Column(name, _decode_type(type_), not_null, has_default)


def _decode_domain(record: Json) -> Domain | None:
    if record is None:
        return None
    body = _object(record)
    checks = cast("Sequence[tuple[str, str]]", body["checks"])
    return Domain(
        _integer(body["oid"]),
        _text(body["schema"]),
        _text(body["name"]),
        bool(body["not_null"]),
        tuple((name, text) for name, text in checks),
        _text(body["default"]),
    )


def _encode_value(value: Value) -> Json:
    match value:
        case Decimal():
            return {"decimal": str(value)}
        case bytes():
            return {"bytes": value.hex()}
        case Interval():
            return {"interval": [value.months, value.days, value.micros]}
        case float():
            # repr() keeps NaN and the infinities, which JSON does not have.
            return {"float": repr(value)}
        case tuple():
            return {"array": [_encode_value(item) for item in value]}
        case _:
            return value


def _decode_value(record: Json) -> Value:
    if not isinstance(record, Mapping):
        return cast("Value", record)
    ((kind, body),) = record.items()
    match kind:
        case "decimal":
            return Decimal(_text(body))
        case "bytes":
            return bytes.fromhex(_text(body))
        case "interval":
            return Interval(*cast("tuple[int, int, int]", body))
        case "float":
            return float(_text(body))
        case "array":
            return tuple([_decode_value(item) for item in cast("Sequence[Json]", body)])
        case _:
            raise AssertionError(f"K3: unknown value {kind}")


def _object(value: Json) -> Mapping[str, Json]:
    assert isinstance(value, Mapping), "K3: a record is an object"
    return value


def _objects(value: Json) -> "Sequence[Mapping[str, Json]]":
    return cast("Sequence[Mapping[str, Json]]", value)


def _text(value: Json) -> str:
    assert isinstance(value, str), "K3: a name is a string"
    return value


def _optional_text(value: Json) -> str | None:
    return None if value is None else _text(value)


def _integer(value: Json) -> int:
    assert isinstance(value, int), "K3: a number is an integer"
    return value


def _numbers(value: Json) -> tuple[int, ...]:
    return tuple(cast("Sequence[int]", value))


_FURTHER: Final[Mapping[str, Callable[[Json], object]]] = {
    "timeline": _text,
    "history_us": lambda said: None if said is None else _integer(said),
    "keys": lambda said: tuple([_decode_key(key) for key in _objects(said)]),
    "checks": lambda said: tuple([_decode_check(check) for check in _objects(said)]),
    "numbers": _integer,
    "foreign_keys": lambda said: tuple([_decode_foreign(key) for key in _objects(said)]),
    "on_commit": _text,
    "clustered": _numbers,
    "parameters": _names,
    "unlogged": bool,
    "unique_indexes": _numbers,
    "query": _decode_query,
    "feed": _decode_feed,
    "change_feed": bool,
}
"""What a record of a table may say; what it does not is as `Table` has it."""
