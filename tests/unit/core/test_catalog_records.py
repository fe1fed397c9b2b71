"""Catalog records: what is not a default is written, and what older programs wrote is read."""

import json
from collections.abc import Mapping
from dataclasses import fields, replace

import pytest

from coordinator.core.catalog_records import Json, decode_change, encode_change
from coordinator.core.messages.catalog_changes import PutTable
from sql.catalog.catalog import CheckConstraint, Column, ForeignKey, Key, Table
from sql.catalog.objects import Domain, Feed, StoredQuery
from sql.types.sql_type import INT8

COLUMN = Column("a", INT8)
TABLE = Table(oid=20_000, schema="public", name="t", shard="t_1", version=0, columns=(COLUMN,))

OF_COLUMNS: Mapping[str, object] = {
    "name": "b", "type": INT8, "not_null": True, "has_default": True, "default": -0.0,
    "expression": "now()", "number": 3, "stored": "a_1", "sequence": 20_001, "identity": "always",
    "generated": "a + 1", "not_null_name": "n", "domain": Domain(1, "s", "d", True, (("c", "t"),)),
    "default_of_domain": True, "collation": "C", "default_text": "0", "invariant": "a > 0",
}  # fmt: skip

OF_TABLES: Mapping[str, object] = {
    "oid": 20_002, "schema": "s", "name": "u", "shard": "t_2", "version": 4, "columns": (),
    "timeline": "line", "history_us": 5, "keys": (Key("k", (0,), True, True),),
    "checks": (CheckConstraint("c", "a > 0"),), "numbers": 7, "on_commit": "delete rows",
    "foreign_keys": (ForeignKey("f", (0,), 20_003, (0,), "a", "a"),), "clustered": (0,),
    "parameters": ("fillfactor=70",), "unlogged": True, "unique_indexes": (20_004,),
    "query": StoredQuery("SELECT 1", (), (), on_commit=True), "feed": Feed(20_005, "s.t"),
    "change_feed": True,
}  # fmt: skip


def after_json(table: Table) -> Table:
    change = decode_change(json.loads(json.dumps(encode_change(PutTable(table)))))
    assert isinstance(change, PutTable)
    return change.table


def test_all_fields_are_known_here() -> None:
    assert {field.name for field in fields(Column)} == OF_COLUMNS.keys()
    assert {field.name for field in fields(Table)} == OF_TABLES.keys()


@pytest.mark.parametrize("name", OF_COLUMNS)
def test_each_field_of_a_column_survives(name: str) -> None:
    table = replace(TABLE, columns=(replace(COLUMN, **{name: OF_COLUMNS[name]}), COLUMN))
    assert repr(after_json(table)) == repr(table)


@pytest.mark.parametrize("name", OF_TABLES)
def test_each_field_of_a_table_survives(name: str) -> None:
    table = replace(TABLE, **{name: OF_TABLES[name]})
    assert after_json(table) == table


def test_what_is_a_default_is_not_written() -> None:
    assert encode_change(PutTable(TABLE)) == {"put_table": _plain()}


def test_records_with_all_defaults_are_read() -> None:
    """As programs before wrote them."""
    written: dict[str, Json] = {
        "expression": None, "number": 0, "stored": "", "sequence": 0, "identity": "",
        "generated": None, "not_null_name": "", "domain": None, "default_of_domain": False,
        "collation": "", "invariant": "", "default_text": "",
    }  # fmt: skip
    record = _plain(**written) | {
        "timeline": "system", "history_us": None, "keys": [], "checks": [], "numbers": 0,
        "foreign_keys": [], "on_commit": "", "clustered": [], "parameters": [], "unlogged": False,
        "unique_indexes": [], "query": None,
    }  # fmt: skip
    assert decode_change({"put_table": record}) == PutTable(TABLE)


def _plain(**further: Json) -> dict[str, Json]:
    type_ = [INT8.name, INT8.typmod, INT8.precision, INT8.scale, INT8.trim]
    column: dict[str, Json] = {"name": "a", "type": type_, "not_null": False}
    column |= {"has_default": False, "default": None}
    return {
        "oid": 20_000, "schema": "public", "name": "t", "shard": "t_1", "version": 0,
        "columns": [column | further],
    }  # fmt: skip
