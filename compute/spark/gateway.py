# mypy: allow-untyped-calls
# py4j has no types; this module is where they enter.
"""The connection to a JVM: py4j without its retries, log output and reference cycles.

INVARIANTS
  W1  a command is sent once. py4j itself would send it again after a broken connection, although
      it may have been executed; and it would log a stack to the root logger.
  W2  no object of the JVM is released in the thread that happens to collect it, which may be the
      event loop's.
  W3  an object or array of the JVM is queued for release as soon as nothing here refers to it.
      py4j caches an object's methods in the object, and they refer back to it. Such a cycle lives
      until Python's garbage collection, and with it a query's plans, broadcasts and files in the
      JVM. (Lists, maps and sets are still py4j's; we keep none.) This changes py4j for the whole
      process, and fields as attributes (`auto_field`) no longer work.
"""

from typing import Any, Final

from py4j.clientserver import (
    SHUTDOWN_FINALIZER_WORKER,
    ClientServer,
    JavaClient,
    JavaParameters,
    PythonParameters,
)
from py4j.java_collections import JavaArray
from py4j.java_gateway import JavaMember
from py4j.java_gateway import JavaObject as CachingObject
from py4j.protocol import (
    ARRAY_TYPE,
    REFERENCE_TYPE,
    Py4JNetworkError,
    is_fatal_error,
    register_output_converter,
)

# The adapter's name for objects that live in the JVM: py4j knows their types only at run time.
JavaObject = Any

_LOOPBACK: Final = "127.0.0.1"


# py4j would ask the JVM for a docstring.
class _Object(CachingObject):  # pyright: ignore[reportIncompatibleMethodOverride]
    """An object of the JVM (W3)."""

    def __getattr__(self, name: str) -> JavaMember:
        if name.startswith("__"):
            raise AttributeError(name)
        return JavaMember(name, self, self._target_id, self._gateway_client)


class _Array(_Object, JavaArray):
    """An array of the JVM (W3)."""


register_output_converter(REFERENCE_TYPE, _Object)
register_output_converter(ARRAY_TYPE, _Array)


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
