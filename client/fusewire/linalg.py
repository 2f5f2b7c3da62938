"""Linear algebra, by the names of `numpy.linalg`. Matrices lie along the last two axes; those before them are a batch.

q, r = fw.linalg.qr(x)
w = fw.linalg.solve(x.T @ x, x.T @ y)

A matrix for which an algorithm fails, because it is singular or not positive definite, gives NaN: what a program reads
later says so, and no call waits, so that nothing raises `LinAlgError`, which is NumPy's. Decompositions are computed in
float32 or float64.
"""

from numpy.linalg import LinAlgError  # noqa: F401  # programs name it behind `except`

from fusewire._api.catalogue.catalogued import matmul
from fusewire._api.functions.arrangement.shapes import matrix_transpose
from fusewire._api.functions.products.products import cross, tensordot, vecdot
from fusewire._api.linalg.decompositions import cholesky, eig, eigh, eigvals, eigvalsh, qr, svd, svdvals
from fusewire._api.linalg.equations import (
    cond,
    det,
    inv,
    lstsq,
    matrix_power,
    matrix_rank,
    multi_dot,
    pinv,
    slogdet,
    solve,
    tensorinv,
    tensorsolve,
)
from fusewire._api.linalg.matrices import diagonal, outer, trace
from fusewire._api.linalg.norms import matrix_norm, norm, vector_norm

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vecdot",
    "vector_norm",
]
