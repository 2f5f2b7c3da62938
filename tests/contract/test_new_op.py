"""A new op is an entry of the catalogue, a body and a twin, whether it has attributes or not, and users have it.

The entry of a reduction is its body too.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import HANGS_S

_ROOT = Path(__file__).parents[2]
_SOURCE_ROOTS = ("protos", "kernels", "server", "client")
_TESTS = (
    "tests/contract/test_every_op.py",
    "tests/kernels/codegen/test_expressions.py",
    "tests/kernels/ops/test_reference.py",
    "tests/kernels/unfused/test_steps.py",
    "tests/protos/ops/test_catalogue.py",
    "tests/test_tolerances.py",
)

_CATALOGUE = "protos/fusewire_protos/ops/catalogue.py"
_BODIES = "kernels/fusewire_kernels/ops/bodies.py"
_EXPAND = "kernels/fusewire_kernels/ops/composites.py"
_VIEWS = "kernels/fusewire_kernels/graph/views.py"
_RULES_OF_TWINS = "kernels/fusewire_kernels/ops/twin_rules.py"
_MOVE_TWINS = "kernels/fusewire_kernels/ops/move_twins.py"
_ROUNDINGS = "tests/roundings.py"

# Each: the file, how a line of it begins, and what goes before that line.
_EDITS = (
    # ---- ops of elements: without attributes, with a float, with an integer ----
    (
        _CATALOGUE,
        '    _pointwise("erf", ',
        """\
    _pointwise("mix", 199, 3, floating, "`x1` + `x3` · (`x2` − `x1`).", exact=True),
    _pointwise("leaky_relu", 198, 1, floating, "`x` · `slope` below 0.", _SLOPE, exact=True),
    _pointwise("add_scaled", 197, 2, numeric, "`x1` + `x2` · `times`.", _TIMES, exact=True),
""",
    ),
    (
        _CATALOGUE,
        "_POINTWISE = (",
        """\
_SLOPE = Attribute("slope", AttributeKind.FLOAT, 0.1)
_TIMES = Attribute("times", AttributeKind.INTEGER)
""",
    ),
    (
        _BODIES,
        '    "erf": ',
        """\
    "mix": Body("{0} + {2} * ({1} - {0})"),
    "leaky_relu": Body("{0} < 0 ? {0} * {1} : {0}"),
    "add_scaled": Body("{0} + {1} * {2}", "fw_add_{t}({0}, fw_multiply_{t}({1}, {2}))"),
""",
    ),
    (
        _RULES_OF_TWINS,
        '    "erf": ',
        """\
    "mix": _Computed(lambda library, a, b, share: a + share * (b - a)),
    "leaky_relu": _Computed(lambda library, x, slope: library.where(x < 0, x * slope, x)),
    "add_scaled": _Computed(lambda library, a, b, times: a + b * times),
""",
    ),
    # ---- reductions: by integers, by rounded floats, and to an element that is in no other array ----
    (
        _CATALOGUE,
        "    _reduction(ARGMIN, ",
        """\
    _reduction(Reduction("join_bits", 0, "bitwise_or"), 194, bitwise, "The bits of any element.", exact=True),
    _reduction(Reduction("collect", 0, "add"), 193, floating, "The elements, one added to another.", exact=False),
    _reduction(Reduction("peak", Extreme.LEAST, "maximum"), 192, numeric, "The highest element.", exact=False),
""",
    ),
    (
        _CATALOGUE,
        "from fusewire_protos.ops.shapes import Region",
        "from fusewire_protos.ops.reductions import Extreme\n",
    ),
    (
        _RULES_OF_TWINS,
        '    "any": _reducing',
        """\
    "join_bits": _reducing(lambda library, rows: library.bitwise_or.reduce(rows, axis=1)),
    "collect": _accumulating(_row_reduction("sum")),
    "peak": _reducing(_row_reduction("max")),
""",
    ),
    # ---- a scan ----
    (
        _CATALOGUE,
        '    _scan("cumulative_max", ',
        '    _scan("so_far", 191, ANY, logical, "Whether any element up to here is true.", exact=True),\n',
    ),
    (
        _RULES_OF_TWINS,
        '    "cumulative_max": ',
        '    "so_far": _running(lambda library, a, b: library.logical_or(a, b)),\n',
    ),
    # ---- a composite with axes and a float ----
    (
        _CATALOGUE,
        "    # The second operand of layer_norm",
        """\
    _composite("rms_norm", 196, 1, (*_ALONG, _EPSILON), along_axes, floating, "`x` over its root mean square."),
""",
    ),
    (_CATALOGUE, "_COMPOSITES = (", '_EPSILON = Attribute("epsilon", AttributeKind.FLOAT, 1e-06)\n'),
    (
        _EXPAND,
        "_Formula = ",
        """\
def _rms_norm(sketch, operands):
    array, epsilon = operands
    squares = sketch.mean(sketch.apply("square", array))
    return sketch.apply("divide", array, sketch.apply("sqrt", sketch.apply("add", squares, epsilon)))
""",
    ),
    (_EXPAND, '    "layer_norm": ', '    "rms_norm": _rms_norm,\n'),
    (
        _RULES_OF_TWINS,
        "# ---- products ----",
        """\
def _rms_norm(library, rows, epsilon):
    return rows / library.sqrt(_mean(library, rows * rows) + epsilon)[:, None]
""",
    ),
    (_RULES_OF_TWINS, '    "layer_norm": ', '    "rms_norm": _normalising(_rms_norm),\n'),
    (_ROUNDINGS, '    "layer_norm": ', '    "rms_norm": _of_rms_norm,\n'),
    (
        _ROUNDINGS,
        "_ERRORS: ",
        """\
def _of_rms_norm(rows, epsilon):
    squares = rows.total(rows.array * rows.array) / rows.length
    sums = np.abs(squares + epsilon)
    error = (rows.sum_error + _FEW_STEPS * rows.epsilon) * (squares + np.abs(epsilon)) + rows.least
    return np.where(error < sums / 2, error / sums * np.abs(rows.array) / np.sqrt(sums), np.inf)
""",
    ),
    # ---- a view with a length ----
    (
        _CATALOGUE,
        "_MOVES = (",
        """\
def _repeat(operands, attributes):
    return (*attributes, *operands[0])

_COUNT = (Attribute("count", AttributeKind.DIM),)
_VIEWS += (Op("repeated", 195, Category.VIEW, 1, 1, _COUNT, _repeat, promoting, True, "Many of `x`."),)
""",
    ),
    (
        _VIEWS,
        '    "transpose": ',
        '    "repeated": lambda layout, count: broadcast_to(layout, (count, *layout.shape)),\n',
    ),
    (
        _MOVE_TWINS,
        "TWINS: ",
        """\
def _repeated(library, operands, attributes, starts):
    return library.broadcast_to(operands[0], (*attributes, *operands[0].shape))
""",
    ),
    (_MOVE_TWINS, '    "transpose": ', '    "repeated": _repeated,\n'),
)
_NAMES = ("mix", "leaky_relu", "add_scaled", "join_bits", "collect", "peak", "so_far", "rms_norm", "repeated")

# Run by a Python that finds the copy: uses the ops by their names, alone and between others, in a loop and op by op.
_USER = """
import numpy as np
import fusewire as fw
from fusewire._api.catalogue import stub as _stub
from fusewire._api.catalogue.op_functions import functions_of
from fusewire.testing import serve_subprocess
from fusewire_kernels.ops.reference import twin
from fusewire_protos.ops.catalogue import BY_NAME, OPS

DECLARED = (
    "mix(x1: Any, x2: Any, x3: Any, /)",
    "leaky_relu(x: Any, /, slope: float = 0.1)",
    "add_scaled(x1: Any, x2: Any, /, times: int)",
    "rms_norm(x: Any, /, axis: Axis = -1, epsilon: float = 1e-06)",
    "repeated(x: Any, /, count: int)",
    "join_bits(x: Any, /, axis: Axis = None, *, keepdims: bool = False, initial: Any = None, where: Any = True)",
)
stub = _stub.stub_of(functions_of(OPS))
assert [line for line in DECLARED if f"def {line} -> Array:" not in stub] == []
assert fw.mix.__doc__ == "`x1` + `x3` · (`x2` − `x1`)."


def expected(name, operands, attributes=()):
    return twin(BY_NAME[name])(np, [np.asarray(operand) for operand in operands], attributes, ())


def refused(error, function, *given, **named):
    try:
        function(*given, **named)
    except error as refusal:
        return str(refusal)
    raise AssertionError(f"{given} {named} were taken")


a, b = np.linspace(-2, 2, 100, dtype=np.float32), np.linspace(3, 5, 100, dtype=np.float32)
share = np.float32(0.25)
with serve_subprocess("cpu") as server, fw.connect(server.grpc) as session:
    x, y = session.array(a), session.array(b)
    np.testing.assert_allclose(fw.mix(x, y, 0.25).numpy(), expected("mix", [a, b, share]), rtol=1e-5, atol=1e-6)
    for slope in (0.1, 0.3, -0.0):
        np.testing.assert_array_equal(fw.leaky_relu(x, slope).numpy(), expected("leaky_relu", [a], (slope,)))
    np.testing.assert_array_equal(fw.leaky_relu(x).numpy(), fw.leaky_relu(x, slope=0.1).numpy())
    np.testing.assert_array_equal(fw.add_scaled(x, y, times=-2).numpy(), expected("add_scaled", [a, b], (-2,)))
    np.testing.assert_array_equal(fw.add_scaled(x, 3, 5).numpy(), expected("add_scaled", [a, np.float32(3)], (5,)))
    np.testing.assert_allclose(fw.rms_norm(x).numpy(), expected("rms_norm", [a], ((0,), 1e-6)), rtol=1e-5)
    np.testing.assert_array_equal((fw.repeated(x, 3) + y).numpy(), expected("repeated", [a], (3,)) + b)
    bits = np.arange(300, dtype=np.int16).reshape(3, 100)
    for axes, shape in (((0,), (100,)), ((1,), (3, 1)), ((0, 1), ())):
        joined = fw.join_bits(fw.abs(session.array(-bits)), axis=axes, keepdims=bool(shape) and axes == (1,)).numpy()
        np.testing.assert_array_equal(joined, expected("join_bits", [bits], (axes, False)).reshape(shape))
    assert fw.join_bits(session.array(bits[:0]), axis=0).numpy().tolist() == [0] * 100
    many = np.linspace(-1, 2, 70_001, dtype=np.float32)  # in two steps
    np.testing.assert_allclose(fw.collect(session.array(many) * 2.0).numpy(), 2 * many.sum(dtype=float), rtol=1e-5)
    assert float(fw.peak(session.array(many))) == 2.0
    assert "no identity" in refused(fw.ShapeError, fw.peak, session.array(many[:0]))
    assert refused(TypeError, fw.leaky_relu, x, "0.1") == "leaky_relu: slope: a number is required, not str"
    assert "leaky_relu: slope = nan is not a finite number" in refused(fw.ArgumentError, fw.leaky_relu, x, np.nan)
    assert "times" in refused(TypeError, fw.add_scaled, x, y)
    looped = x
    for _ in range(64):
        looped = fw.leaky_relu(fw.mix(looped, y, 0.25) - 4.0, 0.3)
    looped = looped.numpy()
for _ in range(64):
    a = expected("leaky_relu", [expected("mix", [a, b, share]) - np.float32(4)], (0.3,))
np.testing.assert_allclose(looped, a, rtol=1e-5, atol=1e-6)
print("used")
"""

# Likewise: the kernels that the ops are fused into, and what NVRTC says of their text.
_KERNELS = """
import sys
from pathlib import Path
from fusewire_kernels.build import build_plan
from fusewire_kernels.compile.cuda_compiler import CudaCompiler
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.errors import ConfigurationError
from fusewire_protos.programs.program import ProgramOp, build
from fusewire_protos.programs.codec import decode, encode
from fusewire_protos.programs.limits import ProgramLimits
from fusewire_protos.ops.shapes import Spec


def program_of(slope, times, dtype):
    loop = []
    for first in range(2, 8, 2):
        loop += [ProgramOp(BY_NAME["leaky_relu"], (first - 1,), (slope,))]
        loop += [ProgramOp(BY_NAME["add_scaled"], (first, 0), (times,))]
    return build([Spec(dtype, (33,)), Spec(dtype, (7, 33))], (), loop, [len(loop) - 1])


texts = []
for dtype in dtypes.ALL:
    if dtype.is_floating:
        plans = [build_plan(program_of(*numbers, dtype), "cuda") for numbers in ((0.1, 2), (0.3, 2), (0.1, 5))]
        assert len(plans[0].launches) == 1
        assert plans[0].kernels == plans[1].kernels == plans[2].kernels
        assert plans[0].columns != plans[1].columns != plans[2].columns
        texts += plans[0].kernels
for name, dtype in (("join_bits", dtypes.uint16), ("collect", dtypes.bfloat16), ("peak", dtypes.float64)):
    for axis in (0, 1):
        ops = [ProgramOp(BY_NAME["square"], (0,), ()), ProgramOp(BY_NAME[name], (1,), ((axis,), False))]
        plan = build_plan(build([Spec(dtype, (1500, 1500))], (), ops, [1]), "cuda")
        assert len(plan.launches) == 1, "the reduction is fused with what it reduces"
        assert all(f"fw_take_{name}_" in kernel.text for kernel in plan.kernels)
        texts += plan.kernels
program = program_of(0.1, 2, dtypes.float32)
assert encode(decode(encode(program), ProgramLimits())) == encode(program) != encode(program_of(0.3, 2, dtypes.float32))
for architecture in ("sm_75", "sm_80", "sm_90"):
    try:
        CudaCompiler(architecture, Path(architecture)).compile(texts)
    except ConfigurationError as reason:
        sys.exit(f"no NVRTC: {reason}")
print("compiled")
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources and tests that has the new ops."""
    root = tmp_path_factory.mktemp("copy")
    for folder in (*_SOURCE_ROOTS, "tests"):
        shutil.copytree(_ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "build_recorder.py", "build_server.py"):
        shutil.copy2(_ROOT / name, root)  # with its time, by which the tests know whether modules are up to date
    for name, before, added in _EDITS:
        _insert(root / name, before, added)
    return root


def _insert(path: Path, before: str, added: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1
    path.write_text(text.replace(before, added + before), encoding="utf-8")


def _run(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Python with these arguments, in the copy and on its sources."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(str(copy / root) for root in _SOURCE_ROOTS),
        "FUSEWIRE_CACHE_DIR": str(copy / "cache"),
    }
    command = [sys.executable, "-W", "error", *arguments]
    return subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, timeout=HANGS_S, check=False
    )


def test_ops_with_an_entry_a_body_and_a_twin_are_all_there_for_users(copy: Path) -> None:
    ended = _run(copy, "-c", _USER)
    assert (ended.stdout, ended.returncode) == ("used\n", 0), ended.stderr


def test_one_kernel_serves_all_numbers_among_attributes_and_compiles_for_cuda(copy: Path) -> None:
    ended = _run(copy, "-c", _KERNELS)
    if ended.stderr.startswith("no NVRTC") and not os.environ.get("CI"):
        pytest.skip(ended.stderr)
    assert (ended.stdout, ended.returncode) == ("compiled\n", 0), ended.stderr


def test_the_tests_of_every_op_hold_of_new_ones(copy: Path) -> None:
    """By twin and by kernel, fused and op by op, in every dtype."""
    ended = _run(
        copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not gpu", "-k", " or ".join(_NAMES), *_TESTS
    )
    assert ended.returncode == 0, ended.stdout
