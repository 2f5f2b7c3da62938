"""The types of the functions in `catalogued`. `make stubs` writes this file from the catalogue of ops."""

from typing import Any

from fusewire._api.array import Array
from fusewire._api.ops.operations import Axis

__all__ = [
    "add",
    "subtract",
    "multiply",
    "divide",
    "floor_divide",
    "remainder",
    "power",
    "minimum",
    "maximum",
    "atan2",
    "equal",
    "not_equal",
    "less",
    "less_equal",
    "greater",
    "greater_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_right_shift",
    "gcd",
    "isnan",
    "isinf",
    "isfinite",
    "negative",
    "abs",
    "sign",
    "square",
    "floor",
    "ceil",
    "trunc",
    "sqrt",
    "rsqrt",
    "exp",
    "expm1",
    "log",
    "log1p",
    "exp2",
    "log2",
    "log10",
    "sin",
    "cos",
    "tan",
    "tanh",
    "sigmoid",
    "relu",
    "gelu",
    "silu",
    "softplus",
    "erf",
    "min",
    "max",
    "any",
    "all",
    "logsumexp",
    "softmax",
    "log_softmax",
    "matmul",
]

def add(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """`x1` + `x2`; of booleans, whether either is true."""

def subtract(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """`x1` − `x2`."""

def multiply(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """`x1` · `x2`; of booleans, whether both are true."""

def divide(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """`x1` / `x2`, a float; integers are divided in float64."""

def floor_divide(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """`x1` / `x2` rounded down; of integers by 0, 0."""

def remainder(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The remainder of floor_divide, with the sign of `x2`; of integers by 0, 0."""

def power(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """`x1` to the power of `x2`. For integers and a negative power in an array: 0, except for the bases 1 and −1."""

def minimum(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The lesser of two elements; NaN if either is NaN."""

def maximum(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The greater of two elements; NaN if either is NaN."""

def atan2(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The angle of the point (`x2`, `x1`) in radians, from −π to π."""

def equal(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """Whether `x1` is equal to `x2`."""

def not_equal(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """Whether `x1` differs from `x2`."""

def less(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """Whether `x1` is less than `x2`."""

def less_equal(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """Whether `x1` is less than `x2` or equal to it."""

def greater(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """Whether `x1` is greater than `x2`."""

def greater_equal(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """Whether `x1` is greater than `x2` or equal to it."""

def logical_and(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """Whether both are true; numbers other than 0 are true."""

def logical_or(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """Whether either is true; numbers other than 0 are true."""

def logical_xor(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """Whether exactly one is true; numbers other than 0 are true."""

def logical_not(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """Whether `x` is false or 0."""

def bitwise_and(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The bits that are set in both integers."""

def bitwise_or(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The bits that are set in either integer."""

def bitwise_xor(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The bits that are set in exactly one of two integers."""

def bitwise_invert(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The bits that are not set; of a boolean, whether it is false."""

def bitwise_left_shift(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """`x1` · 2^`x2`, less the bits shifted out."""

def bitwise_right_shift(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """`x1` / 2^`x2` rounded down."""

def gcd(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The greatest common divisor of two integers, without sign; of 0 and 0, 0."""

def isnan(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """Whether `x` is NaN."""

def isinf(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """Whether `x` is infinite."""

def isfinite(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """Whether `x` is neither infinite nor NaN."""

def negative(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """−`x`."""

def abs(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """`x` without its sign; the least integer stays negative."""

def sign(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """1, 0 or −1: the sign of `x`; of NaN, NaN."""

def square(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """`x` · `x`."""

def floor(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The greatest whole number that is not above `x`."""

def ceil(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The least whole number that is not below `x`."""

def trunc(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """`x` without its fraction."""

def sqrt(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The square root; NaN below 0."""

def rsqrt(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """1 divided by the square root."""

def exp(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """e to the power of `x`."""

def expm1(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """e to the power of `x`, minus 1; accurate near 0."""

def log(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The natural logarithm; NaN below 0."""

def log1p(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The natural logarithm of 1 + `x`; accurate near 0."""

def exp2(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """2 to the power of `x`."""

def log2(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The logarithm to base 2; NaN below 0."""

def log10(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The logarithm to base 10; NaN below 0."""

def sin(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The sine of an angle in radians."""

def cos(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The cosine of an angle in radians."""

def tan(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The tangent of an angle in radians."""

def tanh(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The hyperbolic tangent."""

def sigmoid(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """1 / (1 + exp(−`x`))."""

def relu(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """`x` where it is positive, else 0."""

def gelu(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """`x` · Φ(`x`), Φ the normal distribution function, by erf."""

def silu(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """`x` times its sigmoid."""

def softplus(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The logarithm of 1 + exp(`x`)."""

def erf(x: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The error function."""

def min(x: Any, /, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = True, out: Any = None) -> Array:
    """The least element along `axis`; NaN if any element is."""

def max(x: Any, /, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = True, out: Any = None) -> Array:
    """The greatest element along `axis`; NaN if any element is."""

def any(x: Any, /, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = True, out: Any = None) -> Array:
    """Whether any element along `axis` is true or not 0."""

def all(x: Any, /, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = True, out: Any = None) -> Array:
    """Whether every element along `axis` is true or not 0."""

def logsumexp(x: Any, /, axis: Axis = None, *, keepdims: bool = False) -> Array:
    """The logarithm of the sum of exponentials along `axis`, without overflow; of no elements, −∞."""

def softmax(x: Any, /, axis: Axis = -1) -> Array:
    """exp(`x`) / its sum along `axis`, without overflow."""

def log_softmax(x: Any, /, axis: Axis = -1) -> Array:
    """The logarithm of softmax, without underflow."""

def matmul(x1: Any, x2: Any, /, *, out: Any = None, where: Any = True) -> Array:
    """The matrix product; vectors and batches as in NumPy."""
