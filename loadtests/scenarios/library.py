"""The array libraries that run the scenarios: Fusewire, NumPy and torch, with one set of names."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import fusewire as fw

Function = Callable[[Any], Any]


class Library(NamedTuple):
    """The functions of a library that the scenarios use. Operators, slices and reductions are methods of its arrays."""

    name: str
    asarray: Callable[[npt.NDArray[Any]], Any]  # from a NumPy array
    read: Callable[[Any], npt.NDArray[Any]]  # waits for the values
    concat: Callable[[Sequence[Any]], Any]  # along the first axis
    exp: Function
    log: Function
    relu: Function
    sigmoid: Function
    sqrt: Function
    tanh: Function
    float32: Any
    request: Callable[[Any], Future[Any]]  # begins to read; in Fusewire it returns at once

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """Returns an array of zeros of the dtype float32."""
        assert dtype is self.float32
        return self.asarray(np.zeros(shape, np.float32))


def fusewire(session: fw.Session) -> Library:
    """Returns Fusewire's functions. `asarray` uploads to this session."""
    return Library(
        "fusewire",
        asarray=session.array,
        read=lambda array: array.numpy(),
        concat=fw.concat,
        exp=fw.exp,
        log=fw.log,
        relu=fw.relu,
        sigmoid=fw.sigmoid,
        sqrt=fw.sqrt,
        tanh=fw.tanh,
        float32=fw.float32,
        request=session.fetch,
    )


def numpy() -> Library:
    """Returns NumPy's functions, which run in the calling thread."""
    return Library(
        "numpy",
        asarray=np.array,
        read=np.asarray,
        concat=np.concatenate,
        exp=np.exp,
        log=np.log,
        relu=lambda x: np.maximum(x, 0),
        sigmoid=lambda x: 1 / (1 + np.exp(-x)),
        sqrt=np.sqrt,
        tanh=np.tanh,
        float32=np.float32,
        request=_read_at_once,
    )


def torch() -> Library:
    """Returns torch's functions. They run op by op on this machine's GPU, or on the CPU if there is no GPU.

    No gradients are computed, and matrix products do not use TF32. torch is imported here, so that machines without
    torch can run all other libraries. Raises ModuleNotFoundError if torch is not installed.
    """
    library = importlib.import_module("torch")
    library.set_grad_enabled(False)
    library.backends.cuda.matmul.allow_tf32 = False
    device = "cuda" if library.cuda.is_available() else "cpu"
    return Library(
        "torch",
        asarray=lambda array: library.from_numpy(np.array(array)).to(device),
        read=lambda tensor: tensor.cpu().numpy(),
        concat=library.concat,
        exp=library.exp,
        log=library.log,
        relu=library.relu,
        sigmoid=library.sigmoid,
        sqrt=library.sqrt,
        tanh=library.tanh,
        float32=library.float32,
        request=_read_at_once,
    )


def _read_at_once(array: Any) -> Future[Any]:
    read: Future[Any] = Future()
    read.set_result(array)
    return read


PEERS: dict[str, Callable[[], Library]] = {"numpy": numpy, "torch": torch}
