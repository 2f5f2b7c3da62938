"""`mlp`: inference by a network of eight layers, each batch uploaded and each answer read."""

from __future__ import annotations

from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Scenario, Steps

_LAYERS, _WIDTH, _BATCH = 8, 256, 16


def _program(xp: Library, data: Data) -> Steps:
    layers = [(xp.asarray(data.weights(_WIDTH, _WIDTH)), xp.asarray(data.normal(_WIDTH) / 10)) for _ in range(_LAYERS)]
    batches = [data.normal(_BATCH, _WIDTH) for _ in range(4)]
    while True:
        for batch in batches:
            x = xp.asarray(batch)
            for weights, bias in layers:
                x = xp.relu(x @ weights + bias)
            yield x


SCENARIO = Scenario(
    name="mlp",
    what=f"inference by {_LAYERS} layers of width {_WIDTH}: uploads a batch of {_BATCH}, reads the answer",
    shows="the latency of a whole request: upload, products, download",
    program=_program,
)
