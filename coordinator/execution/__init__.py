"""Execute one bound statement: read through views of a snapshot, buffer writes, return rows.

    bound statement ─▶ execute_<kind> ─┬─ views ─▶ engine_choice ─▶ run_plan ─▶ Rows(batches, tag)
                                └─ writes, DDL ─▶ the transaction ─────▶ Done(tag)

- Shared by all: `context` (services, inputs, outcomes), `read_predicates`.
- Queries: `query`, `keyed_query`, `keyed_access`, `engine_choice`, `run_plan`, `in_process`,
  `reg_names`.
- Writes: `modify`, `blind_insert`, `copy`, `create_table_as`, `truncate`, `spill`,
  `parquet_spooler`, `row_text`, and the package `dml`.
- Definitions: `ddl`, `alter_table`, `grant`.
- Functions with effects: `sequence_calls`, `session_functions`.
- Others: `settings`, `lock_table`, `maintenance`, `explain`, `explain_output`,
  `explain_timestamp`, `time_value`.

It imports `transaction`, `pgcatalog` and the layers below them. `session` and `server` import it.
"""
