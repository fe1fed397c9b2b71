"""Expressions and queries that the catalog stores as SQL text, and the objects that they depend on.

    CREATE ─▶ bound once, for its errors ─▶ canonical text in the catalog
    later statement ─▶ text ─parse─▶ bound as part of that statement

Names in stored text are stable: a type has its schema, a relation constant is an oid. A view also
stores the relation and the columns that each name meant. Dependencies are read off both; nothing
else records them.

    `stored_names`, `stored_texts`   canonical names, and all stored texts of a catalog
    `column_expressions`             defaults and CHECK constraints
    `domain_checks`                  NOT NULL and CHECK of domains
    `sequence_values`                nextval() and its kin as runtime parameters
    `views`, `view_text`             the query of a view, bound or displayed
    `relation_users`, `type_users`   dependents of a relation or a type
    `table_changes`                  pure edits of a table's definition

Imports `resolve` and `state`; used by everything above, by the session and by system catalogs.
"""
