"""The functions of NumPy's older interface, `random.rand` and the like. They draw from one generator of the process."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from fusewire._api.random.random_state import RandomState

_shared = [RandomState()]  # replaced as a whole, so that each thread sees the old one or the new one


def seed(seed: Any = None) -> None:
    """Gives the functions of this module a new generator, `RandomState(seed)`. Their numbers are not NumPy's."""
    _shared[0] = RandomState(seed)


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


beta = _function_of(RandomState.beta)
binomial = _function_of(RandomState.binomial)
chisquare = _function_of(RandomState.chisquare)
choice = _function_of(RandomState.choice)
dirichlet = _function_of(RandomState.dirichlet)
exponential = _function_of(RandomState.exponential)
f = _function_of(RandomState.f)
gamma = _function_of(RandomState.gamma)
geometric = _function_of(RandomState.geometric)
gumbel = _function_of(RandomState.gumbel)
laplace = _function_of(RandomState.laplace)
logistic = _function_of(RandomState.logistic)
lognormal = _function_of(RandomState.lognormal)
multivariate_normal = _function_of(RandomState.multivariate_normal)
normal = _function_of(RandomState.normal)
pareto = _function_of(RandomState.pareto)
permutation = _function_of(RandomState.permutation)
power = _function_of(RandomState.power)
rand = _function_of(RandomState.rand)
randint = _function_of(RandomState.randint)
randn = _function_of(RandomState.randn)
random = _function_of(RandomState.random)
random_sample = _function_of(RandomState.random_sample)
rayleigh = _function_of(RandomState.rayleigh)
shuffle = _function_of(RandomState.shuffle)
standard_cauchy = _function_of(RandomState.standard_cauchy)
standard_exponential = _function_of(RandomState.standard_exponential)
standard_gamma = _function_of(RandomState.standard_gamma)
standard_normal = _function_of(RandomState.standard_normal)
standard_t = _function_of(RandomState.standard_t)
triangular = _function_of(RandomState.triangular)
uniform = _function_of(RandomState.uniform)
wald = _function_of(RandomState.wald)
weibull = _function_of(RandomState.weibull)
