"""Look at the tables of a publication: columns, keys, and what hinders reading them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ingest.postgres.libpq_link import LibpqLink, quote_name, quote_names, quote_text
from ingest.postgres.upstream_types import KEY_HINT, TypeRow, TypeRows, matching_type, type_name
from ingest.reader import ReaderFailure, UpstreamColumn, UpstreamTable

_LISTS_SINCE: Final = 150_000
"""Since then a publication may list columns and filter rows."""


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """A table of a publication. `only`: its own rows, without those of tables that inherit."""

    oid: int
    schema: str
    name: str
    only: bool
    row_filter: str
    table: UpstreamTable

    def copy_statement(self, columns: Sequence[UpstreamColumn]) -> str:
        """COPY of the rows that the publication has."""
        only = "ONLY " if self.only else ""
        where = f" WHERE {self.row_filter}" if self.row_filter else ""
        names = quote_names([column.name for column in columns])
        relation = f"{quote_name(self.schema)}.{quote_name(self.name)}"
        return f"COPY (SELECT {names} FROM {only}{relation}{where}) TO STDOUT"


async def fetch_tables(link: LibpqLink, publication: str) -> dict[str, PublishedTable]:
    """The tables of a publication by reference, `schema.name`."""
    lists = link.server_version >= _LISTS_SINCE
    types = await fetch_types(link)
    rows = await link.query(
        _TABLES.format(
            name=quote_text(publication),
            row_filter="t.rowfilter" if lists else "NULL",
            listed="AND a.attname = ANY (t.attnames)" if lists else "",
        )
    )
    found: dict[str, PublishedTable] = {}
    for oid, schema, name, kind, identity, row_filter, columns, key in rows:
        reference = f"{schema}.{name}"
        twice = reference in found
        found[reference] = PublishedTable(
            int(oid or 0),
            schema or "",
            name or "",
            kind == "r",
            row_filter or "",
            _table(reference, identity or "", columns, json.loads(key or "[]"), types),
        )
        if twice:
            table = replace(found[reference].table, obstacle=_ambiguous(reference))
            found[reference] = replace(found[reference], table=table)
    return found


def _ambiguous(reference: str) -> ReaderFailure:
    return ReaderFailure(
        "0A000",
        f"two tables of the publication are called {reference}",
        hint="Upstream: rename one of them, or its schema; or publish one of them alone.",
    )


_TABLES: Final = """
SELECT c.oid, t.schemaname, t.tablename, c.relkind, c.relreplident, {row_filter},
    (SELECT json_agg(json_build_array(a.attname, a.atttypid::int8, a.atttypmod, a.attnotnull)
                     ORDER BY a.attnum)
     FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
          AND a.attgenerated = '' {listed}),
    (SELECT json_agg(a.attname ORDER BY k.place)
     FROM pg_index i, unnest(i.indkey) WITH ORDINALITY AS k (attnum, place), pg_attribute a
     WHERE i.indrelid = c.oid AND a.attrelid = c.oid AND a.attnum = k.attnum
           AND k.place <= i.indnkeyatts
           AND CASE c.relreplident WHEN 'i' THEN i.indisreplident WHEN 'n' THEN false
               ELSE i.indisprimary AND i.indimmediate END)
FROM pg_publication_tables t, pg_namespace n, pg_class c
WHERE t.pubname = {name} AND n.nspname = t.schemaname
      AND c.relname = t.tablename AND c.relnamespace = n.oid
ORDER BY t.schemaname, t.tablename
"""


def _table(
    reference: str, identity: str, columns: str | None, key: Sequence[str], types: TypeRows
) -> UpstreamTable:
    taken: list[UpstreamColumn] = []
    unsupported: dict[str, str] = {}
    for name, oid, typmod, not_null in json.loads(columns or "[]"):
        type_ = matching_type(oid, typmod, types)
        if type_ is None:
            unsupported[name] = type_name(oid, typmod, types)
        else:
            taken.append(UpstreamColumn(name, type_, not_null))
    return UpstreamTable(
        reference, tuple(taken), tuple(key), unsupported, _obstacle(reference, identity, key)
    )


def _obstacle(reference: str, identity: str, key: Sequence[str]) -> ReaderFailure | None:
    if identity == "f" or (key and identity != "n"):
        return None
    return ReaderFailure(
        "0A000",
        f"upstream table {reference} has no replica identity",
        hint=f"Upstream: ALTER TABLE {reference} REPLICA IDENTITY FULL; or add a primary key.",
    )


def find_tables(
    published: Mapping[str, PublishedTable], tables: Sequence[UpstreamTable], publication: str
) -> dict[int, PublishedTable]:
    """Those of them that are wanted, by oid. Raises 42P01, with `broken`."""
    found: dict[int, PublishedTable] = {}
    for table in tables:
        known = published.get(table.reference)
        if known is None:
            message = f'table {table.reference} is not in publication "{publication}"'
            hint = f"Upstream: ALTER PUBLICATION .. ADD TABLE {table.reference}."
            raise ReaderFailure("42P01", message, hint=hint, broken=True)
        if table.key and set(table.key) != set(known.table.key):
            wanted = ", ".join(table.key)
            message = f"the key of table {table.reference} is not {wanted} upstream"
            raise ReaderFailure("55000", message, hint=KEY_HINT, broken=True)
        found[known.oid] = known
    return found


async def fetch_types(link: LibpqLink) -> TypeRows:
    """Types of upstream that are not built in, or that we lack."""
    rows = await link.query(
        "SELECT oid, format_type(oid, NULL), typtype, typbasetype, typtypmod FROM pg_type "
        "WHERE typtype IN ('d', 'e', 'r', 'm', 'c') OR oid < 16384 OR typcategory = 'A'"
    )
    found: dict[int, TypeRow] = {}
    for oid, name, kind, base, typmod in rows:
        row = TypeRow(int(oid or 0), name or "", kind or "", int(base or 0), int(typmod or -1))
        found[row.oid] = row
    return found
