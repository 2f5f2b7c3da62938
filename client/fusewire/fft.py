"""Discrete Fourier transforms, by the names of `numpy.fft`.

spectrum = fw.fft.rfft(signal)
smooth = fw.fft.irfft(fw.where(fw.fft.rfftfreq(signal.size) < 0.1, spectrum, 0), signal.size)

Complex results have the dtype complex64 for float32 and 16-bit floats, else complex128.
"""

from fusewire._api.fourier.frequencies import fftfreq, fftshift, ifftshift, rfftfreq
from fusewire._api.fourier.one_axis import fft, hfft, ifft, ihfft, irfft, rfft
from fusewire._api.fourier.several_axes import fft2, fftn, ifft2, ifftn, irfft2, irfftn, rfft2, rfftn

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]
