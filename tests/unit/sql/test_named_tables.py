"""`NamedTables`: whatever way it came about, it finds the same as a search through all tables."""

import random
from collections import Counter
from dataclasses import replace

from sql.catalog.catalog import Catalog, CheckConstraint, Column, Key, NamedTables, Table
from sql.types.sql_type import INT8

COLUMNS = (Column("id", INT8),)
NAMED = (Column("id", INT8, not_null=True, not_null_name="c1"),)


def some_table(draw: random.Random, oid: int) -> Table:
    keys = tuple(Key(f"k{draw.randrange(6)}", (0,)) for _ in range(draw.randrange(3)))
    history = draw.choice([None, 1])
    rules = tuple(
        CheckConstraint(f"c{draw.randrange(4)}", "true") for _ in range(draw.randrange(3))
    )
    columns = draw.choice([COLUMNS, NAMED])
    name, schema = f"t{draw.randrange(6)}", draw.choice(["public", "s"])
    table = Table(oid, schema, name, f"shard{oid}", columns, keys=keys, history_us=history)
    return replace(table, checks=rules)


def assert_finds_all(tables: NamedTables) -> None:
    found = [*tables.values()]
    assert tables.by_oid == {table.oid: table for table in found}
    assert tables.with_history == {t.oid: t for t in found if t.history_us is not None}
    keys: dict[tuple[str, str], list[tuple[int, Key]]] = {}
    for table in found:
        for key in table.keys:
            keys.setdefault((table.schema, key.name), []).append((table.oid, key))
    rules = Counter((table.schema, name) for table in found for name in table.rule_names())
    assert tables.rules_named == rules
    assert {
        name: sorted(((t.oid, k) for t, k in of), key=repr)
        for name, of in tables.keys_named.items()
    } == {name: sorted(of, key=repr) for name, of in keys.items()}


def test_it_finds_what_a_search_finds_after_any_changes() -> None:
    draw = random.Random(7)
    tables = NamedTables({})
    for oid in range(1, 400):
        before = NamedTables(tables)
        if tables and draw.random() < 0.4:
            name = draw.choice([*tables])
            if draw.random() < 0.5:
                del tables[name]
            else:
                tables[name] = replace(tables[name], version=1, keys=(), history_us=None)
        else:
            table = some_table(draw, oid)
            tables[table.schema, table.name] = table
        assert_finds_all(tables)
        assert_finds_all(before)
        if oid % 20 == 0:
            tables = NamedTables(dict(tables))
            assert_finds_all(tables)


def test_a_name_is_counted_as_table_and_as_key() -> None:
    first = Table(1, "public", "a", "s1", COLUMNS, keys=(Key("b", (0,)),))
    second = Table(2, "public", "b", "s2", COLUMNS)
    catalog = Catalog(tables={("public", "a"): first, ("public", "b"): second})
    assert [catalog.times_named("public", name) for name in "abc"] == [1, 2, 0]
    assert catalog.times_named("other", "a") == 0
