"""Who gets in: TLS, the token of every call, and tenants that do not reach one another."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from fusewire_protos.errors import Unauthenticated
from fusewire_protos.frames import Fetch
from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_server.access import tokens as auth
from fusewire_server.access.interceptor import OPEN_TENANT, Access
from fusewire_server.access.tokens import Scope, mint, revoke
from fusewire_server.transport import session_stream
from fusewire_server.transport.grpc_server import SERVICE
from tests.server.parts import chain, new, segment, upload_beside
from tests.server.wire import LARGE, LARGE_BYTES, Peer, first_frame, hello, pieces, server, services, status_of
from tests.server.world import DEADLINE_S, run, until


def test_with_tls_and_tokens_neither_clear_text_nor_a_call_without_a_token_gets_through(
    tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    async def test() -> None:
        cert, _ = certificate
        token = bearer(mint(tmp_path / "tokens", tenant="lab", scope=Scope.USE))
        async with server(tmp_path / "tokens", certificate) as here:
            assert (await status_of(services(here.channel, (token,))))[0] is grpc.StatusCode.UNAVAILABLE
            trusted = grpc.ssl_channel_credentials(cert.read_bytes())
            async with grpc.aio.secure_channel(f"127.0.0.1:{here.port}", trusted) as channel:
                assert (await status_of(services(channel)))[0] is grpc.StatusCode.UNAUTHENTICATED
                peer = Peer(channel, (token,))
                await peer.open()
                await peer.works(100)

    run(test())


METHODS: list[MethodDescriptor] = [
    method
    for module in (pb, health_pb2, reflection_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]


def name_of(method: MethodDescriptor) -> str:
    return f"/{method.containing_service.full_name}/{method.name}"


async def call(channel: grpc.aio.Channel, method: MethodDescriptor, metadata: tuple[tuple[str, str], ...]) -> None:
    """Calls a method, whatever its arity, with an empty request or a stream that sends none, and reads one answer."""
    name = name_of(method)
    bytes_channel: Any = channel  # whose serialisers the stubs do not let be left out
    if method.client_streaming and method.server_streaming:
        await bytes_channel.stream_stream(name)(metadata=metadata).read()
    elif method.client_streaming:
        await bytes_channel.stream_unary(name)(metadata=metadata)
    elif method.server_streaming:
        await bytes_channel.unary_stream(name)(b"", metadata=metadata).read()
    else:
        await bytes_channel.unary_unary(name)(b"", metadata=metadata)


def bearer(token: str) -> tuple[str, str]:
    return ("authorization", f"Bearer {token}")


@pytest.mark.parametrize("method", METHODS, ids=name_of)
def test_with_tokens_no_method_answers_without_a_good_one(method: MethodDescriptor, tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "tokens"
        mint(path, tenant="lab", scope=Scope.USE)
        inspecting = mint(path, tenant="lab", scope=Scope.INSPECT)
        async with server(path) as here:
            for metadata in ((), (bearer("wrong.token"),), (bearer(inspecting),)):
                status, _ = await status_of(call(here.channel, method, metadata))
                assert status is grpc.StatusCode.UNAUTHENTICATED

    run(test())


OWN_METHODS = [method for method in METHODS if method.containing_service.full_name == SERVICE]


@pytest.mark.parametrize("method", OWN_METHODS, ids=name_of)
def test_a_token_revoked_after_its_call_was_let_in_ends_it_in_words(
    method: MethodDescriptor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = count()

    def revoked_meanwhile(_access: Access, _metadata: Any) -> str:
        """The first look lets the call in, the second is the method's own."""
        if next(looks):
            raise Unauthenticated("the token is unknown here, or revoked")
        return OPEN_TENANT

    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            calls: dict[str, Callable[[], Awaitable[Any]]] = {
                "Session": lambda: call(here.channel, method, ()),
                "Upload": lambda: peer.upload(20, [b""]),
                "Download": lambda: peer.download(1),
            }
            monkeypatch.setattr(Access, "tenant", revoked_meanwhile)
            assert (await status_of(calls[method.name]()))[0] is grpc.StatusCode.UNAUTHENTICATED

    run(test())


def test_every_service_that_reflection_names_is_among_those_tested(tmp_path: Path) -> None:
    async def test() -> None:
        token = mint(tmp_path / "tokens", tenant="lab", scope=Scope.USE)
        async with server(tmp_path / "tokens") as here:
            assert await services(here.channel, (bearer(token),)) == {
                method.containing_service.full_name for method in METHODS
            }

    run(test())


@pytest.mark.parametrize("how", ["revoked", "given to another tenant"])
def test_an_open_session_ends_when_its_token_is_no_longer_good(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_stream, "TOKEN_CHECK_S", 0.01)

    async def test() -> None:
        path = tmp_path / "tokens"
        token, kept = mint(path, tenant="lab", scope=Scope.USE), mint(path, tenant="lab", scope=Scope.USE)
        async with server(path) as here:
            peer, neighbour = await here.peer(bearer(token)), await here.peer(bearer(kept))
            if how == "revoked":
                revoke(path, token.partition(".")[0])
            else:
                path.write_text(path.read_text().replace(" lab ", " others ", 1))
            assert await peer.goodbye() == "unauthenticated"
            assert peer.session_id not in here.engine.sessions
            await neighbour.works(100)

    run(test())


def test_an_open_session_goes_on_while_the_tokens_cannot_be_read_and_nobody_opens_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_stream, "TOKEN_CHECK_S", 0.01)

    async def test() -> None:
        path = tmp_path / "tokens"
        token = bearer(mint(path, tenant="lab", scope=Scope.USE))
        async with server(path) as here:
            peer = await here.peer(token)
            path.write_text("garbled")
            await looked_again(monkeypatch)
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            await asyncio.wait_for(peer.upload(20, pieces(LARGE_BYTES)), DEADLINE_S)
            await peer.result(1)
            assert await peer.download(1) == LARGE_BYTES
            await peer.resume()
            await peer.works(100)
            assert (await status_of(here.peer(token)))[0] is grpc.StatusCode.UNAUTHENTICATED

    run(test())


def test_an_open_session_ends_in_words_when_the_tokens_could_not_be_read_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_stream, "TOKEN_CHECK_S", 0.01)

    async def test() -> None:
        path = tmp_path / "tokens"
        token = bearer(mint(path, tenant="lab", scope=Scope.USE))
        async with server(path) as here:
            peer = await here.peer(token)
            path.write_text("garbled")
            await looked_again(monkeypatch)
            monkeypatch.setattr(auth, "OLD_RECORDS_S", 0.0)
            assert await peer.goodbye() == "unauthenticated"
            assert peer.session_id not in here.engine.sessions

    run(test())


def test_a_newcomer_is_told_that_the_tokens_cannot_be_read(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "tokens"
        mint(path, tenant="lab", scope=Scope.USE)
        async with server(path) as here:
            token = bearer(mint(path, tenant="lab", scope=Scope.USE))
            path.write_text(f"{path.read_text()}garbled")
            status, text = await status_of(here.peer(token))
            assert status is grpc.StatusCode.UNAUTHENTICATED
            assert "cannot read its token file now" in text

    run(test())


async def looked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Returns when the token of an open session has been looked at, and what follows from that been done."""
    looked, tenant = asyncio.Event(), Access.tenant

    def seen(access: Access, metadata: Any) -> str:
        looked.set()
        return tenant(access, metadata)

    monkeypatch.setattr(Access, "tenant", seen)
    await asyncio.wait_for(looked.wait(), DEADLINE_S)
    monkeypatch.setattr(Access, "tenant", tenant)


def test_a_session_is_out_of_reach_of_another_tenant(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "tokens"
        mine, theirs = (bearer(mint(path, tenant=tenant, scope=Scope.USE)) for tenant in ("lab", "others"))
        async with server(path) as here:
            peer = await here.peer(mine)
            await peer.works(100)
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            await asyncio.wait_for(peer.upload(20, pieces(LARGE_BYTES)), DEADLINE_S)
            await peer.result(1)
            thief = replace(peer, metadata=(theirs,))
            assert (await status_of(thief.upload(20, [b""])))[0] is grpc.StatusCode.NOT_FOUND
            assert (await status_of(thief.download(1)))[0] is grpc.StatusCode.NOT_FOUND
            stolen = hello(session_id=peer.session_id, server_instance=peer.welcome.server_instance)
            await first_frame(thief, stolen)
            assert await thief.goodbye() == "session_lost"
            assert await peer.download(1) == LARGE_BYTES

    run(test())


def test_a_tenant_that_holds_its_share_of_the_programs_leaves_another_room(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "tokens"
        mine, theirs = (bearer(mint(path, tenant=tenant, scope=Scope.USE)) for tenant in ("lab", "others"))
        async with server(path) as here:
            peer, second = await here.peer(mine), await here.peer(mine)
            await peer.send(programs=[new(2, chain(("square",)))])
            await peer.works(100)
            table = here.engine.programs
            table.bounds = table.bounds._replace(table_bytes=2 * table.size_bytes)
            other = await here.peer(theirs)
            for one in (second, other):
                await one.send(segment(2, 100, 10), Fetch(1, 100), programs=[new(2, chain(("abs",)))])
            assert await second.failure(1) == "quota_program"
            assert (await other.result(1)).inline

    run(test())


def test_the_audit_log_tells_sessions_and_refusals_and_no_token(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        token = mint(tmp_path / "tokens", tenant="lab", scope=Scope.USE)
        async with server(tmp_path / "tokens") as here:
            peer = Peer(here.channel, (bearer(token),))
            await peer.open()
            await peer.works(100)
            await status_of(call(here.channel, OWN_METHODS[0], (bearer("wrong.token"),)))
            peer.call.cancel()
            await until(lambda: len(records()) == 3)
        opened, refused, lost = records()
        assert (opened.message, opened.__dict__["tenant"]) == ("a session has a stream", "lab")
        assert peer.session_id.hex().startswith(opened.__dict__["session"])
        assert refused.message.startswith("a call was refused: the token is unknown")
        assert (lost.message, lost.__dict__["state"]) == ("a session has lost its stream", "detached")
        assert not any(token in str(record.__dict__) or "wrong.token" in str(record.__dict__) for record in records())

    def records() -> list[logging.LogRecord]:
        return [record for record in caplog.records if record.name == "fusewire.audit"]

    with caplog.at_level(logging.INFO, "fusewire.audit"):
        run(test())
