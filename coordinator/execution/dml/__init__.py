"""Data modification: the rows that a statement deletes, replaces or inserts; their constraints.

    source plan ─▶ modify_part ─┬─ rows to delete ─▶ claimed_rows, old_rows, updated_keys
                                └─ new rows ─▶ row_sink (row_constraints) ─▶ inline or staged
    all parts ─▶ statement_work ─▶ unique_keys ─▶ the transaction ─▶ foreign_keys

- One part of a statement: `modify_part`, `on_conflict`, `claimed_rows`, `old_rows`,
  `updated_keys`, `transient_relations`.
- New rows: `row_sink`, `row_constraints`, `domain_constraints`, `check_option`.
- The whole statement: `statement_work`, `unique_keys`, `foreign_keys`, `referential_actions`.
- At COMMIT: `deferred_constraints`.

`execution` and `session` import the package. Of `execution` it imports only modules that know no
kind of statement, such as `context`, `run_plan` and `spill`.
"""
