"""A table of ops: for the names of ATen's overloads, functions that record them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class Table:
    """Ops by name. A name is that of ATen's overload, such as "add.Tensor", or of its packet if it has one overload.

    `values` are functions of the op's tensors and numbers that return arrays; the overloads in place and with `out`
    follow from them. `lists` are such functions for ops that do the same to each tensor of a list. `kernels` are
    functions that return tensors by themselves; those among them that never record are in `bare`.
    """

    def __init__(self) -> None:
        self.values: dict[str, Callable[..., Any]] = {}
        self.lists: dict[str, Callable[..., Any]] = {}
        self.bare: dict[str, Callable[..., Any]] = {}
        self.kernels: dict[str, Callable[..., Any]] = {}

    def value(self, *names: str) -> Callable[[F], F]:
        """Returns the decorator of a function that computes the value of these ops."""

        def add(function: F) -> F:
            self.values.update(dict.fromkeys(names, function))
            return function

        return add

    def kernel(self, *names: str) -> Callable[[F], F]:
        """Returns the decorator of a function that is the kernel of these ops."""

        def add(function: F) -> F:
            self.kernels.update(dict.fromkeys(names, function))
            return function

        return add
