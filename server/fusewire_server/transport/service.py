"""Defines the methods of the service. Other modules do the work."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial, wraps

from fusewire_protos.errors import CaseError
from fusewire_protos.frames import PROTOCOL_VERSION
from fusewire_protos.session_name import check_labels, check_name
from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_server.access.interceptor import Access
from fusewire_server.config.settings import devices_text, numbers_in
from fusewire_server.engine.engine import Engine
from fusewire_server.programs.counters import SESSION_DOOR, TRANSFER_DOOR
from fusewire_server.sessions.session import Session, SessionState
from fusewire_server.transport.bulk_transfer import Bulk
from fusewire_server.transport.call import Call, Messages, Method
from fusewire_server.transport.frame_parsing import parse_frame
from fusewire_server.transport.local_calls import LOCAL_PEER, LocalCalls
from fusewire_server.transport.refusal import aborting_on_cases, case_in
from fusewire_server.transport.session_stream import SessionStream, goodbye_of, identity_of

audit = logging.getLogger("fusewire.audit")

HELLO_DEADLINE_S = 10.0
_MOST_NAMED = 16  # the most protocol versions of a client that a refusal lists


class FusewireService:
    """The three methods of a server. All of them use one engine. With `local`, clients may make local calls."""

    def __init__(self, engine: Engine, access: Access, local: LocalCalls | None = None) -> None:
        self._engine = engine
        self._access = access
        self._local = local
        self._limits = engine.config.limits
        self._bulk = Bulk(engine, access)

    @property
    def methods(self) -> Mapping[str, Method]:
        """The methods by their names."""
        session_refused = partial(self._note_refusal, SESSION_DOOR, "a session was refused: %s")
        transfer_refused = partial(self._note_refusal, TRANSFER_DOOR, "an upload or a download was refused: %s")
        return {
            "Session": aborting_on_cases(_letting_go(self.session), session_refused),
            "Upload": aborting_on_cases(self._bulk.upload, transfer_refused),
            "Download": aborting_on_cases(self._bulk.download, transfer_refused),
        }

    def _note_refusal(self, door: str, text: str, details: str, call: Call) -> None:
        case = case_in(details)
        self._engine.counters.refused(door, case)
        audit.warning(text, details, extra={"case": case, "peer": call.peer()})

    # ---- the session stream ----

    async def session(self, frames: Messages, call: Call) -> None:
        """Serves one stream of a session: hello and welcome, then frames both ways until one side ends the stream."""
        tenant = self._access.tenant(call.invocation_metadata())
        # Before the first message, because gRPC cannot end a call whose metadata wait together with that message.
        await call.send_initial_metadata(())
        fields: dict[str, object] = {"tenant": tenant, "peer": call.peer()}
        try:
            hello = await _first(frames, self._limits.message_bytes)
            session = self._begin(hello, tenant, call)
        except CaseError as error:
            audit.warning("a session was refused: %s", error, extra=fields | {"case": error.case.name})
            self._engine.counters.refused(SESSION_DOOR, error.case.name)
            with suppress(TimeoutError):  # a client that never reads does not keep the call
                async with asyncio.timeout(self._engine.config.limits.unread_s):
                    await call.write(pb.ServerFrame(goodbye=goodbye_of(error)).SerializeToString())
            return
        fields |= identity_of(session) | {"epoch": session.epoch}
        audit.info("a session has a stream", extra=fields)
        try:
            await SessionStream(self._engine, self._access, session, frames, call, self._local).run()
        finally:
            moves = self._local is not None and call.peer() != LOCAL_PEER and not session.has_sent
            _tell_end(session, fields | {"state": session.state.value}, moves=moves)

    def _begin(self, frame: pb.ClientFrame | None, tenant: str, call: Call) -> Session:
        if frame is None or not frame.HasField("hello"):
            raise CaseError("out_of_turn", "a session begins with hello")
        hello = frame.hello
        if PROTOCOL_VERSION not in hello.versions:
            text = f"the client speaks {_spoken(hello.versions)}; this server speaks {PROTOCOL_VERSION}"
            raise CaseError("wrong_version", text)
        if hello.session_id:
            session = self._engine.resume(hello.session_id, hello.server_instance, tenant, frame.acknowledged)
            session.peer = call.peer()
            return session
        self._access.check_newcomer(call.invocation_metadata())
        if hello.HasField("device"):
            self._check_device(hello.device)
        labels = dict(hello.labels)
        try:
            check_name(hello.name)
            check_labels(labels)
        except ValueError as error:
            raise CaseError("undecodable_frame", str(error)) from None
        return self._engine.open(tenant, hello.client, call.peer(), hello.name, labels)

    def _check_device(self, asked: int) -> None:
        """Raises CaseError unless a client asks for the device of this engine, to which front ends pass such calls."""
        if asked == self._engine.device_number:
            return
        devices = numbers_in(self._engine.config.device.devices)
        why = "has ended, and is started again" if asked in devices else "is not there"
        raise CaseError("unknown_device", f"device {asked} {why}; the server's devices are {devices_text(devices)}")


def _letting_go(method: Method) -> Method:
    """Wraps a method so that the last message of a call is freed when the method ends.

    gRPC's iterator keeps the message that it gave last, and refers to itself. If the client's messages were not read to
    their end, the message would be kept until Python's garbage collector finds the cycle, which may take seconds.
    """

    @wraps(method)
    async def serve(messages: Messages, call: Call) -> None:
        async with aclosing(aiter(messages)) as read:  # type: ignore[type-var]  # gRPC's iterator is a generator
            await method(read, call)

    return serve


def _tell_end(session: Session, fields: dict[str, object], *, moves: bool) -> None:
    """Tells that a stream is over: the session has ended in order, or may be resumed by another stream.

    A session that `moves` has sent nothing over a stream that is no local call, and may make such calls.
    """
    if session.state is SessionState.CLOSED:
        audit.info("a session has ended", extra=fields)
    elif moves:
        audit.info("a session has left a stream over which it sent nothing", extra=fields)
    else:
        audit.warning("a session has lost its stream", extra=fields)


async def _first(frames: Messages, message_bytes: int) -> pb.ClientFrame | None:
    try:
        async with asyncio.timeout(HELLO_DEADLINE_S):
            raw = await anext(aiter(frames), None)
    except TimeoutError:
        raise CaseError("out_of_turn", f"no hello came within {HELLO_DEADLINE_S} s") from None
    return None if raw is None else parse_frame(raw, message_bytes)


def _spoken(versions: Sequence[int]) -> str:
    """Lists a client's protocol versions, at most the first `_MOST_NAMED`."""
    named = ", ".join(map(str, versions[:_MOST_NAMED])) or "none"
    return f"{named} and others, {len(versions)} in all" if len(versions) > _MOST_NAMED else named
