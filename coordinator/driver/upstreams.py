"""Reach other systems by their connections: readers for sources, and a look before one is made.

    SourceDefinition, ConnectionDefinition ─▶ secret, address ─▶ PostgresReader

INVARIANTS
  U1  a secret is read when connecting, and goes into the connection alone (X1 of `ingest/secrets`).
  U2  the names of what stands upstream for a source begin with its `feed_id` and generation. So it
      is found again, and two servers never meet.
"""

import os
from collections.abc import Mapping
from typing import Final

from ingest.generator import GeneratorOptions, GeneratorReader
from ingest.postgres.libpq_link import PostgresAddress
from ingest.reader import ReaderFailure, SourceReader, Upstream
from ingest.secrets import SecretRules
from sql.catalog.objects import ConnectionDefinition, SourceDefinition
from sql.catalog.sources import GENERATOR, POSTGRES


class Upstreams:
    """Makes readers. `rules`: which secrets may be read, and which hosts reached. `stash`: the
    system identifier of the stash's cluster, if it is a PostgreSQL.
    """

    def __init__(
        self, rules: SecretRules, environment: Mapping[str, str] = os.environ, *, stash: str = ""
    ) -> None:
        self._stash: Final = stash
        self._rules: Final = rules
        self._environment: Final = environment

    async def reader(
        self,
        source: SourceDefinition,
        connection: ConnectionDefinition | None,
        *,
        joins: bool = False,
        epoch: int = 0,
    ) -> SourceReader:
        """A reader that nobody has used. Raises ReaderFailure if it may not connect. `joins`: it
        copies, beside the source's reader, and whatever it makes upstream ends with it. `epoch`: of
        the coordinator that it is for, if it makes something there.
        """
        if source.connector == GENERATOR:
            return GeneratorReader(GeneratorOptions.of(dict(source.options)))
        if source.connector != POSTGRES:
            raise ReaderFailure("0A000", f"a source from {source.connector}", broken=True)
        # A server without such a source starts without it.
        from ingest.postgres.reader import PostgresReader

        publication = dict(source.options)["publication"]
        return PostgresReader(
            await self._address(connection),
            publication=publication,
            slot=f"{slot_name(source)}_joins" if joins else slot_name(source),
            # Upstream's commits do not wait for who only copies.
            name=f"{source.name}_joins" if joins else source.name,
            temporary=joins,
            epoch=0 if joins else epoch,
            stash=self._stash,
        )

    async def _address(self, connection: ConnectionDefinition | None) -> PostgresAddress:
        from ingest.postgres.connecting import postgres_address

        assert connection is not None, "a source of another server has a connection"
        return await postgres_address(dict(connection.options), self._rules, self._environment)

    async def release(
        self, source: SourceDefinition, connection: ConnectionDefinition | None
    ) -> None:
        """Remove all that stands upstream for a source, up to its generation."""
        if source.connector != POSTGRES:
            return
        from ingest.postgres.slots import release_slots

        address = await self._address(connection)
        await release_slots(address, f"{source.name}_watch", _slots(source), source.generation)

    async def inspect(self, source: SourceDefinition, connection: ConnectionDefinition) -> Upstream:
        """What can be read there. Changes nothing."""
        reader = await self.reader(source, connection)
        try:
            return await reader.inspect()
        finally:
            await reader.close()


def slot_name(source: SourceDefinition) -> str:
    """The name of what stands upstream (U2)."""
    return f"{_slots(source)}{source.generation}"


def _slots(source: SourceDefinition) -> str:
    return f"meridian_{source.feed_id}_"
