"""Name and type resolution: tables, columns, types, roles, functions, operators and conversions.

Everything here answers a question about one name, one call or one conversion; no module binds a
whole clause. A catalog lookup is recorded in the `Binding`, so that a statement is bound again, or
its commit refused, when the name comes to mean something else.

    `catalog_lookup`, `relations`, `temporary_names`         relations and schemas
    `type_names`, `expression_domain`, `role_names`          types, domains, roles
    `reg_literals`, `function_names`, `setting_literals`     literals resolved at binding
    `column_lookup`, `column_hints`, `outer_join_presence`   columns of FROM
    `overloads`, `function_choice`, `postgresql_functions`   which function a call means
    `coercion`, `unified_types`, `collations`                conversions, common types, collations
    `sql_functions`, `styled_functions`, `styled_arguments`  calls that need rewriting
    `operator_classes`, `updatable_query`, `query_result`        index types, views, results

Imports `state`, the catalog, the function table and types; used by all other packages of the
binder.
"""
