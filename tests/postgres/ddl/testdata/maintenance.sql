# VACUUM and ANALYZE: their options and columns.
create table a (i int, t text)
vacuum a
vacuum (analyze) a (i)
vacuum (verbose off, analyze, skip_locked 'on') a (i, t)
vacuum (full false, freeze 0, disable_page_skipping off, only_database_stats off) a
analyze a (t)
analyze (verbose false, skip_locked) a
vacuum (nope) a
vacuum (verbose maybe) a
vacuum (verbose '1') a
vacuum (analyze 3) a
vacuum a (i)
vacuum (analyze false) a (i)
vacuum nope (x)
vacuum analyze a (nope)
vacuum analyze a (i, i)
analyze a (nope)
analyze a (i, t, i)
vacuum (analyze off) a
analyze (nope)
analyze (analyze)
analyze (freeze)
analyze (full)
analyze (verbose nope)
analyze nope
vacuum nope
# meridian
vacuum full a
vacuum (freeze) a
vacuum (disable_page_skipping) a
vacuum (only_database_stats)
vacuum (parallel 2) a
vacuum (index_cleanup auto) a
vacuum (truncate off) a
vacuum (process_main off, process_toast off) a
vacuum (skip_database_stats) a
vacuum (buffer_usage_limit 128) a
analyze (buffer_usage_limit 128) a
