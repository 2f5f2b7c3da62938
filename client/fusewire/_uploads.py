"""Uploads on their way: in the stream if they are small, beside it if they are not."""

from __future__ import annotations

from fusewire import _upload as uploading
from fusewire._credit import Amount
from fusewire._link import Link, finish
from fusewire._recorder import Recorder
from fusewire._sending import Sender
from fusewire._stream import Outgoing
from fusewire_protos.frames import INLINE_BYTES, Upload


class Uploads:
    """Takes the bytes of arrays from the threads that upload them."""

    def __init__(self, link: Link, sender: Sender) -> None:
        self._link = link
        self._sender = sender

    def send(self, recorder: Recorder, upload: Upload, host: uploading.Host) -> None:
        """Returns when the bytes are copied; may wait for credit, or for room beside the stream."""
        self._link.check_may_wait(recorder)
        if upload.spec.size_bytes <= INLINE_BYTES:
            self._send_inline(recorder, upload, host.tobytes())
        else:
            self._send_beside(upload, host)

    def _send_inline(self, recorder: Recorder, upload: Upload, tensor: bytes) -> None:
        cost = Amount(bytes=len(tensor))
        while not self._post_if_admitted(Outgoing(upload, tensor=tensor), cost):
            self._sender.wait_for_credit(recorder, cost, None)
        self._link.transport.wake()

    def _post_if_admitted(self, outgoing: Outgoing, cost: Amount) -> bool:
        link = self._link
        with link.lock:
            link.check_open()
            if not link.credit.admits(cost):
                return False
            spending = link.spending(cost, (outgoing,))
            finish(lambda: link.spend(spending))
        return True

    def _send_beside(self, upload: Upload, host: uploading.Host) -> None:
        self._link.post(Outgoing(upload))
        self._link.transport.wake()
        sink = self._link.transport.upload(self._link.stream.session_id, upload.handle)
        try:
            for chunk in uploading.copy_in_chunks(host, self._link.limits.chunk_bytes):
                sink.put(chunk)
        finally:
            sink.finish()
        self._link.check_open()
