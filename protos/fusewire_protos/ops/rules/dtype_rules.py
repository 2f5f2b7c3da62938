"""The dtypes that ops compute in: rules, which entries name, of the operands' dtypes and the attributes.

A rule raises DtypeError for operands that the op does not take.
"""

from __future__ import annotations

from fusewire_protos.errors import DtypeError
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Attributes, DtypeRule, DtypeSignature
from fusewire_protos.ops.rules import fourier, linear_algebra


def _all(dtype: DType, operands: tuple[DType, ...]) -> tuple[DType, ...]:
    return (dtype,) * len(operands)


def promoting(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    common = dtypes.promote_all(operands)
    return DtypeSignature(_all(common, operands), common)


def numeric(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Does the same as `promoting`, but raises DtypeError for booleans, for which the op is not defined."""
    common = dtypes.promote_all(operands)
    if common.is_boolean:
        raise DtypeError("not defined for bool; cast with astype first")
    return DtypeSignature(_all(common, operands), common)


def dividing(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    common = dtypes.quotient(dtypes.promote_all(operands))
    return DtypeSignature(_all(common, operands), common)


def floating(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Is the rule of functions such as exp. Of several integers each is a float, as NumPy finds the dtype."""
    has_float = any(dtype.is_floating for dtype in operands)
    common = dtypes.promote_all(operands if has_float else map(dtypes.to_floating, operands))
    return DtypeSignature(_all(common, operands), common)


def counting(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Does the same as `promoting`, but turns booleans into int8."""
    common = dtypes.promote_all(operands)
    common = dtypes.int8 if common.is_boolean else common
    return DtypeSignature(_all(common, operands), common)


def comparing(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    common = dtypes.promote_all(operands)
    return DtypeSignature(_all(common, operands), dtypes.bool_)


def testing(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Is the rule of isnan, isinf and isfinite: the operand may have any dtype, and the result is boolean."""
    return DtypeSignature(operands, dtypes.bool_)


def logical(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    return DtypeSignature(_all(dtypes.bool_, operands), dtypes.bool_)


def bitwise(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    common = dtypes.promote_all(operands)
    if common.is_floating:
        raise DtypeError(f"not defined for {common.name}; only for bool and integers")
    return DtypeSignature(_all(common, operands), common)


def shifting(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    bitwise(operands, attributes)
    return counting(operands, attributes)


def integral(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    bitwise(operands, attributes)
    return numeric(operands, attributes)


def selecting(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    common = dtypes.promote(operands[1], operands[2])
    return DtypeSignature((dtypes.bool_, common, common), common)


def casting(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    return DtypeSignature(operands, dtypes.from_code(attributes[0]))


def accumulating(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Is the rule of sum and prod: booleans and integers are accumulated in int64, unsigned integers in uint64."""
    (dtype,) = operands
    if not dtype.is_floating:
        dtype = dtypes.uint64 if dtype in dtypes.UNSIGNED else dtypes.int64
    return DtypeSignature((dtype,), dtype)


def at_places(rule: DtypeRule) -> DtypeRule:
    """Returns the rule of ops whose second operand is places: integers, which are cast to int64."""

    def of_first(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
        data, places = operands
        if not places.is_integer:
            raise DtypeError(f"places have dtype {places.name}, not an integer one")
        computed = rule((data,), attributes)
        return DtypeSignature((*computed.operands, dtypes.int64), computed.result)

    return of_first


def indexing(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    return DtypeSignature(operands, dtypes.int64)


def multiplying(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    common = dtypes.promote_all(operands)
    if common.is_boolean:
        raise DtypeError("matmul is not defined for bool; cast with astype first")
    return DtypeSignature((common, common), common)


def gathering(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    data, indices = operands
    if not indices.is_integer:
        raise DtypeError(f"indices have dtype {indices.name}, not an integer one")
    return DtypeSignature((data, dtypes.int64), data)


def encoding(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    if not operands[0].is_integer:
        raise DtypeError(f"one_hot takes integers, not {operands[0].name}")
    return DtypeSignature((dtypes.int64,), dtypes.from_code(attributes[1]))


def replacing(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Is the rule of assignments: the assigned value is cast to the dtype of the array that receives the value."""
    return DtypeSignature(_all(operands[0], operands), operands[0])


def from_bits(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Is the rule of the ops that make float64 numbers of random bits, which are uint64."""
    if any(dtype is not dtypes.uint64 for dtype in operands):
        raise DtypeError(f"random bits are uint64, not {', '.join(dtype.name for dtype in operands)}")
    return DtypeSignature(operands, dtypes.float64)


def seen_as_integers(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Is the rule of bits_of_float: each float dtype has an unsigned integer dtype of its size."""
    if not operands[0].is_floating:
        raise DtypeError(f"not defined for {operands[0].name}; only for floats")
    return DtypeSignature(operands, dtypes.BY_NAME[f"uint{8 * operands[0].itemsize_bytes}"])


def seen_as_floats(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Is the rule of float_of_bits. Of 16 bits it makes a float16."""
    if operands[0] not in (dtypes.uint16, dtypes.uint32, dtypes.uint64):
        raise DtypeError(f"not defined for {operands[0].name}; only for uint16, uint32 and uint64")
    return DtypeSignature(operands, dtypes.BY_NAME[f"float{8 * operands[0].itemsize_bytes}"])


def drawn(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Is the rule of random_bits: integers are cast to uint64, negative ones wrap around."""
    if not all(dtype.is_integer for dtype in operands):
        raise DtypeError("counters and keys are integers")
    return DtypeSignature(_all(dtypes.uint64, operands), dtypes.uint64)


def of_matrices(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    dtype = linear_algebra.dtype_of(operands)
    return DtypeSignature(_all(dtype, operands), dtype)


def of_lines(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Is the rule of Fourier transforms."""
    dtype = fourier.dtype_of(operands)
    return DtypeSignature(_all(dtype, operands), dtype)


def created(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Is the rule of most creating ops: the last attribute is the dtype, and scalars are cast to this dtype."""
    dtype = dtypes.from_code(attributes[-1])
    return DtypeSignature(_all(dtype, operands), dtype)


def spaced(operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    """Is the rule of linspace: points are computed in float64, and the last attribute is the dtype of the result."""
    return DtypeSignature(_all(dtypes.float64, operands), dtypes.from_code(attributes[-1]))
