"""Rows of the system catalogs: pg_catalog, information_schema and schema `meridian`.

    BindContext (the catalog) ─▶ rows by column name ─▶ `relations` ─▶ ShardView: an input of a plan
    Coordination.observe() ───▶ `meridian_schema` ────────────────────▶ likewise

Every relation is computed when a statement reads it; `syscache` keeps the rows until what they were
made of changes. The columns are defined in `sql/catalog`. The modules:

- `relations` dispatches by relation; `meridian_schema` serves schema `meridian`;
- `syscache` keeps rows, and looks them up by oid, name and the like;
- `tables`, `types`, `functions`, `roles`, `privileges`, `comments`, `server`, `statistics`,
  `pg_depend` and `sequences` compute rows of pg_catalog, `information_schema` the standard's views;
- `locks` and `activity` compute rows about sessions, which no catalog version has;
- `names` computes the helper relations behind functions such as pg_get_indexdef() and reg types;
- `definitions` holds numbers and texts that several of them need.

`execution` imports the package; it imports `driver`, `core`, `sql` and `storage`.
"""
