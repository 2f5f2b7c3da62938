"""Takes the noise out of a signal in its frequencies, and finds the notes that it consists of.

`python examples/fft_filter.py signal.png` draws the signal before and after, if matplotlib is installed.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

SECONDS, RATE_HZ = 4, 1024
NOTES_HZ = (3.0, 7.5, 20.0)
HIGHEST_HZ = 25.0


def signals(seed: int = 0) -> tuple[Any, Any]:
    """Returns a signal and the same with noise, as NumPy arrays."""
    times_s = np.arange(SECONDS * RATE_HZ) / RATE_HZ
    clean = sum(np.sin(2 * np.pi * note * times_s) / number for number, note in enumerate(NOTES_HZ, 1))
    return clean, clean + np.random.default_rng(seed).standard_normal(len(times_s))


def filtered(xp: Any, noisy: Any) -> Any:
    """Returns the signal without the frequencies above the highest note."""
    count = noisy.shape[-1]
    is_kept = xp.fft.rfftfreq(count, 1 / RATE_HZ) <= HIGHEST_HZ
    return xp.fft.irfft(xp.where(is_kept, xp.fft.rfft(noisy), 0), count)


def notes(xp: Any, signal: Any, count: int) -> Any:
    """Returns the strongest frequencies in Hz, in ascending order."""
    strengths = xp.abs(xp.fft.rfft(signal))
    places = xp.argsort(strengths)[-count:]
    return xp.sort(xp.fft.rfftfreq(signal.shape[-1], 1 / RATE_HZ)[places])


def draw(path: str, noisy: Any, smooth: Any) -> None:
    """Draws the first second of both signals. Needs matplotlib."""
    import matplotlib.pyplot as plt  # noqa: PLC0415 - nothing else needs it

    plt.plot(noisy[:RATE_HZ], color="lightgrey")
    plt.plot(smooth[:RATE_HZ], color="black")
    plt.savefig(path)


if __name__ == "__main__":
    import fusewire as fw

    with fw.connect():
        clean, noisy = signals()
        smooth = filtered(fw, fw.asarray(noisy))
        print("notes of", *notes(fw, smooth, len(NOTES_HZ)).numpy(), "Hz")
        print("noise of", np.std(noisy - clean), "became", np.std(smooth.numpy() - clean))
        if len(sys.argv) > 1:
            draw(sys.argv[1], noisy, smooth.numpy())
