"""Serves the inspection application on its own thread and event loop, so that no request delays a session."""

from __future__ import annotations

import asyncio
import socket
import ssl
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus

import h11
import uvicorn
from fastapi import Response
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from fusewire_protos.address import Address
from fusewire_protos.errors import ConfigurationError, ServerFault
from fusewire_server.access.certificates import CertificateFiles
from fusewire_server.inspect.requests.problems import problem

# Readers of statistics need few connections. If there are more than this number, the server closes the oldest idle
# connection, or the oldest of all if none is idle. So a health check is answered whatever many other clients do.
_MOST_CONNECTIONS = 64
# Connections that are let in before the requests of earlier ones are read. Their number is far below that of the kept
# connections, so a request is answered before as many newer connections push its own out.
_LET_IN_AT_ONCE = 8
_WAITING_CONNECTIONS = 1024  # those that the kernel keeps until they are let in
# A connection that has sent no request for this long is idle. Newer ones may have sent one that is not read yet.
_SILENT_S = 1.0
# Both deadlines count time in which the client keeps the server waiting.
# The longest time from accepting a connection to the end of its first request, and from the first byte of a later
# request to its end.
_REQUEST_DEADLINE_S = 5.0
# The time in which a client reads at least so much of what is to be sent, or all.
_READING_DEADLINE_S = 5.0
_LEAST_READ_BYTES = 16 << 10
# A deadline that is looked at so much later was missed by the server, which was busy.
_LATE_S = 1.0
# The place in a request's scope of the function by which a live stream makes its connection one of streams, which have
# places of their own.
STREAMS = "fusewire.streams"
_LONGEST_REQUEST_HEAD_BYTES = 16 << 10
_START_DEADLINE_S = 10.0
# The longest time in which the event loop drops the remaining requests and ends. It needs milliseconds, unless the
# machine is busy.
_DROP_DEADLINE_S = 10.0


def bind(address: Address) -> socket.socket:
    """Returns a socket that listens at the address. Connections wait until a server serves the socket.

    Raises ConfigurationError.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen()
    except OSError as reason:
        bound.close()
        raise ConfigurationError(f"cannot listen on listen.http = {address}: {reason.strerror}") from None
    return bound


class InspectionServer:
    """Serves an application on a listening socket, and owns the socket.

    One thread calls `start` once, and then `stop` once.
    """

    def __init__(
        self,
        app: ASGIApp,
        bound: socket.socket,
        *,
        certificate: CertificateFiles | None = None,
        count_refusal: Callable[[int], None] = lambda _status: None,
    ) -> None:
        """With a certificate the server speaks TLS only.

        `count_refusal` is called with the status for each refusal of bytes that are no request, on the thread of the
        application. The application does not see such bytes.
        """
        self._socket = bound
        self._server = _AnnouncedServer(_uvicorn_config(app, certificate, count_refusal))
        self._thread = threading.Thread(target=self._serve, name="fusewire-inspection", daemon=True)

    @property
    def port(self) -> int:
        port: int = self._socket.getsockname()[1]
        return port

    def start(self, deadline_s: float = _START_DEADLINE_S) -> None:
        """Returns as soon as requests are answered. Raises ServerFault if that takes longer than the deadline."""
        self._thread.start()
        if not (self._server.settled.wait(deadline_s) and self._server.started):
            raise ServerFault("inspection did not start; the log tells why")

    def stop(self, grace_s: float) -> None:
        """Lets running requests end for `grace_s`, then drops them, and closes the socket."""
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join(grace_s)
            self._server.force_exit = True
            self._thread.join(_DROP_DEADLINE_S)
        self._socket.close()

    def _serve(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._server.settled.set()


class _AnnouncedServer(uvicorn.Server):
    """A uvicorn server that sets `settled` when it has started or will never start."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.settled = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(_WAITING_CONNECTIONS)  # uvicorn has set it to the number that is let in at once
        self.settled.set()


class _Config(uvicorn.Config):
    """Keeps the certificate from uvicorn, so that each connection starts TLS itself.

    uvicorn would report a connection only after the TLS handshake.
    """

    certificate: CertificateFiles | None = None
    count_refusal: Callable[[int], None]

    def current_tls(self) -> ssl.SSLContext | None:
        """Returns the TLS settings of a new connection, with the certificate that is in its files now."""
        if self.certificate is None:
            return None
        self.certificate.renew()
        return self.certificate.tls


class _BoundedProtocol(H11Protocol):
    """A connection that is closed if its client sends or reads too slowly, or to make room for others.

    The deadline of the first request and the age count from the time when the connection was accepted, before any TLS
    handshake. uvicorn itself closes connections on which nothing comes after an answer. A client that sends a request
    before it has the answer to its last one gets that answer, and then the connection is closed.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn names its own
        super().connection_made(transport)
        self._accepted = transport
        self._accepted_s = self.loop.time()
        self._has_asked = False
        self._streams = False
        self._request_deadline: asyncio.TimerHandle | None = None  # while a request is to come
        self._reading_deadline: asyncio.TimerHandle | None = None  # while the client is to read
        self._expect_request()
        transport.set_write_buffer_limits(high=1)  # so that asyncio tells of all that waits to be read
        self._early: list[bytes] | None = None  # data that came with the end of the handshake
        assert isinstance(self.config, _Config)
        tls = self.config.current_tls()
        if tls is not None:
            self._early = []
            transport.pause_reading()
            self._handshake = self.loop.create_task(self._shake_hands(transport, tls))
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        if self not in self.connections:
            return  # uvicorn has been told already, by TLS or after the failed handshake
        super().connection_lost(exc)
        self._end_request_deadline()
        self._end_reading_deadline()
        # uvicorn leaves this timer if the client has broken the connection off. It would keep all objects of the
        # connection for seconds, and Python's collector would set them apart meanwhile (see `garbage_collector`).
        self._unset_keepalive_if_required()

    def data_received(self, data: bytes) -> None:
        if self._early is not None:
            self._early.append(data)
            return
        if self._has_asked and self.cycle.response_complete:
            self._expect_request()
        super().data_received(data)

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._has_asked = True
            self.scope[STREAMS] = self._become_stream  # type: ignore[literal-required]  # ours beside those of ASGI
        if self._has_asked and not self._is_request_coming:
            self._end_request_deadline()

    @property
    def _is_request_coming(self) -> bool:
        """Tells whether a part of a request has come, and the rest has not."""
        state, (unread, _) = self.conn.their_state, self.conn.trailing_data
        return state is h11.SEND_BODY or (state is h11.IDLE and bool(unread))

    def pause_writing(self) -> None:
        """Begins to wait for the client to read. asyncio calls it when something is to be sent."""
        super().pause_writing()
        if self._reading_deadline is None:
            self._expect_reading()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._end_reading_deadline()

    def shutdown(self) -> None:
        """Lets the running request end, but no live stream, which would not. uvicorn calls it when it stops."""
        if self._streams:
            self._accepted.abort()
        else:
            super().shutdown()

    def on_response_complete(self) -> None:
        self._streams = False
        next_request, _ = self.conn.trailing_data
        if next_request:
            self.transport.close()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Answers what cannot be read as a request, and closes the connection. uvicorn calls it in its handler."""
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            answer = _refusal_of(sys.exc_info()[1], self.conn.trailing_data[0])
            assert isinstance(self.config, _Config)
            self.config.count_refusal(answer.status_code)
            headers = [*answer.raw_headers, (b"connection", b"close")]
            for event in (
                h11.Response(status_code=answer.status_code, headers=headers),
                h11.Data(data=bytes(answer.body)),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _become_stream(self) -> None:
        self._streams = True

    def _expect_request(self) -> None:
        """Ends the connection unless a request comes in time."""
        if self._request_deadline is None:
            due_s = self.loop.time() + _REQUEST_DEADLINE_S
            self._request_deadline = self.loop.call_at(due_s, self._miss_request, due_s)

    def _miss_request(self, due_s: float) -> None:
        self._request_deadline = None
        if self.loop.time() - due_s > _LATE_S:  # what came meanwhile, of a TLS handshake for instance, is not read yet
            self._expect_request()
        else:
            self._accepted.abort()

    def _end_request_deadline(self) -> None:
        if self._request_deadline is not None:
            self._request_deadline.cancel()
            self._request_deadline = None

    def _expect_reading(self) -> None:
        """Ends the connection unless the client goes on reading."""
        self._reading_deadline = self.loop.call_later(_READING_DEADLINE_S, self._look_at_reading, self._unread_bytes)

    def _look_at_reading(self, before_bytes: int) -> None:
        if before_bytes - self._unread_bytes >= _LEAST_READ_BYTES:
            self._expect_reading()
        else:
            self._accepted.abort()

    @property
    def _unread_bytes(self) -> int:
        return sum(each.get_write_buffer_size() for each in {self._accepted, self.transport})

    def _end_reading_deadline(self) -> None:
        if self._reading_deadline is not None:
            self._reading_deadline.cancel()
            self._reading_deadline = None

    async def _shake_hands(self, transport: asyncio.Transport, tls: ssl.SSLContext) -> None:
        try:
            secured = await self.loop.start_tls(transport, self, tls, server_side=True)
        except OSError as error:  # ssl.SSLError is one
            self.connection_lost(error)
            return
        if secured is None or self._accepted.is_closing():  # None if the connection was closed during the handshake
            self.connection_lost(ConnectionAbortedError())
            return
        super().connection_made(secured)
        secured.set_write_buffer_limits(high=1)
        early, self._early = self._early or [], None
        for data in early:
            self.data_received(data)

    def _make_room(self) -> None:
        """If there are too many connections, closes the oldest idle one beside this, or the oldest if none is idle.

        Connections that are closing do not count, nor those of live streams, whose number is bounded by themselves.
        """
        others = [
            each
            for each in self.connections
            if isinstance(each, _BoundedProtocol) and each.is_staying and each is not self
        ]
        if len(others) >= _MOST_CONNECTIONS:
            idle = [each for each in others if each.is_idle]
            min(idle or others, key=lambda each: each._accepted_s)._accepted.abort()

    @property
    def is_staying(self) -> bool:
        return not self._accepted.is_closing() and not self._streams

    @property
    def is_idle(self) -> bool:
        """Tells whether nobody waits for an answer: all requests are answered, or none came for a while."""
        if self._has_asked:
            return bool(self.cycle.response_complete)
        return self.loop.time() - self._accepted_s >= _SILENT_S


def _refusal_of(error: BaseException | None, unread: bytes) -> Response:
    """Returns the answer to bytes that are no request, or a longer one than is read. `unread` are these bytes."""
    if getattr(error, "error_status_hint", 0) != HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE:
        return problem(HTTPStatus.BAD_REQUEST, "bad_request", f"this is not HTTP/1.1: {error}")
    message = f"the head of the request has more than {_LONGEST_REQUEST_HEAD_BYTES} bytes"
    if b"\n" not in unread:
        return problem(HTTPStatus.REQUEST_URI_TOO_LONG, "uri_too_long", message)
    return problem(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "headers_too_large", message)


def _uvicorn_config(
    app: ASGIApp, certificate: CertificateFiles | None, count_refusal: Callable[[int], None]
) -> uvicorn.Config:
    config = _Config(
        app,
        loop="asyncio",
        http=_BoundedProtocol,
        ws="none",
        lifespan="off",
        backlog=_LET_IN_AT_ONCE,
        log_config=None,
        access_log=False,
        server_header=False,
        # A peer in X-Forwarded-For would be who any local process wants to be, in the audit log and its limits.
        proxy_headers=False,
        h11_max_incomplete_event_size=_LONGEST_REQUEST_HEAD_BYTES,
    )
    config.load()
    config.certificate = certificate
    config.count_refusal = count_refusal
    return config
