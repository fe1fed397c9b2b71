"""Types in a temporary schema: none is made any more, and old ones end no server (E3)."""

from dataclasses import replace

from coordinator.core.messages.catalog_changes import RemoveObject, RemoveSchema, RemoveTable
from coordinator.session.temporary_tables import schema_drops
from sql.catalog.catalog import Catalog, Column, Table
from sql.catalog.objects import TYPE_SPACE, DomainDefinition, EnumDefinition
from sql.types.sql_type import INT4

PLACE = "pg_temp_1_a"
ENUM = EnumDefinition(20_001, PLACE, "e", labels=("a",), array=20_002)
DOMAIN = DomainDefinition(20_003, PLACE, "d", base=("int4", -1, None, None, False))
OTHER = replace(DOMAIN, oid=20_004, schema="public", name="o")
OVER_ENUM = replace(OTHER, base=(ENUM.type.name, -1, None, None, False))


def _catalog(*tables: Table, others: tuple[DomainDefinition, ...] = ()) -> Catalog:
    things: tuple[EnumDefinition | DomainDefinition, ...] = (ENUM, DOMAIN, *others)
    return Catalog(
        schemas=frozenset({"public", PLACE}),
        tables={(table.schema, table.name): table for table in tables},
        objects={(TYPE_SPACE, thing.schema, thing.name): thing for thing in things},
    )


def test_what_nobody_has_goes() -> None:
    temporary = Table(16_400, PLACE, "t", "t", (Column("a", ENUM.type),))
    changes = schema_drops(_catalog(temporary, others=(OTHER,)), {PLACE})
    assert changes == [
        RemoveObject(ENUM),
        RemoveObject(DOMAIN),
        RemoveTable(temporary),
        RemoveSchema(PLACE),
    ]


def test_what_a_table_has_stays() -> None:
    table = Table(16_400, "public", "t", "t", (Column("a", ENUM.type),))
    assert schema_drops(_catalog(table), {PLACE}) == [RemoveObject(DOMAIN)]
    table = Table(16_400, "public", "t", "t", (Column("a", INT4, domain=DOMAIN.domain),))
    assert schema_drops(_catalog(table), {PLACE}) == [RemoveObject(ENUM)]


def test_what_a_domain_is_over_stays() -> None:
    assert schema_drops(_catalog(others=(OVER_ENUM,)), {PLACE}) == [RemoveObject(DOMAIN)]
