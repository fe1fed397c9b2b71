"""One file a client; each is a program of its own, and `cases` runs the functions in it."""
