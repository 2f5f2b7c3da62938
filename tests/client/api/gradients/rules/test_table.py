"""Each op of the catalogue has a rule that is tested, or is said to have no derivative."""

from __future__ import annotations

from fusewire._api.gradients.rules.table import RULES, WITHOUT_DERIVATIVE
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME, OPS
from tests.client.api.gradients.rules import (
    test_fourier,
    test_linear_algebra,
    test_lines,
    test_moves,
    test_pointwise,
    test_products,
    test_reductions,
)

_TESTS = (test_fourier, test_linear_algebra, test_lines, test_moves, test_pointwise, test_products, test_reductions)


def test_each_op_has_a_rule_or_no_derivative() -> None:
    names = {op.name for op in OPS}
    assert names - RULES.keys() - WITHOUT_DERIVATIVE == set(), "a new op needs a rule, or a line in WITHOUT_DERIVATIVE"
    assert (RULES.keys() | WITHOUT_DERIVATIVE) - names == set()
    assert RULES.keys() & WITHOUT_DERIVATIVE == set()


def test_each_rule_is_compared_with_differences() -> None:
    tested = {name for each in _TESTS for name in each.CASES}
    assert tested == RULES.keys()


def test_a_rule_has_a_function_for_each_operand() -> None:
    for name, rule in RULES.items():
        if rule.pulls:
            assert len(rule.pulls) == BY_NAME[name].most_operands, name
        assert [bool(rule.pulls), rule.adding is not None, rule.pull_each is not None].count(True) == 1, name


def test_an_op_of_one_float_that_is_no_whole_number_has_a_rule() -> None:
    """Ops whose result of a float is a float change with it, unless they round."""
    rounding = {"floor", "ceil", "trunc", "round", "sign"}
    of_one = [op for op in OPS if op.least_operands == op.most_operands == 1 and not op.attributes]
    floating = {op.name for op in of_one if op.name not in ("normal_of_bits", "exponential_of_bits") and _is_float(op)}
    assert floating - RULES.keys() == rounding


def _is_float(op: object) -> bool:
    try:
        return bool(op.dtype_rule((dtypes.float64,), ()).result.is_floating)  # type: ignore[attr-defined]
    except TypeError:  # DtypeError: the op takes no floats
        return False
