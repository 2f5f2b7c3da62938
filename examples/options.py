"""Prices options by the formula of Black and Scholes, and by simulation with random numbers of the server.

Source: F. Black and M. Scholes, The pricing of options and corporate liabilities, Journal of Political Economy 81
(1973).
"""

from __future__ import annotations

from typing import Any

RATE, VOLATILITY, YEARS = 0.03, 0.25, 1.0


def _below(xp: Any, x: Any) -> Any:
    """Returns the normal distribution function, by the logistic approximation of E. Page (1977)."""
    return 1.0 / (1.0 + xp.exp(-(0.07056 * x**3 + 1.5976 * x)))


def formula(xp: Any, price: Any, strike: Any) -> Any:
    """Returns the value of calls for prices and strikes, arrays that broadcast."""
    spread = VOLATILITY * YEARS**0.5
    first = (xp.log(price / strike) + (RATE + VOLATILITY**2 / 2) * YEARS) / spread
    return price * _below(xp, first) - strike * xp.exp(-RATE * YEARS + 0.0 * strike) * _below(xp, first - spread)


def simulated(xp: Any, price: float, strikes: Any, normal: Any) -> Any:
    """Returns the values of calls for strikes (k,), by the mean over paths with the normal numbers (n,)."""
    ends = price * xp.exp((RATE - VOLATILITY**2 / 2) * YEARS + VOLATILITY * YEARS**0.5 * normal)
    gains = xp.maximum(ends[None, :] - strikes[:, None], 0.0)
    return gains.mean(axis=1) * 2.718281828459045 ** (-RATE * YEARS)


if __name__ == "__main__":
    import fusewire as fw

    with fw.connect():
        strikes = fw.linspace(80.0, 120.0, 9)
        normal = fw.random.default_rng(0).standard_normal(1_000_000)
        print("formula:  ", formula(fw, 100.0, strikes).numpy().round(2))
        print("simulated:", simulated(fw, 100.0, strikes, normal).numpy().round(2))
