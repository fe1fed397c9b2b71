# mypy: allow-untyped-calls
# py4j has no types; this module is where they enter.
"""The connection to a JVM: py4j, with what does not fit a server taken out.

INVARIANTS
  W1  a command is sent once. py4j itself would send it again after a broken connection, although
      it may have been executed; and it would log a stack to the root logger.
  W2  no object of the JVM is released in the thread that happens to collect it, which may be the
      event loop's.
"""

from typing import Any, Final

from py4j.clientserver import (
    SHUTDOWN_FINALIZER_WORKER,
    ClientServer,
    JavaClient,
    JavaParameters,
    PythonParameters,
)
from py4j.protocol import Py4JNetworkError, is_fatal_error

# The adapter's name for objects that live in the JVM: py4j knows their types only at run time.
JavaObject = Any

_LOOPBACK: Final = "127.0.0.1"


class _Client(JavaClient):
    """Sends commands (W1)."""

    def send_command(self, command: str, retry: bool = True, binary: bool = False) -> str:
        del retry
        assert not binary, "streams are not used"
        connection = self._get_connection()
        try:
            response = str(connection.send_command(command))
        except Py4JNetworkError:
            connection.close()
            raise
        if is_fatal_error(response):
            connection.close()
        else:
            self._give_back_connection(connection)
        return response


class Gateway(ClientServer):
    """The root of a JVM's packages (`jvm`), for all threads; each has a connection of its own."""

    def __init__(self, port: int, secret: str) -> None:
        super().__init__(
            java_parameters=JavaParameters(
                address=_LOOPBACK, port=port, auth_token=secret, auto_convert=True
            ),
            python_parameters=PythonParameters(address=_LOOPBACK, port=0, eager_load=False),
        )

    def _create_gateway_client(self) -> _Client:
        # W2: releases are queued for a thread of py4j's.
        releases = self._create_finalizer_worker()
        return _Client(self.java_parameters, self.python_parameters, finalizer_deque=releases)

    def disconnect(self) -> None:
        """Close all connections and end the thread; for a JVM that is dead."""
        client = self._gateway_client
        client.is_connected = False
        client.finalizer_deque.appendleft(SHUTDOWN_FINALIZER_WORKER)
        client.close()
