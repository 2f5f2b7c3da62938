"""Lists the ops of matrices, and of lines, that an array library computes, as data. `catalogue` lists all ops."""

from __future__ import annotations

from dataclasses import replace

from fusewire_protos.ops.op import Attribute, AttributeKind, Category, Op, ShapeRule
from fusewire_protos.ops.results import ResultsRule
from fusewire_protos.ops.rules import fourier, linear_algebra
from fusewire_protos.ops.rules.dtype_rules import of_lines, of_matrices


def _library(name: str, code: int, operands: int, shape_rule: ShapeRule, summary: str, *attributes: Attribute) -> Op:
    """Returns an op of matrices that has one result."""
    category, is_exact = Category.LIBRARY, False
    return Op(
        name, code, category, operands, operands, attributes, shape_rule, of_matrices, is_exact, summary, core_rank=2
    )


def _library_of_several(name: str, code: int, results: ResultsRule, summary: str, *attributes: Attribute) -> Op:
    """Returns an op of matrices that computes several arrays. Its result holds them."""
    return replace(_library(name, code, 1, _packed(results), summary, *attributes), results=results)


def _packed(results: ResultsRule) -> ShapeRule:
    return lambda operands, attributes: results(operands, attributes).packed


def _library_of_complex(name: str, code: int, shape_rule: ShapeRule, summary: str, *attributes: Attribute) -> Op:
    """Returns an op of complex matrices, of two operands: the real and the imaginary parts. It computes both parts."""
    of_several = _library_of_several(name, code, linear_algebra.of_complex(shape_rule), summary, *attributes)
    return replace(of_several, least_operands=2, most_operands=2)


def _transform(name: str, code: int, operands: int, shape_rule: ShapeRule, summary: str, *attributes: Attribute) -> Op:
    """Returns an op of lines along the last axis that has one result."""
    return replace(_library(name, code, operands, shape_rule, summary, *attributes), dtype_rule=of_lines, core_rank=1)


def _transform_of_several(
    name: str, code: int, operands: int, results: ResultsRule, summary: str, *attributes: Attribute
) -> Op:
    """Returns an op of lines that computes several arrays."""
    return replace(_transform(name, code, operands, _packed(results), summary, *attributes), results=results)


_UPPER = Attribute("upper", AttributeKind.FLAG, False)
_COMPLETE = Attribute("complete", AttributeKind.FLAG, False)
_FULL = Attribute("full", AttributeKind.FLAG, False)

_LIBRARY = (
    _library("cholesky", 150, 1, linear_algebra.same, "The triangular Cholesky factors of matrices.", _UPPER),
    _library("solve", 151, 2, linear_algebra.solution, "The solutions of linear equations with several right sides."),
    _library("inv", 152, 1, linear_algebra.same, "The inverses of matrices."),
    _library("det", 153, 1, linear_algebra.number, "The determinants of matrices."),
    _library_of_several(
        "slogdet", 154, linear_algebra.sign_and_logarithm, "The signs and the logarithms of determinants."
    ),
    _library_of_several(
        "qr",
        155,
        linear_algebra.orthogonal_and_triangular,
        "The QR decompositions of matrices.",
        _COMPLETE,
    ),
    _library_of_several(
        "eigh",
        156,
        linear_algebra.values_and_vectors,
        "The eigenvalues of symmetric matrices in ascending order, and the eigenvectors; one triangle is read.",
        _UPPER,
    ),
    _library("eigvalsh", 157, 1, linear_algebra.side, "The eigenvalues of symmetric matrices.", _UPPER),
    _library_of_several(
        "svd",
        158,
        linear_algebra.singular_values_and_vectors,
        "The singular value decompositions of matrices.",
        _FULL,
    ),
    _library("svdvals", 159, 1, linear_algebra.diagonal, "The singular values of matrices, in descending order."),
    _library_of_several(
        "eig",
        163,
        linear_algebra.complex_values_and_vectors,
        "The eigenvalues and the eigenvectors of square matrices, both parts of each.",
    ),
    _library_of_several(
        "eigvals", 164, linear_algebra.complex_values, "Both parts of the eigenvalues of square matrices."
    ),
)

_LIBRARY_OF_COMPLEX = (
    _library_of_complex(
        "complex_cholesky", 165, linear_algebra.same, "The triangular Cholesky factors of complex matrices.", _UPPER
    ),
    _library_of_complex(
        "complex_slogdet",
        166,
        _packed(linear_algebra.sign_and_logarithm),
        "The signs and the logarithms of determinants of complex matrices.",
    ),
    _library_of_complex(
        "complex_qr",
        167,
        _packed(linear_algebra.orthogonal_and_triangular),
        "The QR decompositions of complex matrices.",
        _COMPLETE,
    ),
    _library_of_complex(
        "complex_eigh",
        168,
        _packed(linear_algebra.values_and_vectors),
        "The eigenvalues of Hermitian matrices in ascending order, and the eigenvectors; one triangle is read.",
        _UPPER,
    ),
    _library_of_complex(
        "complex_svd",
        169,
        _packed(linear_algebra.singular_values_and_vectors),
        "The singular value decompositions of complex matrices.",
        _FULL,
    ),
    _library_of_complex(
        "complex_eig",
        170,
        _packed(linear_algebra.values_and_vectors),
        "The eigenvalues and the eigenvectors of complex square matrices.",
    ),
)

_TRANSFORMS = (
    _transform_of_several(
        "fft",
        160,
        2,
        fourier.of_complex,
        "The discrete Fourier transforms of complex lines, with exp(+2πi…) if `inverse`; neither is scaled.",
        Attribute("inverse", AttributeKind.FLAG, False),
    ),
    _transform_of_several(
        "rfft", 161, 1, fourier.of_real, "The transforms of real lines at the frequencies that are not negative."
    ),
    _transform(
        "irfft",
        162,
        2,
        fourier.to_real,
        "The real lines, of even length or `odd`, whose transforms these are, times their length.",
        Attribute("odd", AttributeKind.FLAG, False),
    ),
)

LIBRARY_OPS: tuple[Op, ...] = _LIBRARY + _LIBRARY_OF_COMPLEX + _TRANSFORMS
