"""The functions of NumPy's older interface, `random.rand` and the like. They draw from one generator of the process."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from fusewire._api.array import Array
from fusewire._api.random.draws import Size
from fusewire._api.random.generator import Generator
from fusewire_protos.ops import dtypes

_shared = [Generator()]  # replaced as a whole, so that each thread sees the old one or the new one


def seed(seed: Any = None) -> None:
    """Gives the functions of this module a new generator, `default_rng(seed)`. Their numbers are not NumPy's."""
    _shared[0] = Generator(seed)


def rand(*shape: int) -> Array:
    """Returns floats of [0, 1) in float64, of the dims that are given one by one."""
    return _shared[0].random(shape)


def randn(*shape: int) -> Array:
    """Returns normal numbers of mean 0 and variance 1 in float64, of the dims that are given one by one."""
    return _shared[0].standard_normal(shape)


def randint(low: Any, high: Any = None, size: Size = None, dtype: Any = dtypes.int64) -> Array:
    """Returns integers of [low, high), or of [0, low) without `high`. See `Generator.integers`."""
    return _shared[0].integers(low, high, size, dtype)


def _function_of(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function that calls a method of the shared generator. It has the method's parameters."""

    @wraps(method)
    def draw(*arguments: Any, **options: Any) -> Any:
        return method(_shared[0], *arguments, **options)

    signature = inspect.signature(method)
    _, *parameters = signature.parameters.values()
    draw.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    draw.__module__, draw.__qualname__ = "fusewire.random", method.__name__
    return draw


beta = _function_of(Generator.beta)
binomial = _function_of(Generator.binomial)
chisquare = _function_of(Generator.chisquare)
choice = _function_of(Generator.choice)
dirichlet = _function_of(Generator.dirichlet)
exponential = _function_of(Generator.exponential)
f = _function_of(Generator.f)
gamma = _function_of(Generator.gamma)
geometric = _function_of(Generator.geometric)
gumbel = _function_of(Generator.gumbel)
laplace = _function_of(Generator.laplace)
logistic = _function_of(Generator.logistic)
lognormal = _function_of(Generator.lognormal)
normal = _function_of(Generator.normal)
pareto = _function_of(Generator.pareto)
permutation = _function_of(Generator.permutation)
power = _function_of(Generator.power)
random = _function_of(Generator.random)
rayleigh = _function_of(Generator.rayleigh)
shuffle = _function_of(Generator.shuffle)
standard_cauchy = _function_of(Generator.standard_cauchy)
standard_exponential = _function_of(Generator.standard_exponential)
standard_gamma = _function_of(Generator.standard_gamma)
standard_normal = _function_of(Generator.standard_normal)
standard_t = _function_of(Generator.standard_t)
triangular = _function_of(Generator.triangular)
uniform = _function_of(Generator.uniform)
wald = _function_of(Generator.wald)
weibull = _function_of(Generator.weibull)
