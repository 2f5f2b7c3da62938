"""`train`: the training of `fusewire demo`. A network learns to read digits; each session orders the images anew."""

from __future__ import annotations

from fusewire.examples import dataset, fusewire_training, network, numpy_training
from loadtests.scenarios.library import Library
from loadtests.scenarios.scenario import Data, Scenario, Steps


def _program(xp: Library, data: Data) -> Steps:
    digits = dataset.load()
    order = data.random.permutation(len(digits.labels))[: 20 * network.BATCH]
    images, labels = xp.asarray(digits.images[order]), xp.asarray(dataset.one_hot(digits.labels[order]))
    rate = float(data.random.uniform(network.SMALLEST_RATE, network.LARGEST_RATE))
    train = fusewire_training.train if xp.name == "fusewire" else numpy_training.train
    while True:
        trained = train(images, labels, learning_rate=rate, epochs=1, after_epoch=lambda: None)
        yield trained.weights.second


SCENARIO = Scenario(
    name="train",
    what=f"an epoch of 20 batches of {network.BATCH} images, forward and backward; reads the loss and the last weights",
    shows="a training loop, whose learning rate differs in each session and shares one program",
    program=_program,
    peers=("numpy",),  # torch's `max` along an axis gives a pair
)
