"""Send the rows of a portal: encoded in pieces, as fast as the client takes them."""

from coordinator.execution.context import Rows
from coordinator.memory_account import MemoryAccount, MemoryOwner
from coordinator.session.client import Client
from coordinator.session.portal import Portal
from coordinator.session.result_encoder import ResultEncoder
from coordinator.variables.variables import Variables


async def send_rows(
    client: Client,
    variables: Variables,
    memory: MemoryAccount,
    portal: Portal,
    outcome: Rows,
    formats: tuple[int, ...],
    *,
    limit: int,
) -> int:
    """The next rows, `limit` at most (0: all); how many. The batch at hand is accounted for."""
    encoder = ResultEncoder(
        outcome.columns,
        formats,
        timezone=variables.timezone,
        styles=variables.styles,
        naming=outcome.naming,
        encoding=variables.encoding,
    )
    # Names of oids are those of the session.
    reader = outcome.reader if outcome.naming is None else None
    written = (formats, variables.timezone, variables.styles, variables.encoding)
    count = 0
    with memory.holding(MemoryOwner.RESULTS) as held:
        async for batch in portal.rows(limit):
            held.set(batch.nbytes)
            encodings = None if reader is None else reader.encodings(batch)
            if encodings is None:
                async for message in encoder.encode(batch):
                    client.send(message)
                    await client.relieve()
            else:
                if written not in encodings:
                    encodings[written] = [message async for message in encoder.encode(batch)]
                for message in encodings[written]:
                    client.send(message)
                    await client.relieve()
            count += batch.num_rows
    return count
