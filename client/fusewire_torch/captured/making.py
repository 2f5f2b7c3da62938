"""Makes a recording of a call of a step: finds what the step reads, writes, returns and leaves."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

import torch

from fusewire import ArgumentError, Array
from fusewire._api.complex.complex_array import ComplexArray
from fusewire._api.recorded_once.nested import flatten
from fusewire._recording.bodies.body import BodyRecording
from fusewire._recording.recorder import Recorder
from fusewire_torch import random_state
from fusewire_torch.captured.arguments import Arguments
from fusewire_torch.captured.draws import draws_of
from fusewire_torch.captured.python_state import Gradient, PythonState, Used
from fusewire_torch.captured.recording import (
    Argument,
    Computed,
    Fresh,
    Input,
    KeptGradient,
    Parts,
    Recording,
    Source,
    Taken,
    parts_of,
)
from fusewire_torch.captured.storage_log import RecordedLog, Touched
from fusewire_torch.dtypes import fusewire_of
from fusewire_torch.storage import DEVICE, Elements, array_of, dense_strides, held, is_ours, tensor_of

_NUMBERS = (bool, int, float, complex, str, type(None))


class Making:
    """Makes the recording of one call, whose body `recorder` records."""

    def __init__(self, recorder: Recorder, body: BodyRecording, arguments: Arguments) -> None:
        self._recorder, self._body, self._arguments = recorder, body, arguments
        self.log = RecordedLog(self._parameter_of)
        self._generator = random_state.generator()
        self._counter = self._generator._next_counter
        self._inputs: list[Input] = []
        self._places: dict[int, int] = {}  # of each input, by the handle of its parameter
        self._stand_ins: list[Any] = []  # what stands for the tensors among the arguments
        self._given: list[Source] = []  # where the elements of each come from as long as nothing is written to it
        self._computed: dict[int, Array] = {}  # the results that have a use after the step, by op
        self._returned: list[Any] = []
        self._form: Any = None
        self._gradients: list[KeptGradient] = []

    def leaves(self) -> list[Any]:
        """Returns the leaves with which the step is to be called."""
        arguments = self._arguments
        for number, array in enumerate(arguments.arrays):
            parameter = self._parameter_of(array)
            self._add_input(Input(number, None, 0, parameter._spec), parameter)
            self._stand_ins.append(tensor_of(parameter))
            self._given.append(self._source(parameter))
        return arguments.substituted(self._stand_ins)

    def note_end(self, returned: Any, before: Sequence[Gradient], used: Used) -> None:
        """Notes what the step returns and leaves. `before` are the gradients that it has found."""
        for each in self.log.touched:
            if each.before is not None and each.parameter is not None:
                self._add_input(Input(None, each.elements, 0, each.parameter._spec), each.parameter)
        self._gradients = [self._kept_gradient(each) for each in _with_new(before, used)]
        leaves, self._form = flatten(returned)
        self._returned = self._descriptions(leaves)

    def recording(self, state: PythonState) -> Recording:
        """Drafts the body. Raises ArgumentError if nothing of it is kept."""
        if random_state.generator() is not self._generator:
            raise ArgumentError(
                "a step sets the seed or state of random numbers, which no replay would do: set it before"
            )
        gc.collect(0)  # what is part of a dead cycle does not live on; all that the call made is young
        recorder = self._recorder
        written = [(each.elements, new) for each in self.log.touched if (new := _written_to(each)) is not None]
        to_elements = [(elements, self._source(array)) for elements, array in written]
        to_arguments = [
            (number, source)
            for number, source in enumerate([self._source(array_of(each)) for each in self._stand_ins])
            if not _is_same(source, self._given[number])
        ]
        self._stand_ins.clear()
        to_kept = [(weak, self._source(array)) for weak, array in self.log.new_alive()]
        if not self._computed:
            raise ArgumentError(f"a step of which nothing on {DEVICE!r} is kept: it writes and returns no tensor")
        inputs = recorder.inputs_of_body()
        pins = [recorder.owner.pin(handle) for handle in inputs if handle not in self._places]
        body = recorder.recorded_body([array._handle for array in self._computed.values()])
        return Recording(
            recorder,
            body,
            self._inputs,
            [self._places.get(handle) for handle in inputs],
            pins,
            to_elements,
            to_arguments,
            to_kept,
            self._returned,
            self._form,
            self._gradients,
            draws_of(body, self._counter),
            state,
        )

    def go_back(self) -> None:
        """Gives the storages and the device's generator the state that they had before the call."""
        self.log.undo()
        self._generator._next_counter = self._counter

    def _parameter_of(self, array: Array) -> Array:
        """Returns what stands for an array while the step is recorded."""
        if isinstance(array, ComplexArray):
            return ComplexArray(*[self._parameter_of(each) for each in array.parts])
        return self._body.parameter(Array, array._spec)

    def _add_input(self, given: Input, parameter: Array) -> None:
        for number, part in enumerate(parts_of(parameter)):
            self._places[part._handle] = len(self._inputs)
            self._inputs.append(given._replace(part=number, spec=part._spec))

    def _source(self, array: Array) -> Source:
        """Returns where an array comes from at each use of the body."""
        if isinstance(array, ComplexArray):
            return Parts(*[self._source(each) for each in array.parts])
        place = self._places.get(array._handle)
        if place is not None:
            return Taken(place)
        if not self._body.computes(array):
            return array
        op = array._handle - self._body.first
        self._computed.setdefault(op, array)
        return Computed(op)

    def _kept_gradient(self, before: Gradient) -> KeptGradient:
        parameter, needed, wants_one = before
        is_free = needed is not None and not self.log.has_touched(held(needed.untyped_storage()))
        is_free = is_free and parameter.grad is not needed
        return KeptGradient(parameter, wants_one, needed, is_free, parameter.grad)

    def _descriptions(self, leaves: Sequence[Any]) -> list[Any]:
        """Returns what stands for each leaf that the step returns."""
        of_gradients = {id(held(each.left.untyped_storage())) for each in self._gradients if each.left is not None}
        stand_ins = {id(each): number for number, each in enumerate(self._stand_ins)}
        numbers: dict[int, int] = {}

        def described(leaf: Any) -> Any:
            if isinstance(leaf, _NUMBERS):
                return leaf
            if not isinstance(leaf, torch.Tensor):
                raise ArgumentError(
                    f"a step returns a {type(leaf).__name__}; it may return tensors and numbers, nested"
                )
            if not is_ours(leaf):
                raise ArgumentError(f"a step returns a tensor of the device {leaf.device}, which no replay would make")
            elements = held(leaf.untyped_storage())
            if id(leaf) in stand_ins:
                return Argument(stand_ins[id(leaf)])
            if id(elements) in of_gradients or not self.log.has_made(elements):
                return leaf
            if elements.array is None:
                raise ArgumentError("a step returns a tensor of undefined elements")
            return self._fresh(leaf, elements, numbers)

        return [described(leaf) for leaf in leaves]

    def _fresh(self, leaf: torch.Tensor, elements: Elements, numbers: dict[int, int]) -> Fresh:
        """Returns what stands for a new tensor. One that sees parts or conjugates gets a storage of its own."""
        array, shape = elements.array, tuple(leaf.shape)
        assert array is not None, "it is defined"
        if leaf.is_conj() or leaf.is_neg() or array.dtype is not fusewire_of(leaf.dtype):
            number = numbers.setdefault(id(leaf), len(numbers))
            return Fresh(number, self._source(array_of(leaf)), shape, dense_strides(shape), 0)
        number = numbers.setdefault(id(elements), len(numbers))
        return Fresh(number, self._source(array), shape, leaf.stride(), leaf.storage_offset())


def _is_same(source: Source, given: Source) -> bool:
    """Returns whether an argument has the elements at the end that it had at the beginning."""
    if isinstance(source, Parts) and isinstance(given, Parts):
        return all(_is_same(*pair) for pair in zip(source, given, strict=True))
    return isinstance(source, Taken) and source == given


def _written_to(each: Touched) -> Array | None:
    """Returns the array that the step has written in place of another one, or None."""
    array = each.elements.array
    return None if array is each.parameter else array


def _with_new(before: Sequence[Gradient], used: Used) -> list[Gradient]:
    """Returns the gradients before the step, also of parameters that were not known to be used: they had none."""
    known = {id(each.parameter) for each in before}
    new = [each for each in used.parameters() if id(each) not in known]
    return [*before, *[Gradient(each, None, each.requires_grad) for each in new]]
