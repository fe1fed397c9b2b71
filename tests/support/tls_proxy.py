"""Ends TLS before a PostgreSQL server that has none: SSLRequest, handshake, then plain bytes."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol


class ServerCertificate(Protocol):
    """Where the certificate and the key are."""

    @property
    def server(self) -> object:
        """In PEM."""

    @property
    def server_key(self) -> object:
        """In PEM."""


@contextmanager
def tls_before(
    target: tuple[str, int], certificate: ServerCertificate
) -> Iterator[tuple[int, list[str]]]:
    """The port that takes TLS only, and the version of each handshake so far."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(str(certificate.server), str(certificate.server_key))
    handshakes: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        arguments = (listener, target, context, handshakes)
        threading.Thread(target=_accept, args=arguments, daemon=True).start()
        yield listener.getsockname()[1], handshakes
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


def _accept(
    listener: socket.socket,
    target: tuple[str, int],
    context: ssl.SSLContext,
    handshakes: list[str],
) -> None:
    with suppress(OSError):
        while True:
            client, _ = listener.accept()
            arguments = (client, target, context, handshakes)
            threading.Thread(target=_serve, args=arguments, daemon=True).start()


def _serve(
    client: socket.socket, target: tuple[str, int], context: ssl.SSLContext, handshakes: list[str]
) -> None:
    with suppress(OSError), client:
        client.recv(8, socket.MSG_WAITALL)
        client.sendall(b"S")
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        secure = context.wrap_bio(incoming, outgoing, server_side=True)
        with socket.create_connection(target) as server:
            lock = threading.Lock()
            _handshake(client, secure, incoming, outgoing)
            handshakes.append(secure.version() or "")
            arguments = (server, client, secure, outgoing, lock)
            threading.Thread(target=_answer, args=arguments, daemon=True).start()
            data = b""  # what came with the end of the handshake is in there already
            while True:
                with lock:
                    incoming.write(data)
                    plain = _read(secure)
                server.sendall(plain)
                data = client.recv(65_536)
                if not data:
                    return


def _handshake(
    client: socket.socket, secure: ssl.SSLObject, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO
) -> None:
    while True:
        try:
            secure.do_handshake()
        except ssl.SSLWantReadError:
            client.sendall(outgoing.read())
            data = client.recv(65_536)
            if not data:
                raise ConnectionResetError from None
            incoming.write(data)
        except ssl.SSLError:
            client.sendall(outgoing.read())
            raise
        else:
            client.sendall(outgoing.read())
            return


def _read(secure: ssl.SSLObject) -> bytes:
    found = b""
    with suppress(ssl.SSLWantReadError, ssl.SSLZeroReturnError):
        while data := secure.read(65_536):
            found += data
    return found


def _answer(
    server: socket.socket,
    client: socket.socket,
    secure: ssl.SSLObject,
    outgoing: ssl.MemoryBIO,
    lock: threading.Lock,
) -> None:
    with suppress(OSError):
        while data := server.recv(65_536):
            with lock:
                secure.write(data)
                client.sendall(outgoing.read())
        client.shutdown(socket.SHUT_RDWR)
