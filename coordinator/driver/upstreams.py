"""Reach other systems by their connections: readers for sources, and a look before one is made.

    SourceDefinition, ConnectionDefinition ─▶ secret, address ─▶ PostgresReader

INVARIANTS
  U1  a secret is read when connecting, and goes into the connection alone (X1 of `ingest/secrets`).
  U2  what stands upstream for a source is named by its `feed_id` and generation alone, so that it
      is found again, and two servers never meet.
"""

import os
from collections.abc import Mapping
from typing import Final

from ingest.reader import ReaderFailure, SourceReader, Upstream
from ingest.secrets import SecretRules
from sql.catalog.objects import ConnectionDefinition, SourceDefinition
from sql.catalog.sources import POSTGRES


class Upstreams:
    """Makes readers. `rules`: which secrets may be read, and which hosts reached."""

    def __init__(self, rules: SecretRules, environment: Mapping[str, str] = os.environ) -> None:
        self._rules: Final = rules
        self._environment: Final = environment

    async def reader(
        self, source: SourceDefinition, connection: ConnectionDefinition
    ) -> SourceReader:
        """A reader that nobody has used. Raises ReaderFailure if it may not connect."""
        if source.connector != POSTGRES:
            raise ReaderFailure("0A000", f"a source from {source.connector}", broken=True)
        # A server without such a source starts without them.
        from ingest.postgres.connecting import postgres_address
        from ingest.postgres.reader import PostgresReader

        address = await postgres_address(dict(connection.options), self._rules, self._environment)
        publication = dict(source.options)["publication"]
        return PostgresReader(
            address, publication=publication, slot=slot_name(source), name=source.name
        )

    async def inspect(self, source: SourceDefinition, connection: ConnectionDefinition) -> Upstream:
        """What can be read there. Changes nothing."""
        reader = await self.reader(source, connection)
        try:
            return await reader.inspect()
        finally:
            await reader.close()


def slot_name(source: SourceDefinition) -> str:
    """The name of what stands upstream (U2)."""
    return f"meridian_{source.feed_id}_{source.generation}"
