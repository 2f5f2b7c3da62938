"""The suites: where each comes from, and how its tests are started. A suite without an address is a package of PyPI."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
_NO_OPTIONS = ("-c", str(HERE / "pytest.ini"), "--rootdir", ".")  # those of this project are not those of the suite

# Those of its tests that compute by the array API, most of them without linalg.
_OF_SCIKIT_LEARN = (
    "sklearn.metrics.tests.test_classification",
    "sklearn.metrics.tests.test_common",
    "sklearn.metrics.tests.test_pairwise",
    "sklearn.preprocessing.tests.test_data",
    "sklearn.utils.tests.test_array_api",
    "sklearn.utils.tests.test_extmath",
)
# These ten thousand are of fft alone.
_CHOSEN_OF_SCIPY = "array_api_strict and not TestOAConvolve and not test_many_sizes"
# Those of its tests that compute by the array API, but for `integrate.tests.test_tanhsinh`: its functions write through
# views of arrays, and a slice or a reshaped array here is a value of its own.
_OF_SCIPY = tuple(
    f"scipy.{package}.tests.test_{name}"
    for package, names in {
        "_lib": "_util array_api",
        "cluster": "hierarchy vq",
        "constants": "constants",
        "differentiate": "differentiate",
        "fft": "basic fftlog helper real_transforms",
        "integrate": "cubature quadrature",
        "interpolate": "bsplines interpolate polyint rgi",
        "linalg": "procrustes special_matrices",
        "ndimage": "filters fourier interpolation measurements morphology splines",
        "optimize": "bracket chandrupatla optimize",
        "signal": "bsplines filter_design fir_filter_design ltisys savitzky_golay signaltools splines upfirdn windows",
        "spatial.transform": "rigid_transform rotation",
        "special": "logsumexp support_alternative_backends",
        "stats": "continued_fraction correlation device_dtype entropy hypotests morestats quantile rank resampling"
        " stats variation",
    }.items()
    for name in names.split()
)


@dataclass(frozen=True)
class Suite:
    """One suite. `arguments` are those of pytest; the folder of a suite with an `address` is given to the runner."""

    name: str
    arguments: tuple[str, ...]
    address: str | None = None
    import_path: str = ""  # of the suite's own package, in its folder
    environment: dict[str, str] = field(default_factory=dict)
    folder: str = ""  # of a suite with an address, if it is not its name: a suite may be run in several ways
    companions: int = 0  # how many more runs of it go side by side with the one that is reported

    @property
    def folder_name(self) -> str:
        """The name of its folder, by which skips.toml lists its tests too."""
        return self.folder or self.name


def _of_the_standard(name: str, examples: int, *options: str, companions: int = 0) -> Suite:
    """Returns the tests of the array API standard, with so many examples a test."""
    chosen = ("--max-examples", str(examples), "--hypothesis-disable-deadline", *options)
    return Suite(
        name,
        (*chosen, "array_api_tests"),
        address="https://github.com/data-apis/array-api-tests (with its submodule)",
        folder="array-api-tests",
        environment={
            "ARRAY_API_TESTS_MODULE": "fusewire",
            "ARRAY_API_TESTS_VERSION": "2024.12",
        },
        companions=companions,
    )


SUITES = (
    _of_the_standard("array-api-tests", 20),
    _of_the_standard("array-api-tests-flushed", 5, "-p", "flushed_after_each_op"),
    # One seed, so that all of them do the same work.
    _of_the_standard("array-api-tests-in-company", 5, "-p", "in_step", "--hypothesis-seed", "0", companions=4),
    Suite(
        "opt_einsum",
        # Its tests of paths compute nothing.
        (*_NO_OPTIONS, "-p", "opt_einsum_on_fusewire", "--pyargs", "opt_einsum.tests", "-k", "not test_paths"),
    ),
    Suite(
        "einops",
        (*_NO_OPTIONS, "-p", "einops_on_fusewire", "--pyargs", "einops.tests"),
        environment={"EINOPS_TEST_BACKENDS": "numpy,fusewire"},
    ),
    Suite(
        "array-api-extra",
        ("-p", "array_api_extra_on_fusewire", "-k", "fusewire", "tests/main"),
        address="https://github.com/data-apis/array-api-extra",
        import_path="src",
    ),
    Suite(
        "scikit-learn",
        (*_NO_OPTIONS, "-p", "scikit_learn_on_fusewire", "-k", "fusewire", "--pyargs", *_OF_SCIKIT_LEARN),
        environment={"SCIPY_ARRAY_API": "1"},
    ),
    Suite(
        "scipy",
        (*_NO_OPTIONS, "-p", "scipy_on_fusewire", "-k", _CHOSEN_OF_SCIPY, "--pyargs", *_OF_SCIPY),
        environment={"SCIPY_ARRAY_API": "1"},
    ),
    Suite("onnx", (*_NO_OPTIONS, str(HERE / "onnx_nodes.py"))),
)
