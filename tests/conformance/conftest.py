"""The PostgreSQL that readers of sources follow here, as in `tests/ingest`."""

from tests.ingest.conftest import database, shared_database, upstream_server

__all__ = ["database", "shared_database", "upstream_server"]
