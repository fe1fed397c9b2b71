"""Delta tables: the log, files and deletion vectors that we write, and who else reads them."""
