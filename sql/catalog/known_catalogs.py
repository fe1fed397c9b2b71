"""Which relations of pg_catalog and information_schema answer (G1 of `system_catalogs.py`)."""

from typing import Final

_PG_CATALOG: Final = "pg_catalog"
_INFORMATION_SCHEMA: Final = "information_schema"

COMPUTED_CATALOGS: Final = frozenset(
    {
        f"{_PG_CATALOG}.{name}"
        for name in (
            "pg_am", "pg_attrdef", "pg_attribute", "pg_auth_members", "pg_authid",
            "pg_available_extension_versions", "pg_available_extensions", "pg_extension",
            "pg_cast", "pg_class", "pg_collation", "pg_constraint", "pg_database",
            "pg_db_role_setting",
            "pg_default_acl", "pg_depend", "pg_description", "pg_enum", "pg_group",
            "pg_hba_file_rules", "pg_ident_file_mappings",
            "pg_index", "pg_indexes", "pg_init_privs", "pg_language", "pg_locks", "pg_matviews",
            "pg_namespace",
            "pg_opclass", "pg_range",
            "pg_proc", "pg_rewrite", "pg_roles", "pg_sequence", "pg_sequences",
            "pg_settings", "pg_shadow", "pg_shdescription", "pg_stat_all_tables",
            "pg_stat_sys_tables", "pg_stat_user_indexes", "pg_stat_user_tables", "pg_tables",
            "pg_tablespace", "pg_type", "pg_user", "pg_views",
            "pg_stat_all_indexes", "pg_stat_sys_indexes", "pg_stat_xact_all_tables",
            "pg_stat_xact_sys_tables", "pg_stat_xact_user_tables", "pg_statio_all_indexes",
            "pg_statio_all_sequences", "pg_statio_all_tables", "pg_statio_sys_indexes",
            "pg_statio_sys_sequences", "pg_statio_sys_tables", "pg_statio_user_indexes",
            "pg_statio_user_sequences", "pg_statio_user_tables", "pg_stat_archiver",
            "pg_stat_bgwriter", "pg_stat_checkpointer", "pg_stat_database_conflicts",
            "pg_stat_activity", "pg_stat_progress_copy", "pg_stat_progress_vacuum",
            "pg_config", "pg_conversion", "pg_cursors", "pg_prepared_statements", "pg_shdepend",
            "pg_stat_database", "pg_stat_recovery_prefetch", "pg_stat_slru",
            "pg_timezone_abbrevs", "pg_timezone_names", "pg_ts_config", "pg_ts_config_map",
            "pg_ts_dict", "pg_ts_parser", "pg_ts_template", "pg_wait_events",
            "pg_stat_wal", "pg_stat_io", "pg_stat_ssl", "pg_stat_gssapi", "pg_statistic_ext",
            "pg_aggregate", "pg_amop", "pg_amproc", "pg_operator", "pg_opfamily",
        )
    }
    | {
        f"{_INFORMATION_SCHEMA}.{name}"
        for name in (
            "administrable_role_authorizations", "applicable_roles",
            "column_privileges", "columns", "domain_constraints", "domains",
            "enabled_roles", "key_column_usage", "parameters",
            "referential_constraints", "role_column_grants", "role_table_grants",
            "role_udt_grants", "role_usage_grants", "routines", "schemata", "sequences",
            "table_constraints", "table_privileges", "tables", "udt_privileges",
            "usage_privileges", "views",
            "character_sets", "check_constraints", "collation_character_set_applicability",
            "collations", "column_column_usage", "column_domain_usage", "column_udt_usage",
            "constraint_column_usage", "constraint_table_usage", "data_type_privileges",
            "domain_udt_usage", "element_types", "information_schema_catalog_name",
            "role_routine_grants", "routine_privileges", "sql_features",
            "sql_implementation_info", "sql_parts", "sql_sizing", "view_column_usage",
            "view_table_usage",
        )
    }
)  # fmt: skip

EMPTY_CATALOGS: Final = frozenset(
    {
        f"{_PG_CATALOG}.{name}"
        for name in (
            "pg_event_trigger",
            "pg_foreign_data_wrapper", "pg_foreign_server", "pg_foreign_table",
            "pg_inherits", "pg_largeobject_metadata",
            "pg_partitioned_table", "pg_policies", "pg_policy", "pg_publication",
            "pg_publication_namespace", "pg_publication_rel", "pg_publication_tables",
            "pg_prepared_xacts", "pg_replication_slots", "pg_rules", "pg_seclabel", "pg_shseclabel",
            "pg_stat_replication", "pg_stat_subscription", "pg_stat_user_functions",
            "pg_statistic", "pg_stats", "pg_stats_ext", "pg_subscription",
            "pg_transform", "pg_trigger",
            "pg_user_mapping", "pg_user_mappings",
            "pg_aios", "pg_backend_memory_contexts",
            "pg_file_settings", "pg_largeobject", "pg_parameter_acl", "pg_replication_origin",
            "pg_replication_origin_status", "pg_seclabels", "pg_shmem_allocations",
            "pg_shmem_allocations_numa", "pg_stat_progress_analyze", "pg_stat_progress_basebackup",
            "pg_stat_progress_cluster", "pg_stat_progress_create_index",
            "pg_stat_replication_slots", "pg_stat_subscription_stats",
            "pg_stat_wal_receiver", "pg_stat_xact_user_functions", "pg_statistic_ext_data",
            "pg_stats_ext_exprs", "pg_subscription_rel",
        )
    }
    | {
        f"{_INFORMATION_SCHEMA}.{name}"
        for name in (
            "_pg_foreign_data_wrappers", "_pg_foreign_servers", "_pg_foreign_table_columns",
            "_pg_foreign_tables", "_pg_user_mappings", "attributes",
            "check_constraint_routine_usage", "column_options", "foreign_data_wrapper_options",
            "foreign_data_wrappers", "foreign_server_options", "foreign_servers",
            "foreign_table_options", "foreign_tables", "routine_column_usage",
            "routine_routine_usage", "routine_sequence_usage", "routine_table_usage", "transforms",
            "triggered_update_columns", "triggers", "user_defined_types", "user_mapping_options",
            "user_mappings", "view_routine_usage",
        )
    }
)  # fmt: skip
