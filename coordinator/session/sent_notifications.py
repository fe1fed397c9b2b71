"""What LISTEN hears, on its way from the coordinator to the client."""

from coordinator.core.messages.identities import ConnectionId
from coordinator.driver.coordination import Coordination
from coordinator.pgwire.messages import NotificationResponse
from coordinator.session.client import Client
from sql.errors import SqlError


async def send_notifications(
    client: Client, coordination: Coordination, owner: ConnectionId
) -> bool:
    """Send what the session has not heard, a piece of it; whether there is more."""
    try:
        taken = await coordination.take_notifications(owner)
    except SqlError:
        return False  # the server ends, and says so to every session
    for sent in taken.sent:
        said = sent.notification
        client.send(NotificationResponse(sent.sender, said.channel, said.payload))
    await client.relieve()
    return taken.more
