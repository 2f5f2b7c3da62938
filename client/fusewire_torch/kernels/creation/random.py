"""Random fills. `torch.manual_seed` decides the numbers; they are not those of another device."""

from __future__ import annotations

from math import log1p, nan, sqrt
from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire_torch import random_state
from fusewire_torch.connection import session
from fusewire_torch.dtypes import fusewire_of
from fusewire_torch.storage import DEVICE, array_of, tensor_of, write
from fusewire_torch.table import Table

TABLE = Table()

_LARGEST_INTEGER = {torch.float16: 2**11, torch.bfloat16: 2**8, torch.float32: 2**24, torch.float64: 2**53}


@TABLE.kernel("uniform_")
def _uniform(x: torch.Tensor, low: float = 0.0, high: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}")
    if x.is_complex():
        torch.view_as_real(x).uniform_(low, high, generator=generator)
        return x
    drawn = random_state.generator(generator).random(tuple(x.shape), fusewire_of(x.dtype))
    return write(x, drawn * (high - low) + low)


@TABLE.kernel("normal_")
def _normal(x: torch.Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    if x.is_complex():  # whose parts have each half of the variance
        torch.view_as_real(x).normal_(0, std / sqrt(2), generator=generator)
        return x.add_(mean) if mean else x
    return write(x, random_state.generator(generator).normal(mean, std, tuple(x.shape)).astype(fusewire_of(x.dtype)))


@TABLE.kernel("exponential_")
def _exponential(x: torch.Tensor, lambd: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    return write(
        x, random_state.generator(generator).exponential(1 / lambd, tuple(x.shape)).astype(fusewire_of(x.dtype))
    )


@TABLE.kernel("cauchy_")
def _cauchy(x: torch.Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> torch.Tensor:
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    drawn = random_state.generator(generator).standard_cauchy(tuple(x.shape))
    return write(x, (median + sigma * drawn).astype(fusewire_of(x.dtype)))


@TABLE.kernel("log_normal_")
def _log_normal(x: torch.Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> torch.Tensor:
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std}")
    return write(x, random_state.generator(generator).lognormal(mean, std, tuple(x.shape)).astype(fusewire_of(x.dtype)))


@TABLE.kernel("geometric_")
def _geometric(x: torch.Tensor, p: float, *, generator: Any = None) -> torch.Tensor:
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    drawn = random_state.generator(generator).exponential(1.0, tuple(x.shape)) / -log1p(-p)
    return write(x, (fw.floor(drawn) + 1).astype(fusewire_of(x.dtype)))


@TABLE.kernel("bernoulli_.float")
def _bernoulli(x: torch.Tensor, p: float = 0.5, *, generator: Any = None) -> torch.Tensor:
    return write(x, random_state.generator(generator).random(tuple(x.shape), "float32") < p)


@TABLE.value("bernoulli")
def _bernoulli_of(x: torch.Tensor, *, generator: Any = None) -> Array:
    drawn = random_state.generator(generator).random(tuple(x.shape), "float32")
    return (drawn < array_of(x)).astype(fusewire_of(x.dtype))


@TABLE.kernel("bernoulli_.Tensor")
def _bernoulli_by(x: torch.Tensor, p: torch.Tensor, *, generator: Any = None) -> torch.Tensor:
    return write(x, random_state.generator(generator).random(tuple(x.shape), "float32") < array_of(p))


@TABLE.value("_standard_gamma")
def _standard_gamma(x: torch.Tensor, generator: Any = None) -> Array:
    """Draws numbers above zero, as PyTorch does, although one of a small shape may be rounded to zero."""
    drawn = random_state.generator(generator).standard_gamma(array_of(x), dtype="float64")
    return fw.maximum(drawn, torch.finfo(x.dtype).tiny).astype(fusewire_of(x.dtype))


@TABLE.value("_sample_dirichlet")
def _dirichlet(x: torch.Tensor, generator: Any = None) -> Array:
    drawn = random_state.generator(generator).standard_gamma(array_of(x), dtype="float64")
    above = fw.maximum(drawn, torch.finfo(torch.float64).tiny)
    return (above / fw.sum(above, axis=-1, keepdims=True)).astype(fusewire_of(x.dtype))


@TABLE.value("poisson")
def _poisson(x: torch.Tensor, generator: Any = None) -> Array:
    """Draws NaN for a rate that is not 0 or more: PyTorch's error needs the elements."""
    if not x.is_floating_point():
        raise NotImplementedError(f"\"poisson_{DEVICE}\" not implemented for '{_name_of(x.dtype)}'")
    rates = array_of(x)
    drawn = random_state.generator(generator).poisson(rates).astype(rates.dtype)
    return fw.where(rates >= 0, drawn, nan)


@TABLE.value("binomial")
def _binomial(count: torch.Tensor, prob: torch.Tensor, generator: Any = None) -> Array:
    """Takes counts below 0 and chances outside of 0 to 1 for the nearest ones, as PyTorch does."""
    for name, each in (("count", count), ("prob", prob)):
        if not each.is_floating_point():
            kind = _name_of(each.dtype)
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: {kind}")
    if count.dtype is not prob.dtype:
        raise RuntimeError(f"Found dtype {_name_of(prob.dtype)} but expected {_name_of(count.dtype)}")
    trials, chances = fw.maximum(array_of(count), 0), array_of(prob)
    drawn = random_state.generator(generator).binomial(trials.astype("int64"), fw.clip(chances, 0.0, 1.0))
    return fw.where(fw.isnan(trials + chances), nan, drawn.astype(chances.dtype))


@TABLE.value("native_dropout")
def _dropout(x: torch.Tensor, p: float, train: bool | None) -> tuple[Array, Array]:
    array = array_of(x)
    drawn = random_state.generator().random(tuple(x.shape), "float32")
    if train is False or p == 0:
        return array, drawn >= 0
    is_kept = drawn >= p
    return array * is_kept.astype(array.dtype) * (1 / (1 - p) if p < 1 else 0.0), is_kept


@TABLE.value("multinomial")
def _multinomial(x: torch.Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Array:
    """Draws places of each row by their weights: where one number falls among their sums, or the greatest of races."""
    _check_multinomial(x, num_samples, replacement)
    weights, draw = array_of(x), random_state.generator(generator)
    if replacement:
        ends = fw.cumulative_sum(weights, axis=-1)
        drawn = draw.random((*x.shape[:-1], num_samples), "float32").astype(weights.dtype) * ends[..., -1:]
        ahead = fw.expand_dims(ends, -2) <= fw.expand_dims(drawn, -1)
        return fw.minimum(fw.sum(ahead, axis=-1), x.shape[-1] - 1).astype("int64")
    races = weights / draw.exponential(1.0, tuple(x.shape)).astype(weights.dtype)
    return fw.topk(races, num_samples, axis=-1)[1]


def _check_multinomial(x: torch.Tensor, num_samples: int, replacement: bool) -> None:
    """Raises PyTorch's errors for wrong parameters. What is wrong with the weights is not known without a wait."""
    if not 1 <= x.dim() <= 2:
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not x.dtype.is_floating_point:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {_name_of(x.dtype)}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > x.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")


@TABLE.kernel("rrelu_with_noise")
def _rrelu(
    x: torch.Tensor,
    noise: torch.Tensor,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> torch.Tensor:
    array = array_of(x)
    if not training:
        return tensor_of(fw.where(array < 0, array * ((lower + upper) / 2), array))
    slopes = random_state.generator(generator).random(tuple(x.shape), array.dtype) * (upper - lower) + lower
    factors = fw.where(array <= 0, slopes, 1).astype(array.dtype)
    write(noise, factors)
    return tensor_of(array * factors)


@TABLE.kernel("random_")
def _random(x: torch.Tensor, *, generator: Any = None) -> torch.Tensor:
    largest = _LARGEST_INTEGER.get(x.dtype)
    high = largest + 1 if largest else 2 if x.dtype is torch.bool else torch.iinfo(x.dtype).max + 1
    return _random_between(x, 0, high, generator=generator)


@TABLE.kernel("random_.to")
def _random_below(x: torch.Tensor, high: int, *, generator: Any = None) -> torch.Tensor:
    return _random_between(x, 0, high, generator=generator)


@TABLE.kernel("random_.from")
def _random_between(x: torch.Tensor, low: int, high: int | None, *, generator: Any = None) -> torch.Tensor:
    end = torch.iinfo(x.dtype).max + 1 if high is None else high
    if end <= low:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={end}")
    if not (x.dtype.is_floating_point or x.dtype is torch.bool):
        _check_bounds(low, end - 1, x.dtype)
    return write(x, random_state.generator(generator).integers(low, end, tuple(x.shape), "int64"))


def _check_bounds(least: int, most: int, dtype: torch.dtype) -> None:
    limits = torch.iinfo(dtype)
    if least < limits.min or most > limits.max:
        raise RuntimeError(f"integers from {least} to {most} are out of bounds for {dtype}")


@TABLE.kernel("randperm.generator_out")
def _randperm(n: int, *, generator: Any = None, out: torch.Tensor) -> torch.Tensor:
    if tuple(out.shape) != (n,):
        out.resize_((n,))
    return write(out, random_state.generator(generator).permutation(fw.arange(n, device=session())))


def _name_of(dtype: torch.dtype) -> str:
    """Returns the name that a dtype has in PyTorch's errors, such as "Long"."""
    name: str = torch.empty(0, dtype=dtype, device="cpu").type()
    return name.removeprefix("torch.").removesuffix("Tensor")
