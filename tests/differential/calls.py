"""One call of a function, for Fusewire and for NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.differential.draw import Host


@dataclass(frozen=True)
class Call:
    """`arrays` come first, one by one or as a list; then the values of `rest` and the options."""

    name: str
    arrays: tuple[Host, ...]
    rest: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    is_list: bool = False

    def __str__(self) -> str:
        operands = ", ".join(f"{each.dtype}{list(each.shape)}" for each in self.arrays)
        return f"{self.name}({operands}; {self.rest} {dict(self.options)})"

    def results(self, namespace: Any, arrays: Sequence[Any]) -> list[Any]:
        """Returns the results, one or several, of the namespace's function of these arrays."""
        operands = (list(arrays),) if self.is_list else tuple(arrays)
        result = getattr(namespace, self.name)(*operands, *self.rest, **self.options)
        return list(result) if isinstance(result, tuple | list) else [result]
