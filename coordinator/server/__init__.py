"""The server process: start-up and recovery, connections, engines, shutdown.

    settings ─▶ open_storage ─▶ recovery (load_shards) ─▶ Timelines ─▶ serve ─▶ server
    socket ─▶ server ─▶ connection ─▶ `session.Session`

- Commands of the program: `serve` and `check`.
- Start-up: `open_storage`, `recovery`, `load_shards`, `engines`, `log`.
- Clients: `server` (listener, limits, cancel keys), `connection` (one socket).

Only `main` imports the package; it may import everything else of `coordinator`.
"""
