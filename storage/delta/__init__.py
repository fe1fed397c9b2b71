"""Delta tables: the log, snapshots, data files and deletion vectors, written and read by us."""
