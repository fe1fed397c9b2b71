"""Convert stored rows to a table's current columns: the schema changes, old rows do not.

    stored rows (fields by name) ── shaped(schema) ──▶ the fields of the schema, in its order
                                                        └ a field that the rows lack is NULL

INVARIANTS
  P1  a field's name means one column for ever: it is never given to another column, and its type
      never changes. What a column is called and where it stands is in the catalog.
  P2  shaping moves no row: identities stay true.
"""

from collections.abc import Sequence

import pyarrow as pa


def has_schema(rows: pa.Schema, schema: pa.Schema) -> bool:
    """Whether rows have these very fields, in this order."""
    # Nearly always equal, which is told without a list; what may be NULL does not count.
    return rows.equals(schema) or (rows.names == schema.names and rows.types == schema.types)


def conform_to_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the fields of the schema (P2)."""
    if has_schema(rows.schema, schema):
        return rows
    there = {name: place for place, name in enumerate(rows.schema.names)}
    columns = [
        rows.column(there[field.name]).cast(field.type)
        if field.name in there
        else pa.chunked_array([pa.nulls(rows.num_rows, field.type)])
        for field in schema
    ]
    return _of(columns, schema)


def cast_to(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Shaped, and with the schema's metadata. A field that is NULL in some row, if only in a dead
    one that is older than NOT NULL, may be NULL.
    """
    return _of(conform_to_schema(rows, schema).columns, schema)


def _of(
    columns: "Sequence[pa.ChunkedArray[pa.Scalar[pa.DataType]]]", schema: pa.Schema
) -> pa.Table:
    fields = [
        field.with_nullable(field.nullable or column.null_count > 0)
        for field, column in zip(schema, columns, strict=True)
    ]
    return pa.table(columns, schema=pa.schema(fields).with_metadata(schema.metadata))


def concat_conforming(tables: Sequence[pa.Table]) -> pa.Table:
    """All rows, one table after the other, with the fields of all of them (P1)."""
    first = tables[0].schema
    if all(table.schema is first or table.schema.equals(first) for table in tables):
        return pa.concat_tables(tables)
    fields = {field.name: field.with_nullable(True) for table in tables for field in table.schema}
    schema = pa.schema(fields.values())
    return pa.concat_tables([_bare(conform_to_schema(table, schema), schema) for table in tables])


def _bare(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same rows with exactly this schema, metadata too."""
    return pa.table(rows.columns, schema=schema)
