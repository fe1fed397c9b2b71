"""json, jsonb and jsonpath: parsed, printed and compared as PostgreSQL does.

    text ─ parser ─▶ json text, or jsonb canonical text ─ tree ─▶ dict, list, str, Decimal ..
    text ─ path_parser ─▶ Path ─ path_printer ─▶ canonical text
    value of any type ─ to_json ─▶ JSON

A value is always a text: of json the one that was written, of jsonb and jsonpath the canonical one.

  `parser`                         json and jsonb text, trees, and canonical text
  `sort_key`                       jsonb values as bytes that sort as PostgreSQL compares
  `to_json`                        values of all types as JSON
  `path_parser`, `path_printer`    jsonpath text to steps and back

The functions on JSON are in `compute/reference/functions/`. Imports `sql.regex` (for like_regex),
`sql.errors` and `sql_type`; the input functions, the binder and the reference evaluator import it.
"""
