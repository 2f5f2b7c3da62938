"""Random numbers that are drawn on the server: `Generator`, the keys that determine what it draws, and one for all.

`rand`, `normal` and the like, by NumPy's older names, draw from one generator of the process, which `seed` replaces.

rng = fw.random.default_rng(7)
x = rng.normal(size=(1000, 20), dtype="float32")

def body(i, x):  # a body that is recorded once draws by a key of its own
    return x + fw.random.Generator(fw.random.fold_in(key, i)).normal(size=20)

key = fw.random.key(7)
y = fw.fori_loop(100, body, fw.zeros(20))
"""

import typing as _typing

from fusewire._api.random.generator import Generator, default_rng
from fusewire._api.random.keys import fold_in, key, split
from fusewire._api.random.shared_generator import (
    choice,
    exponential,
    gumbel,
    laplace,
    logistic,
    lognormal,
    normal,
    permutation,
    rand,
    randint,
    randn,
    random,
    rayleigh,
    seed,
    shuffle,
    standard_exponential,
    standard_normal,
    uniform,
)

__all__ = [
    "Generator",
    "choice",
    "default_rng",
    "exponential",
    "fold_in",
    "gumbel",
    "key",
    "laplace",
    "logistic",
    "lognormal",
    "normal",
    "permutation",
    "rand",
    "randint",
    "randn",
    "random",
    "rayleigh",
    "seed",
    "shuffle",
    "split",
    "standard_exponential",
    "standard_normal",
    "uniform",
]

if not _typing.TYPE_CHECKING:  # a type checker would allow every attribute

    def __getattr__(name: str) -> _typing.NoReturn:
        text = f"module 'fusewire.random' has no attribute {name!r}"
        if hasattr(Generator, name) and not name.startswith("_"):
            text += f": draw by a generator, fw.random.default_rng(seed).{name}(…)"
        raise AttributeError(text, name=name)
