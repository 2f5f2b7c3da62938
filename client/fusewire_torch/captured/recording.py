"""A step as it was recorded: the ops of its body, where their inputs come from, and where their results go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from fusewire import Array
from fusewire._api.complex.complex_array import ComplexArray
from fusewire._api.recorded_once.nested import Form, unflatten
from fusewire._recording.bodies.recorded_body import RecordedBody
from fusewire._recording.integer_scans import VALUE, places_of_signatures
from fusewire._recording.pinned_handles import HandlePin
from fusewire._recording.places import source_line
from fusewire._recording.record_op import operand_handle, repeat
from fusewire._recording.recorder import Recorder
from fusewire._recording.signature import ArraySpec, signature_of
from fusewire_torch.captured.arguments import Arguments
from fusewire_torch.captured.draws import Draws
from fusewire_torch.captured.python_state import PythonState
from fusewire_torch.storage import Elements, restrided, tensor_of


class Computed(NamedTuple):
    """The result of an op of the body."""

    op: int


class Taken(NamedTuple):
    """An input of the step."""

    place: int


class Parts(NamedTuple):
    """The two arrays of complex numbers."""

    real: Any
    imag: Any


Source = Computed | Taken | Parts | Array  # an array is the same at each use


class Input(NamedTuple):
    """An input of the step: the elements of an argument, or of a storage that the step has from elsewhere.

    Complex numbers are two inputs, one of each `part`.
    """

    argument: int | None
    elements: Elements | None
    part: int
    spec: ArraySpec


class Fresh(NamedTuple):
    """A returned tensor that is new at each call. Tensors of one storage have one `number`."""

    number: int
    source: Source
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


class Argument(NamedTuple):
    """A returned tensor that is an argument."""

    place: int


class KeptGradient(NamedTuple):
    """The gradient of a parameter when the step has ended.

    The step can be replayed only while the gradient is `needed`, unless `is_free`, because the step has dropped the
    one it found and so does not depend on it.
    """

    parameter: Any
    wants_one: bool
    needed: Any
    is_free: bool
    left: Any


class Recording(NamedTuple):
    """What `replay` needs. `places` has for each input of the body its place among `inputs`; None: a constant's."""

    recorder: Recorder
    body: RecordedBody
    inputs: Sequence[Input]
    places: Sequence[int | None]
    pins: Sequence[HandlePin]  # keep the handles of constants alive
    to_elements: Sequence[tuple[Any, Source]]  # existing storages that the step writes
    to_arguments: Sequence[tuple[int, Source]]  # arguments that the step writes
    to_kept: Sequence[tuple[Any, Source]]  # weak references to new storages that live on after the step
    returned: Sequence[Any]  # leaves; Fresh and Argument stand for tensors
    form: Form
    gradients: Sequence[KeptGradient]
    draws: Draws
    state: PythonState

    def change(self) -> str | None:
        """Returns why the step cannot be replayed now, as text, or None."""
        for each in self.gradients:
            if each.parameter.requires_grad != each.wants_one:
                return "requires_grad of a parameter changes"
            if not each.is_free and each.parameter.grad is not each.needed:
                return "the gradient of a parameter is another tensor when the step begins"
        return self.state.change()

    def replay(self, arguments: Arguments) -> Any:
        """Runs the step again, and returns what it returns."""
        for argument, _ in self.to_arguments:
            arguments.check_may_write(argument)
        recorder, body = self.recorder, self.body
        given = [self._input(each, arguments) for each in self.inputs]
        pins: list[HandlePin] = []
        bound = [
            handle if place is None else operand_handle(given[place], recorder, pins)
            for handle, place in zip(body.structure.inputs, self.places, strict=True)
        ]
        computed = repeat(Array, recorder, body, bound, self.draws.values(body.values), pins)
        results = dict(zip(body.live, computed, strict=True))

        def value(source: Source) -> Array:  # calls itself not, which would make a cycle that holds all results
            return _value(source, results, given)

        self.draws.advance()
        return self._hand_out(arguments, value)

    def _hand_out(self, arguments: Arguments, value: Callable[[Source], Array]) -> Any:
        """Writes the results of one use, whose arrays `value` returns. Returns what the step returns."""
        for elements, source in self.to_elements:
            elements.array = value(source)
        for argument, source in self.to_arguments:
            arguments.write(argument, value(source))
        for weak, source in self.to_kept:
            left = weak()
            if left is not None:
                left.array = value(source)
        for each in self.gradients:
            if each.parameter.grad is not each.left:
                each.parameter.grad = each.left
        return unflatten(self.form, _leaves(self.returned, arguments, value))

    @staticmethod
    def _input(each: Input, arguments: Arguments) -> Array:
        if each.argument is not None:
            array = arguments.arrays[each.argument]
        else:
            assert each.elements is not None
            assert each.elements.array is not None, "what was read once is defined"
            array = each.elements.array
        array = parts_of(array)[each.part]
        return array if array._spec is each.spec else array.reshape(each.spec.shape)

    def difference(self, other: Recording) -> str | None:
        """Returns in which respect another recording of the step has other ops or tensors, as text, or None."""
        if self.body.structure.key != other.body.structure.key:
            return "it records other ops"
        if self.body.live != other.body.live:
            return "other results of it live on"
        if self.places != other.places or [_identity(each) for each in self.inputs] != [
            _identity(each) for each in other.inputs
        ]:
            return "it reads other tensors, which it does not get as arguments"
        if repr(_simple(self.returned)) != repr(_simple(other.returned)) or self.form != other.form:
            return "it returns other numbers"
        if not self.state.used.is_equal_to(other.state.used):
            return "it uses other optimizers or modules"
        return None

    def changing_scalar(self, other: Recording) -> str | None:
        """Returns which scalar differs from that of another recording of the same ops, as text, or None."""
        old, new = (each.draws.normal(each.body.values) for each in (self, other))
        place = next((place for place, pair in enumerate(zip(old, new, strict=True)) if not _same(*pair)), None)
        if place is None:
            return None
        op = self._op_of_value(place)
        name = signature_of(int(self.body.signatures[op])).op.name
        line = source_line(other.body.places[op])
        return f"a scalar of {name!r}, {line or 'at an unknown line'}, which was {old[place]!r} and is {new[place]!r}"

    def _op_of_value(self, place: int) -> int:
        cells = self.body.cells
        starts = places_of_signatures(cells)
        cell = int((cells == VALUE).nonzero()[0][place])
        return int(np.searchsorted(starts, cell, side="right")) - 1


def _value(source: Source, results: dict[int, Array], given: Sequence[Array]) -> Array:
    """Returns the array that a use of the body has computed, was given, or that is the same at each use."""
    if isinstance(source, Computed):
        return results[source.op]
    if isinstance(source, Parts):
        return ComplexArray(*[_value(each, results, given) for each in source])
    return given[source.place] if isinstance(source, Taken) else source


def parts_of(array: Array) -> Sequence[Array]:
    """Returns the arrays on the server that an array is: two of complex numbers."""
    return array.parts if isinstance(array, ComplexArray) else (array,)


def _simple(leaves: Sequence[Any]) -> list[Any]:
    return [each for each in leaves if not isinstance(each, torch.Tensor | Fresh)]


def _identity(each: Input) -> Any:
    return each.argument, None if each.elements is None else id(each.elements), each.part, each.spec


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and repr(one) == repr(other)


def _leaves(leaves: Sequence[Any], arguments: Arguments, value: Callable[[Source], Array]) -> list[Any]:
    """Returns the leaves that a step returns, with new tensors in place of what stands for them."""
    bases: dict[int, torch.Tensor] = {}

    def tensor(leaf: Any) -> Any:
        if isinstance(leaf, Argument):
            return arguments.tensors[leaf.place]
        if not isinstance(leaf, Fresh):
            return leaf
        if leaf.number not in bases:
            bases[leaf.number] = tensor_of(value(leaf.source))
        base = bases[leaf.number]
        if base.shape == leaf.shape and base.stride() == leaf.strides:  # a view is a call of PyTorch's dispatcher
            return base
        return restrided(base, leaf.shape, leaf.strides, leaf.offset)

    return [tensor(each) for each in leaves]
