"""Registers the kernels of the device: those of the tables here, PyTorch's decompositions, and an error for the rest.

PyTorch composes many ops of others by itself. Of the others, an op in the tables is recorded by its entry; one that
PyTorch can decompose in Python runs that decomposition; what is left raises NotImplementedError by its name, or runs on
the CPU if `FUSEWIRE_TORCH_FALLBACK=1`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch._decomp import core_aten_decompositions, decomposition_table

from fusewire_torch.dispatch.autocast import register_autocast
from fusewire_torch.dispatch.errors import checked_first, explained_by_torch
from fusewire_torch.dispatch.fallback import missing_op
from fusewire_torch.dispatch.overloads import functional_of, in_place_of, out_of
from fusewire_torch.dispatch.results import check_first, into_given, tensors_into_given
from fusewire_torch.kernels import TABLES
from fusewire_torch.storage import IntoFirst, Kernel, NewTensors, OfLists

_KEY = "PrivateUse1"
_COMPOSITE = ("CompositeImplicitAutograd", "CompositeExplicitAutograd")

# PyTorch's decompositions of these take paddings that the ops refuse.
_UNCHECKED = frozenset(f"aten::{kind}_pad{rank}d" for kind in ("reflection", "replication") for rank in (1, 2, 3))
# PyTorch's decompositions of these call the op itself, because they are primitives of its own compilers.
_CIRCULAR = frozenset(
    (
        "as_strided_scatter",
        "digamma",
        "erfc",
        "erfinv",
        "frexp.Tensor",
        "i0",
        "igamma",
        "igammac",
        "lgamma",
        "special_bessel_j0",
    )
    + ("special_bessel_j1", "special_erfcx", "special_i0e", "special_i1", "special_i1e", "special_ndtri")
    + ("special_spherical_bessel_j0", "special_zeta")
)

decomposed: set[str] = set()  # the names of the overloads that run a decomposition of PyTorch

_libraries: list[torch.library.Library] = []  # kernels are registered as long as their library lives


def register_kernels() -> None:
    """Registers a kernel for every op of PyTorch that has none for all devices."""
    library = torch.library.Library("aten", "IMPL")
    known = _register_tables(library)
    _register_decompositions(library, known)
    rest = torch.library.Library("_", "IMPL")
    rest.fallback(missing_op, _KEY)
    register_autocast(library, rest)
    for key in ("Conjugate", "Negative"):  # whose kernel for other ops would copy to a tensor of its own
        library.impl("_copy_from", torch.library.fallthrough_kernel, key)
    # A DataLoader pins the batches of the CPU where there is a device. Uploads to this one gain nothing by that. The
    # result is a tensor of its own, because PyTorch records it so.
    library.impl("_pin_memory", lambda x, device=None: x.clone(), "CPU")
    _libraries.extend((library, rest))


def _register_tables(library: torch.library.Library) -> set[str]:
    """Registers each entry as the functional overload, the one in place and the one with `out`, where they exist."""
    known: set[str] = set()
    for table in TABLES:
        for name, kernel in table.bare.items():
            _register(library, known, name, kernel)
        for name, kernel in table.kernels.items():
            _register(library, known, name, Kernel(kernel, explained_by_torch(functional_of(name))))
        for name, compute in table.lists.items():
            check = check_first if functional_of(name)._schema.is_mutable else None
            _register(library, known, name, OfLists(compute, check, explained_by_torch(functional_of(name))))
        for name, compute in table.values.items():
            op = functional_of(name)
            _register(library, known, name, NewTensors(compute, explained_by_torch(op)))
            if (in_place := in_place_of(op)) is not None:
                explained = explained_by_torch(functional_of(in_place))
                _register(library, known, in_place, IntoFirst(compute, check_first, explained))
            if (out := out_of(op)) is not None:
                _register(library, known, out, Kernel(into_given(compute, op), explained_by_torch(functional_of(out))))
    return known


def _register_decompositions(library: torch.library.Library, known: set[str]) -> None:
    """Registers PyTorch's own decompositions of ops that have no kernel for all devices."""
    core_aten_decompositions()  # its import fills the table
    for op, decomposition in decomposition_table.items():
        name = op.name() if isinstance(op, torch._ops.OpOverload) else ""
        short = name.removeprefix("aten::")
        if name == short or short in _CIRCULAR or any(argument.is_out for argument in op._schema.arguments):
            continue
        kernel = _or_missing(checked_first(op, decomposition) if name in _UNCHECKED else decomposition, op)
        if not _has_kernel(name):
            decomposed.update({short} - known)
            _register(library, known, short, kernel)
        out = out_of(op)
        if out is not None and not _has_kernel(f"aten::{out}"):
            decomposed.update({out} - known)
            write = tensors_into_given(kernel, op)
            _register(library, known, out, Kernel(write, explained_by_torch(functional_of(out))))


def _or_missing(decomposition: Callable[..., Any], op: Any) -> Callable[..., Any]:
    """Returns the kernel of a decomposition, which says by NotImplemented that it does not know some operands."""

    @wraps(decomposition)
    def kernel(*arguments: Any, **options: Any) -> Any:
        result = decomposition(*arguments, **options)
        return missing_op(op, *arguments, **options) if result is NotImplemented else result

    return kernel


def _has_kernel(name: str) -> bool:
    return any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in _COMPOSITE)


def _register(library: torch.library.Library, known: set[str], name: str, kernel: Callable[..., Any]) -> None:
    if name not in known:
        known.add(name)
        if isinstance(kernel, Kernel):
            kernel.name = name.partition(".")[0]
        library.impl(name, kernel, _KEY)
