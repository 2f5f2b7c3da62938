"""Uploads on their way: in the stream if they are small, beside it if they are not."""

from __future__ import annotations

from fusewire._conversions import Host
from fusewire._recording.record_op import Recorded
from fusewire._stream import tensor_bytes as uploading
from fusewire._stream.frames import Outgoing
from fusewire._stream.link import Link, finish
from fusewire._stream.sender import Sender
from fusewire_protos.credit import Amount
from fusewire_protos.frames import INLINE_BYTES, Upload


class Uploads:
    """Takes the bytes of arrays from the threads that upload them."""

    def __init__(self, link: Link, sender: Sender) -> None:
        self._link = link
        self._sender = sender

    def send(self, array: Recorded, host: Host) -> None:
        """Returns when the bytes are copied; may wait for credit, or for room beside the stream.

        `array` has no handle yet. It is given one in the act that declares it: no sooner, or the death of an array
        that an interrupt keeps from being declared would be told.
        """
        self._link.check_may_wait(array._recorder)
        upload = Upload(array._recorder.mint_upload(), array._spec.spec, None)
        if upload.spec.size_bytes <= INLINE_BYTES:
            self._send_inline(array, Outgoing(upload, tensor=host.tobytes()))
        else:
            self._send_beside(array, Outgoing(upload), host)

    def _send_inline(self, array: Recorded, outgoing: Outgoing) -> None:
        cost = Amount(bytes=array._spec.spec.size_bytes)
        while not self._declare_if_admitted(array, outgoing, cost):
            self._sender.wait_for_credit(array._recorder, cost, None)
        self._link.transport.wake()

    def _send_beside(self, array: Recorded, outgoing: Outgoing, host: Host) -> None:
        link = self._link
        self._declare(array, outgoing, Amount())
        link.transport.wake()
        chunks = uploading.chunks_of(host, link.limits.chunk_bytes)
        link.transport.upload(link.stream.session_id, array._handle, chunks)
        link.check_open()

    def _declare_if_admitted(self, array: Recorded, outgoing: Outgoing, cost: Amount) -> bool:
        link = self._link
        with link.lock:
            link.check_open()
            if not link.credit.admits(cost):
                return False
            self._declare(array, outgoing, cost)
        return True

    def _declare(self, array: Recorded, outgoing: Outgoing, cost: Amount) -> None:
        assert isinstance(outgoing.entry, Upload)
        link, handle = self._link, outgoing.entry.handle
        with link.lock:
            spending = link.spending(cost, (outgoing,))

            def commit() -> None:
                link.spend(spending)
                array._handle = handle

            finish(commit)
