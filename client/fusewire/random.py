"""Random numbers that are drawn on the server: `Generator`, the keys that determine what it draws, and one for all.

`rand`, `normal` and the like, by NumPy's older names, draw from one generator of the process, which `seed` begins anew.

rng = fw.random.default_rng(7)
x = rng.normal(size=(1000, 20), dtype="float32")

def body(i, x):  # a body that is recorded once draws by a key of its own
    return x + fw.random.Generator(fw.random.fold_in(key, i)).normal(size=20)

key = fw.random.key(7)
y = fw.fori_loop(100, body, fw.zeros(20))
"""

import typing as _typing

from fusewire._api.missing_names import instead_of_draw as _instead_of_draw
from fusewire._api.random.generator import Generator, default_rng
from fusewire._api.random.keys import fold_in, key, split
from fusewire._api.random.random_state import RandomState
from fusewire._api.random.shared_generator import (
    beta,
    binomial,
    chisquare,
    choice,
    dirichlet,
    exponential,
    f,
    gamma,
    geometric,
    get_state,
    gumbel,
    laplace,
    logistic,
    lognormal,
    logseries,
    multinomial,
    multivariate_normal,
    negative_binomial,
    noncentral_chisquare,
    noncentral_f,
    normal,
    pareto,
    permutation,
    poisson,
    power,
    rand,
    randint,
    randn,
    random,
    random_sample,
    rayleigh,
    seed,
    set_state,
    shuffle,
    standard_cauchy,
    standard_exponential,
    standard_gamma,
    standard_normal,
    standard_t,
    triangular,
    uniform,
    wald,
    weibull,
)

__all__ = [
    "Generator",
    "RandomState",
    "beta",
    "binomial",
    "chisquare",
    "choice",
    "default_rng",
    "dirichlet",
    "exponential",
    "f",
    "fold_in",
    "gamma",
    "geometric",
    "get_state",
    "gumbel",
    "key",
    "laplace",
    "logistic",
    "lognormal",
    "logseries",
    "multinomial",
    "multivariate_normal",
    "negative_binomial",
    "noncentral_chisquare",
    "noncentral_f",
    "normal",
    "pareto",
    "permutation",
    "poisson",
    "power",
    "rand",
    "randint",
    "randn",
    "random",
    "random_sample",
    "rayleigh",
    "seed",
    "set_state",
    "shuffle",
    "split",
    "standard_cauchy",
    "standard_exponential",
    "standard_gamma",
    "standard_normal",
    "standard_t",
    "triangular",
    "uniform",
    "wald",
    "weibull",
]

if not _typing.TYPE_CHECKING:  # a type checker would allow every attribute

    def __getattr__(name: str) -> _typing.NoReturn:
        is_method = hasattr(Generator, name) and not name.startswith("_")
        instead = (
            f": draw by a generator, fw.random.default_rng(seed).{name}(…)" if is_method else _instead_of_draw(name)
        )
        raise AttributeError(f"module 'fusewire.random' has no attribute {name!r}{instead}", name=name)
