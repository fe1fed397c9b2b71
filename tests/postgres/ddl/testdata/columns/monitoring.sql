-- postgres_exporter: pg_database
SELECT pg_database.datname, pg_database.datconnlimit FROM pg_database;
-- postgres_exporter: pg_database_size
SELECT datname, has_database_privilege(current_user, datname, 'connect') FROM pg_database;
-- postgres_exporter: pg_locks
SELECT pg_database.datname as datname, tmp.mode as mode, COALESCE(count, 0) as count FROM (VALUES ('accesssharelock'), ('rowsharelock'), ('rowexclusivelock'), ('shareupdateexclusivelock'), ('sharelock'), ('sharerowexclusivelock'), ('exclusivelock'), ('accessexclusivelock'), ('sireadlock')) AS tmp(mode) CROSS JOIN pg_database LEFT JOIN (SELECT database, lower(mode) AS mode, count(*) AS count FROM pg_locks WHERE database IS NOT NULL GROUP BY database, lower(mode)) AS tmp2 ON tmp.mode = tmp2.mode and pg_database.oid = tmp2.database ORDER BY 1;
-- postgres_exporter: pg_long_running_transactions
SELECT COUNT(*) as transactions, MAX(EXTRACT(EPOCH FROM clock_timestamp() - pg_stat_activity.xact_start)) AS oldest_timestamp_seconds FROM pg_catalog.pg_stat_activity WHERE state IS DISTINCT FROM 'idle' AND query NOT LIKE 'autovacuum:%' AND pg_stat_activity.xact_start IS NOT NULL;
-- postgres_exporter: pg_postmaster
SELECT extract(epoch from pg_postmaster_start_time) from pg_postmaster_start_time();
-- postgres_exporter: pg_process_idle
WITH metrics AS (SELECT state, application_name, SUM(EXTRACT(EPOCH FROM (CURRENT_TIMESTAMP - state_change))::bigint)::float AS process_idle_seconds_sum, COUNT(*) AS process_idle_seconds_count FROM pg_stat_activity WHERE state ~ '^idle' GROUP BY state, application_name) SELECT state, application_name, process_idle_seconds_sum as seconds_sum, process_idle_seconds_count as seconds_count FROM metrics;
-- postgres_exporter: pg_replication
SELECT CASE WHEN NOT pg_is_in_recovery() THEN 0 ELSE 1 END AS is_replica;
-- postgres_exporter: pg_replication_slots
SELECT slot_name, slot_type, active, safe_wal_size, wal_status FROM pg_replication_slots;
-- postgres_exporter: pg_roles
SELECT pg_roles.rolname, pg_roles.rolconnlimit FROM pg_roles;
-- postgres_exporter: pg_stat_activity
SELECT pg_database.datname, tmp.state, tmp2.usename, tmp2.application_name, tmp2.backend_type, tmp2.wait_event_type, tmp2.wait_event, COALESCE(count,0) as count, COALESCE(max_tx_duration,0) as max_tx_duration FROM (VALUES ('active'), ('idle'), ('idle in transaction'), ('idle in transaction (aborted)'), ('fastpath function call'), ('disabled')) AS tmp(state) CROSS JOIN pg_database LEFT JOIN (SELECT datname, state, usename, application_name, backend_type, wait_event_type, wait_event, count(*) AS count, MAX(EXTRACT(EPOCH FROM now() - xact_start))::float AS max_tx_duration FROM pg_stat_activity GROUP BY datname,state,usename,application_name,backend_type,wait_event_type,wait_event) AS tmp2 ON tmp.state = tmp2.state AND pg_database.datname = tmp2.datname;
-- postgres_exporter: pg_stat_archiver
SELECT *, extract(epoch from now() - last_archived_time) AS last_archive_age FROM pg_stat_archiver;
-- postgres_exporter: pg_stat_bgwriter
SELECT buffers_clean, maxwritten_clean, buffers_alloc, stats_reset FROM pg_stat_bgwriter;
-- postgres_exporter: pg_stat_checkpointer
SELECT num_timed, num_requested, restartpoints_timed, restartpoints_req, restartpoints_done, write_time, sync_time, buffers_written, stats_reset FROM pg_stat_checkpointer;
-- postgres_exporter: pg_stat_database
SELECT datid, datname, numbackends, xact_commit, xact_rollback, blks_read, blks_hit, tup_returned, tup_fetched, tup_inserted, tup_updated, tup_deleted, conflicts, temp_files, temp_bytes, deadlocks, blk_read_time, blk_write_time, stats_reset, active_time FROM pg_stat_database;
-- postgres_exporter: pg_stat_database_conflicts
SELECT * FROM pg_stat_database_conflicts;
-- postgres_exporter: pg_stat_progress_vacuum
SELECT d.datname, s.relid::regclass::text AS relname, CASE s.phase WHEN 'initializing' THEN 0 WHEN 'scanning heap' THEN 1 END AS phase, s.heap_blks_total, s.heap_blks_scanned, s.heap_blks_vacuumed, s.index_vacuum_count FROM pg_stat_progress_vacuum s LEFT JOIN pg_database d ON s.datid = d.oid;
-- postgres_exporter: pg_stat_user_tables
SELECT current_database() datname, schemaname, relname, seq_scan, seq_tup_read, idx_scan, idx_tup_fetch, n_tup_ins, n_tup_upd, n_tup_del, n_tup_hot_upd, n_live_tup, n_dead_tup, n_mod_since_analyze, COALESCE(last_vacuum, '1970-01-01Z') as last_vacuum, COALESCE(last_autovacuum, '1970-01-01Z') as last_autovacuum, COALESCE(last_analyze, '1970-01-01Z') as last_analyze, COALESCE(last_autoanalyze, '1970-01-01Z') as last_autoanalyze, vacuum_count, autovacuum_count, analyze_count, autoanalyze_count FROM pg_stat_user_tables;
-- postgres_exporter: pg_statio_user_indexes
SELECT schemaname, relname, indexrelname, idx_blks_read, idx_blks_hit FROM pg_statio_user_indexes;
-- postgres_exporter: pg_statio_user_tables
SELECT current_database() datname, schemaname, relname, heap_blks_read, heap_blks_hit, idx_blks_read, idx_blks_hit, toast_blks_read, toast_blks_hit, tidx_blks_read, tidx_blks_hit FROM pg_statio_user_tables;
-- postgres_exporter: pg_xlog_location
SELECT pg_is_in_recovery();
-- postgres_exporter: server version and settings
SELECT version();
SELECT name, setting, COALESCE(unit, ''), short_desc, vartype FROM pg_settings WHERE vartype IN ('bool', 'integer', 'real') AND name != 'sync_commit_cancel_wait';
-- postgres_exporter: pg_stat_replication
SELECT *, (case pg_is_in_recovery() when 't' then null else 0 end) AS lag FROM pg_stat_replication;
-- postgres_exporter: pg_stat_walreceiver
SELECT slot_name, status, last_msg_send_time, last_msg_receipt_time FROM pg_catalog.pg_stat_wal_receiver;
-- postgres_exporter: pg_database_wraparound
SELECT datname, datallowconn FROM pg_catalog.pg_database WHERE datallowconn;
-- Datadog: instance
SELECT psd.datname, numbackends, xact_commit, xact_rollback, blks_read, blks_hit, tup_returned, tup_fetched, tup_inserted, tup_updated, tup_deleted, 2^31 as wraparound, temp_bytes, temp_files, deadlocks, session_time, active_time, idle_in_transaction_time, sessions, sessions_abandoned, sessions_fatal, sessions_killed FROM pg_stat_database psd JOIN pg_database pd ON psd.datname = pd.datname WHERE psd.datname not ilike 'template%' AND psd.datname not ilike 'rdsadmin';
-- Datadog: bgwriter and checkpointer
select cp.num_timed AS checkpoints_timed, cp.num_requested AS checkpoints_requested, cp.buffers_written AS buffers_checkpoint, bg.buffers_clean, bg.maxwritten_clean, bg.buffers_alloc, cp.write_time AS checkpoint_write_time, cp.sync_time AS checkpoint_sync_time FROM pg_stat_bgwriter bg, pg_stat_checkpointer cp;
-- Datadog: connections
WITH max_con AS (SELECT setting::float FROM pg_settings WHERE name = 'max_connections') SELECT MAX(setting) AS max_connections, SUM(numbackends)/MAX(setting) AS pct_connections FROM pg_stat_database, max_con;
-- Datadog: activity samples
SELECT datname, usename, application_name, client_addr, client_port, pid, state, wait_event_type, wait_event, query, query_start, xact_start, backend_start, state_change, backend_type, pg_blocking_pids(pid) as blocking_pids, clock_timestamp() as now FROM pg_stat_activity WHERE query NOT LIKE 'autovacuum:%' AND datname IS NOT NULL AND (query_start IS NULL OR NOT (state = 'idle' AND pid <> pg_backend_pid()));
-- Datadog: activity metrics
SELECT datname, application_name, state, usename, COUNT(*) AS connections FROM pg_stat_activity WHERE backend_type = 'client backend' AND state IS NOT NULL GROUP BY 1, 2, 3, 4;
-- Datadog: locks
SELECT mode, locktype, pn.nspname, pd.datname, pc.relname, granted, fastpath, count(*) AS locks FROM pg_locks l JOIN pg_database pd ON (l.database = pd.oid) JOIN pg_class pc ON (l.relation = pc.oid) LEFT JOIN pg_namespace pn ON (pn.oid = pc.relnamespace) WHERE l.mode IS NOT NULL AND pn.nspname NOT LIKE 'pg_toast%' GROUP BY pd.datname, pc.relname, pn.nspname, locktype, mode, granted, fastpath;
-- Datadog: relations
SELECT relname, schemaname, seq_scan, seq_tup_read, idx_scan, idx_tup_fetch, n_tup_ins, n_tup_upd, n_tup_del, n_tup_hot_upd, n_live_tup, n_dead_tup, vacuum_count, autovacuum_count, analyze_count, autoanalyze_count, EXTRACT(EPOCH FROM age(CURRENT_TIMESTAMP, last_vacuum)) AS last_vacuum_age FROM pg_stat_user_tables WHERE relname = ANY(array['t', 'u']);
-- Datadog: indexes
SELECT relname, schemaname, indexrelname, idx_scan, idx_tup_read, idx_tup_fetch FROM pg_stat_user_indexes;
-- Datadog: io, slru, wal
SELECT backend_type, object, context, evictions, extend_time, extends, fsync_time, fsyncs, hits, read_time, reads, write_time, writes FROM pg_stat_io LIMIT 200;
SELECT name, blks_zeroed, blks_hit, blks_read, blks_written, blks_exists, flushes, truncates FROM pg_stat_slru;
SELECT wal_records, wal_fpi, wal_bytes, wal_buffers_full FROM pg_stat_wal;
-- Datadog: archiver, subscriptions, slots
select archived_count, failed_count from pg_stat_archiver;
select subname, pid, worker_type from pg_stat_subscription;
select slot_name, spill_txns, total_bytes from pg_stat_replication_slots;
-- Datadog: progress
SELECT v.datname, c.relname, v.phase, v.heap_blks_total, v.heap_blks_scanned, v.index_vacuum_count FROM pg_stat_progress_vacuum as v JOIN pg_class c on c.oid = v.relid;
SELECT a.datname, a.command, a.type, a.bytes_processed, a.tuples_processed FROM pg_stat_progress_copy as a;
-- pgAdmin: dashboard
SELECT 'session_stats' AS chart_name, pg_catalog.row_to_json(t) AS chart_data FROM (SELECT (SELECT count(*) FROM pg_catalog.pg_stat_activity) AS "Total", (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE state = 'active') AS "Active", (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE state = 'idle') AS "Idle") t;
SELECT 'tps_stats' AS chart_name, pg_catalog.row_to_json(t) AS chart_data FROM (SELECT (SELECT sum(xact_commit) + sum(xact_rollback) FROM pg_catalog.pg_stat_database) AS "Transactions", (SELECT sum(xact_commit) FROM pg_catalog.pg_stat_database) AS "Commits", (SELECT sum(xact_rollback) FROM pg_catalog.pg_stat_database) AS "Rollbacks") t;
SELECT 'ti_stats' AS chart_name, pg_catalog.row_to_json(t) AS chart_data FROM (SELECT (SELECT sum(tup_inserted) FROM pg_catalog.pg_stat_database) AS "Inserts", (SELECT sum(tup_updated) FROM pg_catalog.pg_stat_database) AS "Updates", (SELECT sum(tup_deleted) FROM pg_catalog.pg_stat_database) AS "Deletes") t;
SELECT pid, datname, usename, application_name, client_addr, pg_catalog.to_char(backend_start, 'YYYY-MM-DD HH24:MI:SS TZ') AS backend_start, state, wait_event_type || ': ' || wait_event AS wait_event, array_to_string(pg_catalog.pg_blocking_pids(pid), ', ') AS blocking_pids, query, pg_catalog.to_char(state_change, 'YYYY-MM-DD HH24:MI:SS TZ') AS state_change, pg_catalog.to_char(query_start, 'YYYY-MM-DD HH24:MI:SS TZ') AS query_start, backend_type, CASE WHEN state = 'active' THEN ROUND((extract(epoch from now() - query_start) / 60)::numeric, 2) ELSE 0 END AS active_since FROM pg_catalog.pg_stat_activity ORDER BY pid;
SELECT pid, locktype, datname, relation::regclass, page, tuple, virtualxid, transactionid, classid::regclass, objid, virtualtransaction, mode, granted, fastpath FROM pg_catalog.pg_locks l LEFT OUTER JOIN pg_catalog.pg_database d ON (l.database = d.oid) ORDER BY pid, locktype;
-- Superset: cancel
SELECT pg_backend_pid();
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid='2000000000';
-- Knex: cancel
SELECT pg_cancel_backend(2000000000);
-- Prisma: what a migration looks at
SELECT EXISTS(SELECT 1 FROM pg_namespace WHERE nspname = 'public'), version(), current_setting('server_version_num')::integer as numeric_version;
SELECT pg_advisory_lock(72707369);
SELECT pg_advisory_unlock(72707369);
-- resets
SELECT pg_stat_reset(), pg_stat_clear_snapshot(), pg_stat_force_next_flush();
SELECT pg_stat_reset_shared(), pg_stat_reset_shared(NULL), pg_stat_reset_shared('io'), pg_stat_reset_shared(target => 'wal');
SELECT pg_stat_reset_slru(), pg_stat_reset_slru('notify'), pg_stat_reset_slru('no such');
SELECT pg_stat_reset_single_table_counters(5), pg_stat_reset_single_table_counters(NULL), pg_stat_reset_single_function_counters(5);
SELECT pg_stat_reset_backend_stats(1), pg_stat_reset_replication_slot(NULL), pg_stat_reset_subscription_stats(NULL);
