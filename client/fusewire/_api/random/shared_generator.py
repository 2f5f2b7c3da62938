"""The functions of NumPy's older interface, `random.rand` and the like. They draw from one generator of the process."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from fusewire._api.random.random_state import RandomState

_shared = RandomState()


def _function_of(method: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function that calls a method of the shared generator. It has the method's parameters."""

    @wraps(method)
    def draw(*arguments: Any, **options: Any) -> Any:
        return method(_shared, *arguments, **options)

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
get_state = _function_of(RandomState.get_state)
gumbel = _function_of(RandomState.gumbel)
laplace = _function_of(RandomState.laplace)
logistic = _function_of(RandomState.logistic)
lognormal = _function_of(RandomState.lognormal)
logseries = _function_of(RandomState.logseries)
multinomial = _function_of(RandomState.multinomial)
multivariate_normal = _function_of(RandomState.multivariate_normal)
negative_binomial = _function_of(RandomState.negative_binomial)
noncentral_chisquare = _function_of(RandomState.noncentral_chisquare)
noncentral_f = _function_of(RandomState.noncentral_f)
normal = _function_of(RandomState.normal)
pareto = _function_of(RandomState.pareto)
permutation = _function_of(RandomState.permutation)
poisson = _function_of(RandomState.poisson)
power = _function_of(RandomState.power)
rand = _function_of(RandomState.rand)
randint = _function_of(RandomState.randint)
randn = _function_of(RandomState.randn)
random = _function_of(RandomState.random)
random_sample = _function_of(RandomState.random_sample)
rayleigh = _function_of(RandomState.rayleigh)
seed = _function_of(RandomState.seed)
set_state = _function_of(RandomState.set_state)
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
