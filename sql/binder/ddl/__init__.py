"""Data definition: CREATE, ALTER, DROP, COMMENT, GRANT to bound changes of the catalog.

    node ─▶ checks in PostgreSQL's order ─▶ CreateTable, AlterTable, ChangeObjects .. ─▶ coordinator
                                            (definitions before and after, validations, notices)

The binder changes nothing. Stored expressions are bound once for their errors and returned as text.
Dependents are found in the catalog: they raise 2BP01, or CASCADE lists them.

    `create`, `create_table_as`, `schemas`, `schema_elements`      CREATE TABLE, CREATE SCHEMA
    `columns`, `like`, `generated`, `deferral`                     parts of CREATE TABLE
    `storage_options`, `storage_parameters`, `physical_layout`     what is said about storage
    `keys`, `foreign_keys`, `checks`, `row_validations`, `delta_invariants`     constraints
    `indexes`, `index_methods`, `views`                            CREATE INDEX, CREATE VIEW
    `sequences`, `sequence_options`                                sequences
    `domains`, `enums`, `user_types`                               types
    `drop`, `drop_absent`, `drop_sequences`, `dropped_domains`     DROP
    `comments`                                                     COMMENT ON
    `alter`, `roles`                                               ALTER; roles and privileges

Imports `dml` and all packages below it; `session`, `bind` and `broken_definitions` import it.
"""
