"""Matrices as products of others, and their eigenvalues and singular values."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from fusewire._api.array import Array
from fusewire._api.complex.complex_array import ComplexArray
from fusewire._api.ops.operands import asarray
from fusewire._api.ops.several_results import apply_for_several
from fusewire._errors import ArgumentError
from fusewire._recording.record_op import apply_to_one
from fusewire_protos.ops.catalogue import BY_NAME

Triangle = Literal["L", "U"]


class QRResult(NamedTuple):
    """What `qr` returns: `Q @ R` is the matrix. The columns of `Q` are orthonormal, and `R` is upper triangular."""

    Q: Array
    R: Array


class EighResult(NamedTuple):
    """What `eigh` returns: `x @ v` is `v * eigenvalues` for the columns v of `eigenvectors`."""

    eigenvalues: Array
    eigenvectors: Array


class EigResult(NamedTuple):
    """What `eig` returns: `x @ v` is `v * eigenvalues` for the columns v of `eigenvectors`. Both are complex."""

    eigenvalues: ComplexArray
    eigenvectors: ComplexArray


class SVDResult(NamedTuple):
    """What `svd` returns: `(U * S) @ Vh` is the matrix, if `U` and `Vh` are not full."""

    U: Array
    S: Array
    Vh: Array


def cholesky(x: Any, /, *, upper: bool = False) -> Array:
    """Returns the lower triangular L with L @ L.mH = x, or the upper U with U.mH @ U = x; one triangle of `x` is read.

    `x` holds symmetric or Hermitian positive definite matrices of shape [..., n, n]; others give NaN.
    """
    return apply_to_one(BY_NAME["cholesky"], asarray(x), (upper,))


def qr(x: Any, /, mode: Literal["reduced", "complete", "r"] = "reduced") -> Any:
    """Returns Q of shape [..., m, k] and R of [..., k, n] for matrices [..., m, n]: k is m if `mode` is "complete",
    else the lesser of both. For "r" it returns R alone.
    """
    if mode not in ("reduced", "complete", "r"):
        raise ArgumentError(f"qr has the modes reduced, complete and r, not {mode!r}")
    found = QRResult(*apply_for_several(BY_NAME["qr"], [asarray(x)], (mode == "complete",)))
    return found.R if mode == "r" else found


def eigh(x: Any, /, UPLO: Triangle = "L") -> EighResult:  # noqa: N803 - NumPy's name
    """Returns the eigenvalues [..., n], ascending, and the eigenvectors [..., n, n] of matrices [..., n, n].

    The matrices are symmetric, or Hermitian if they are complex. The lower triangle is read, or the upper one if `UPLO`
    is "U".
    """
    values, vectors = apply_for_several(BY_NAME["eigh"], [asarray(x)], (_is_upper(UPLO),))
    return EighResult(real_of(values), vectors)


def eig(x: Any, /) -> EigResult:
    """Returns the complex eigenvalues [..., n], in any order, and eigenvectors [..., n, n] of matrices [..., n, n].

    NumPy's are real if all of them are. A server whose GPU has a library without it answers by ServerFault.
    """
    given = asarray(x)
    if isinstance(given, ComplexArray):
        return EigResult(*_of_complex(given))
    real, imag, vectors, imag_of_vectors = apply_for_several(BY_NAME["eig"], [given])
    return EigResult(ComplexArray(real, imag), ComplexArray(vectors, imag_of_vectors))


def eigvals(x: Any, /) -> ComplexArray:
    """Returns the complex eigenvalues [..., n], in any order, of square matrices [..., n, n] (see `eig`)."""
    given = asarray(x)
    if isinstance(given, ComplexArray):
        return _of_complex(given)[0]
    return ComplexArray(*apply_for_several(BY_NAME["eigvals"], [given]))


def _of_complex(x: ComplexArray) -> tuple[ComplexArray, ComplexArray]:
    """Returns the eigenvalues and the eigenvectors of complex matrices."""
    real, imag = apply_for_several(BY_NAME["complex_eig"], x.parts)
    side = x.shape[-1]
    vectors = [each[..., side:].reshape(x.shape) for each in (real, imag)]
    return ComplexArray(real[..., :side], imag[..., :side]), ComplexArray(*vectors)


def eigvalsh(x: Any, /, UPLO: Triangle = "L") -> Array:  # noqa: N803
    """Returns the eigenvalues [..., n] of symmetric or Hermitian matrices [..., n, n], ascending."""
    return apply_to_one(BY_NAME["eigvalsh"], asarray(x), (_is_upper(UPLO),))


def _is_upper(triangle: Any) -> bool:
    if triangle not in ("L", "U", "l", "u"):
        raise ArgumentError(f"UPLO is L or U, not {triangle!r}")
    return triangle in ("U", "u")


def svd(x: Any, /, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:  # noqa: FBT001, FBT002 - as NumPy has them
    """Returns U, the singular values S [..., k] in descending order, and Vh of matrices [..., m, n]; k is the lesser.

    U is [..., m, m] and Vh [..., n, n] if `full_matrices`, else [..., m, k] and [..., k, n]. Without `compute_uv` it
    returns S alone. `hermitian` only says that the matrices are symmetric.
    """
    if not compute_uv:
        return svdvals(x)
    u, s, vh = apply_for_several(BY_NAME["svd"], [asarray(x)], (bool(full_matrices),))
    return SVDResult(u, real_of(s), vh)


def real_of(x: Array) -> Array:
    """Returns the real part of complex numbers that have no other."""
    return x.real_part if isinstance(x, ComplexArray) else x


def svdvals(x: Any, /) -> Array:
    """Returns the singular values [..., k] of matrices [..., m, n] in descending order; k is the lesser of m and n."""
    return apply_to_one(BY_NAME["svdvals"], asarray(x), ())
