"""What clients connect to: gRPC, in this process or in front ends, and local calls for clients on this machine."""

from __future__ import annotations

import asyncio
import os

from fusewire_server.access.certificates import certificate_of
from fusewire_server.access.interceptor import Access
from fusewire_server.access.tokens import Authenticator
from fusewire_server.config.config import Config
from fusewire_server.engine.engine import Engine
from fusewire_server.front_ends.front_ends import FrontEnds
from fusewire_server.front_ends.placement import EngineAt
from fusewire_server.programs.counters import TOKEN_DOOR
from fusewire_server.transport.busy_polling import busy_poll_s_of
from fusewire_server.transport.grpc_server import Serving, longest_message, start_grpc
from fusewire_server.transport.local_calls import LocalCalls
from fusewire_server.transport.service import FusewireService

_CORES_A_FRONT_END = 4
_MOST_FRONT_ENDS = 8  # unless more are set


class Listeners:
    """The listeners of one engine."""

    def __init__(self, config: Config, engine: Engine, authenticator: Authenticator | None) -> None:
        self._config = config
        self._engine = engine
        self._access = Access(authenticator)
        self._certificate = certificate_of(config.listen)
        self._local = local_calls_of(config)
        self._grpc: Serving | None = None
        self._front_ends: FrontEnds | None = None

    async def start(self) -> int:
        """Begins to listen, and returns the port. Raises ConfigurationError if that cannot be done."""
        listen = self._config.listen
        methods = FusewireService(self._engine, self._access, self._local if listen.local else None).methods
        count = front_ends_of(listen.front_ends, len(os.sched_getaffinity(0)))
        if listen.local or count:
            await self._local.start(methods)
        if count:
            at = EngineAt(self._engine.device_number, self._local.name, self._local.front_end_secret)
            self._front_ends = FrontEnds(self._config, (at,), self._count_refusals)
            return await self._front_ends.start(count)
        self._grpc = await start_grpc(
            listen,
            methods,
            self._access,
            self._certificate,
            message_bytes=self._config.limits.message_bytes,
            count_refusal=lambda: self._count_refusals(1),
        )
        return self._grpc.port

    async def tell_draining(self) -> None:
        """Lets health checks know that the server opens no more sessions."""
        if self._grpc is not None:
            await self._grpc.status.enter_graceful_shutdown()
        if self._front_ends is not None:
            self._front_ends.tell_draining()

    def reload(self, config: Config) -> None:
        """Takes over settings that may change. Lets the next connection have the certificate that the files hold."""
        self._config = config
        if self._certificate is not None:
            self._certificate.read_again()
        if self._front_ends is not None:
            self._front_ends.reload(config)

    async def stop(self, grace_s: float) -> None:
        """Listens no more. Ends the calls that go on after `grace_s`."""
        stops = [self._local.stop(grace_s)]
        if self._grpc is not None:
            stops.append(self._grpc.server.stop(grace_s))
        if self._front_ends is not None:
            stops.append(self._front_ends.stop(grace_s))
        await asyncio.gather(*stops)

    def _count_refusals(self, calls: int) -> None:
        self._engine.counters.refused(TOKEN_DOOR, "unauthenticated", calls)


def local_calls_of(config: Config) -> LocalCalls:
    """Returns the listener for local calls of one engine."""
    busy_poll_s = busy_poll_s_of(config.listen.busy_poll_s, len(os.sched_getaffinity(0)))
    return LocalCalls(longest_message(config.limits.message_bytes), busy_poll_s)


def front_ends_of(setting: int | None, cores: int) -> int:
    """Returns how many front ends a server has: as many as are set, or by the number of its processors."""
    return min(cores // _CORES_A_FRONT_END, _MOST_FRONT_ENDS) if setting is None else setting
