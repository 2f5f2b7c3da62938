"""Records the body of a function, in which loops may stand: each divides the ops of the function into stages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from fusewire._recording.bodies.body import BodyRecording, recording_body
from fusewire._recording.bodies.stages import LoopStage, OpsStage, Stage, handing_out
from fusewire._recording.pinned_handles import HandlePin
from fusewire._recording.record_op import R
from fusewire._recording.recorder import Recorder
from fusewire._recording.signature import ArraySpec


class FunctionRecording(BodyRecording):
    """The body of a function that is being recorded by the calling thread. `pins` keep what it takes from outside."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self.pins: list[HandlePin] = []
        self._stages: list[Stage] = []
        self._parameters: set[int] = set()

    def parameter(self, kind: type[R], spec: ArraySpec) -> R:
        made = super().parameter(kind, spec)
        self._parameters.add(made._handle)
        return made

    @contextmanager
    def loop(self) -> Iterator[BodyRecording]:
        """Records what the `with` body records as the body of a loop. `add_loop` makes it a stage."""
        recorder = self._recorder
        self._end_ops()
        firsts = recorder.firsts_of_body
        recorder.end_body()
        recorder.function = None
        try:
            with recording_body(recorder) as recording:
                yield recording
        finally:
            recorder.function = self
            recorder.go_on_with_body(firsts)

    def add_loop(
        self, initial: Mapping[int, int], carried: Mapping[int, int], iterations: int, *, index_steps: bool
    ) -> None:
        """Adds the loop whose body has been recorded. The arguments are those of `LoopStage`."""
        recorder = self._recorder
        self._pin([*initial.values(), *(each for each in recorder.inputs_of_body() if each not in initial)])
        first = recorder.sent
        body = recorder.recorded_body([*carried.values()])
        self._stages.append(LoopStage(body, first, initial, carried, iterations, index_steps))

    def end(self, results: Iterable[int]) -> list[Stage]:
        """Returns the stages that compute these results. Raises QuotaExceeded if those of a stage are too many."""
        self._end_ops()
        return handing_out(self._stages, results)

    def _end_ops(self) -> None:
        """Adds the ops since the last loop."""
        recorder = self._recorder
        if recorder.has_unsent:
            self._pin(recorder.inputs_of_body())
            first = recorder.sent
            self._stages.append(OpsStage(recorder.recorded_body([]), first))

    def _pin(self, handles: Iterable[int]) -> None:
        """Pins those of some handles that are from outside, or of an upload in the function."""
        inside = range(self.first, self._recorder.next_number)
        taken = {each for each in handles if each not in inside and each not in self._parameters}
        self.pins += [self._recorder.owner.pin(handle) for handle in taken]


@contextmanager
def recording_function(recorder: Recorder) -> Iterator[FunctionRecording]:
    """Records what the `with` body records as the body of a function. Nothing of it is sent."""
    with recording_body(recorder):
        function = recorder.function = FunctionRecording(recorder)
        try:
            yield function
        finally:
            recorder.function = None


def recording_loop(recorder: Recorder) -> AbstractContextManager[BodyRecording]:
    """Records what the `with` body records as the body of a loop, by itself or within a function's.

    Raises RequestError within the body of another loop.
    """
    return recording_body(recorder) if recorder.function is None else recorder.function.loop()
