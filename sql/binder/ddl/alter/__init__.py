"""ALTER TABLE and its kin: the definition after the statement, and what its rows need.

    actions, in order ─▶ AlterTableState ─┬─▶ the table after, objects dropped or changed
        (one function each)        (one state)  ├─▶ a rewrite of its rows, if any
                                                └─▶ validations: queries that must find no row

    `statement`                         the entry points: ALTER TABLE and RENAME
    `state`                             `AlterTableState`, the table between two actions
    `actions`                           columns and constraints
    `column_type`, `identity`, `keys`   actions with modules of their own
    `dependents`, `owned_sequences`     foreign keys, views and sequences that an action affects
    `other_relations`                   views, indexes and sequences
    `rename`, `set_schema`              RENAME TO, RENAME COLUMN, SET SCHEMA

Imports the rest of `ddl` and the layers below. `bind` imports it, and so does `ddl.user_types`,
which drops the columns of a dropped type.
"""
