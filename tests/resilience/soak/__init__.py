"""A crowd of clients of all kinds on one server for a long time: nothing leaks, nobody hangs.

    served.py    the server, with a window into its process; bugs that may be planted
    crowd.py     what clients of all kinds share: who they are, what they were told
    writers.py   clients that count their own writes: psycopg, raw messages, psql's COPY
    askers.py    clients that read: by key, long, large, a reader that stands still
    storms.py    clients that vanish, cancel, terminate, kill the JVM
    running.py   the run, its judges, and its report

`make soak` (30 minutes), `SOAK_S=60` for a minute. `make test` runs half a minute of it.
"""
