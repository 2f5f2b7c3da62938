"""The recurrent loop in torch on the GPU of this machine: eager, and as a replayed graph of eager steps.

torch is imported when a loop is made, so that machines without it can list the figures.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from loadtests.programs import Floats, Rnn, run_rnn

_WARMING_STEPS = 100


class TorchLoop:
    """The loop over operands on the GPU; float32 products are true float32."""

    def __init__(self, operands: Rnn) -> None:
        self._torch: Any = importlib.import_module("torch")
        self._torch.backends.cuda.matmul.allow_tf32 = False
        self._rnn = Rnn(*(self._torch.from_numpy(np.ascontiguousarray(operand)).cuda() for operand in operands))

    def eager(self, steps: int) -> Floats:
        """The state after so many steps."""
        with self._torch.inference_mode():
            state: Floats = run_rnn(self._rnn, range(steps), self._torch.sigmoid).cpu().numpy()
        return state

    def graph(self, steps: int) -> Callable[[int], Floats]:
        """A function that replays a captured graph of `steps` steps so many times, and returns the state."""
        torch = self._torch
        state = self._rnn.state.clone()
        rnn = self._rnn._replace(state=state)
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.inference_mode():
            with torch.cuda.stream(aside):
                run_rnn(rnn, range(_WARMING_STEPS), torch.sigmoid)
            torch.cuda.synchronize()
            captured = torch.cuda.CUDAGraph()
            with torch.cuda.graph(captured):
                state.copy_(run_rnn(rnn, range(steps), torch.sigmoid))

        def replay(times: int) -> Floats:
            state.copy_(self._rnn.state)
            for _ in range(times):
                captured.replay()
            result: Floats = state.cpu().numpy()
            return result

        return replay
