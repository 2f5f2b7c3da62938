"""Sends uploads: a small one inside a frame of the stream, a large one in a gRPC call of its own."""

from __future__ import annotations

from fusewire._conversions import Host
from fusewire._recording.recorded_ops import Recorded
from fusewire._recording.signature import ArraySpec
from fusewire._stream import tensor_bytes
from fusewire._stream.frames import Outgoing
from fusewire._stream.sender import Sender
from fusewire._stream.session_state import SessionState
from fusewire_protos.credit import Amount
from fusewire_protos.frames import INLINE_BYTES, Upload

_MOST_REMEMBERED = 16  # shapes of which the last bytes are kept


class UploadSender:
    """Sends the uploads of one session. Every thread that uploads calls `send` itself.

    `inline_count` counts the uploads that travelled in frames, and `repeats` those of them that brought the bytes of
    the one before of the same shape and dtype. Threads may miss a count to one another.
    """

    def __init__(self, state: SessionState, sender: Sender) -> None:
        self._state = state
        self._sender = sender
        self.inline_count = 0
        self.repeats = 0
        self._last: dict[ArraySpec, bytes] = {}

    def send(self, array: Recorded, host: Host) -> None:
        """Sends `host` as the value of `array`. Returns once the bytes are copied.

        May wait for credit, or for room in the queue of large uploads.

        `array` has no handle yet. It gets its handle in the step that also posts the entry that declares the handle to
        the server. If these were two steps, an interrupt between them could leave an array with an undeclared handle.
        The array's death would then report a handle that the server does not know.
        """
        self._state.check_may_wait(array._recorder)
        upload = Upload(array._recorder.mint_upload(), array._spec.spec, None)
        if array._spec.size_bytes <= min(INLINE_BYTES, self._state.limits.message_bytes // 2):
            tensor = host.tobytes()
            self._count(array._spec, tensor)
            self._send_inline(array, Outgoing(upload, tensor=tensor))
        else:
            self._send_beside(array, Outgoing(upload), host)

    def _count(self, spec: ArraySpec, tensor: bytes) -> None:
        self.inline_count += 1
        self.repeats += self._last.get(spec) == tensor
        if spec not in self._last and len(self._last) >= _MOST_REMEMBERED:
            self._last.clear()
        self._last[spec] = tensor

    def _send_inline(self, array: Recorded, outgoing: Outgoing) -> None:
        cost = Amount(bytes=array._spec.size_bytes)
        while not self._declare_if_admitted(array, outgoing, cost):
            self._sender.wait_for_credit(array._recorder, cost, None)
        array._recorder.owner.note_unsent()  # it travels with the ops that will take it, or at the next tick

    def _send_beside(self, array: Recorded, outgoing: Outgoing, host: Host) -> None:
        state = self._state
        with state.lock:
            self._declare(array, outgoing, Amount())
        state.transport.wake()
        chunks = tensor_bytes.chunks_of(host, state.limits.chunk_bytes)
        state.transport.upload(state.stream.session_id, array._handle, chunks)
        state.check_open()

    def _declare_if_admitted(self, array: Recorded, outgoing: Outgoing, cost: Amount) -> bool:
        state = self._state
        with state.lock:
            state.check_open()
            if not state.credit.admits(cost):
                return False
            self._declare(array, outgoing, cost)
        return True

    def _declare(self, array: Recorded, outgoing: Outgoing, cost: Amount) -> None:
        """Posts the entry and gives the array its handle. The caller holds the state's lock."""
        assert isinstance(outgoing.entry, Upload)
        state, handle = self._state, outgoing.entry.handle

        def commit() -> None:
            array._handle = handle

        state.spend(cost, (outgoing,), commit)
        if state.profile is not None:
            state.profile.on_uploaded(array._spec.size_bytes)
