"""Draws the Mandelbrot set: a loop of whole-image arithmetic, which the server fuses into one kernel."""

from __future__ import annotations

import sys
from typing import Any

ITERATIONS = 60
ESCAPED = 4.0  # the square of the radius beyond which a point never returns


def counts(xp: Any, width: int, height: int, iterations: int = ITERATIONS) -> Any:
    """Returns for each point of the image (height, width) the iterations before it escapes, as float64."""
    re = xp.linspace(-2.2, 0.8, width)[None, :]
    im = xp.linspace(-1.2, 1.2, height)[:, None]
    x = y = within = xp.zeros((height, width))
    for _ in range(iterations):
        x, y = xp.clip(x * x - y * y + re, -1e6, 1e6), xp.clip(2.0 * x * y + im, -1e6, 1e6)  # stay finite
        within = within + (x * x + y * y <= ESCAPED)
    return within


if __name__ == "__main__":
    import fusewire as fw

    with fw.connect():
        image = counts(fw, 1200, 900).numpy()
    if sys.argv[1:]:
        from matplotlib import image as files

        files.imsave(sys.argv[1], image, cmap="magma")
    else:
        for line in image[::36, ::15]:
            print("".join(" .:-=+*#%@"[min(int(count) // 6, 9)] for count in line))
