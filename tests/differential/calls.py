"""One call of a function, for Fusewire and for NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.differential.draw import Host

Placing = Callable[[Sequence[Any]], tuple[Any, ...]]


def as_list(arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Returns the arguments of a function that takes its arrays as a list."""
    return ([*arrays],)


@dataclass(frozen=True)
class Call:
    """`arrays` come first, as `placed` makes arguments of them; then the values of `rest` and the options.

    A function that writes to its first array, and so returns nothing, is given a copy of it, which is the result.
    """

    name: str
    arrays: tuple[Host, ...]
    rest: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    placed: Placing = tuple
    writes: bool = False

    def __str__(self) -> str:
        operands = ", ".join(f"{each.dtype}{list(each.shape)}" for each in self.arrays)
        return f"{self.name}({operands}; {self.rest} {dict(self.options)})"

    def results(self, namespace: Any, arrays: Sequence[Any]) -> list[Any]:
        """Returns the results, one or several, of the namespace's function of these arrays."""
        given = [arrays[0].copy(), *arrays[1:]] if self.writes else arrays
        result = getattr(namespace, self.name)(*self.placed(given), *self.rest, **self.options)
        result = given[0] if self.writes else result
        return list(result) if isinstance(result, tuple | list) else [result]
