"""The one public door."""

from __future__ import annotations

import pickle
import subprocess
import sys
from types import FunctionType, ModuleType

import fusewire as fw
from fusewire import testing
from fusewire._api import functions as _functions
from fusewire._api.catalogue import catalogued as _catalogued
from fusewire_protos.ops.catalogue import BY_NAME, OPS
from fusewire_protos.ops.op import Category
from tests.patience import HANGS_S


def test_each_name_is_there_once() -> None:
    assert len(set(fw.__all__)) == len(fw.__all__)
    assert [name for name in fw.__all__ if not hasattr(fw, name)] == []


def test_every_public_function_goes_through_the_door() -> None:
    modules = [value for value in vars(_functions).values() if isinstance(value, ModuleType)]
    topics = [module for module in modules if module.__name__.startswith(_functions.__name__)]
    public = {
        name
        for topic in topics
        for name, value in vars(topic).items()
        if isinstance(value, FunctionType) and not name.startswith("_") and value.__module__ == topic.__name__
    }
    assert public - set(fw.__all__) == set()


def test_nothing_else_is_visible_but_modules() -> None:
    visible = {
        name for name, value in vars(fw).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert visible == {name for name in fw.__all__ if not name.startswith("_")}


def test_completion_offers_what_is_imported_when_it_is_used() -> None:
    program = "import sys, fusewire as fw; print('testing' in dir(fw), 'fusewire.testing' in sys.modules, fw.testing)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=HANGS_S, check=True)
    assert ended.stdout.startswith("True False <module 'fusewire.testing'")
    assert {"assert_allclose", "serve_subprocess"} <= {*dir(testing)}
    assert set(fw.__all__) <= {*dir(fw)}


def test_every_op_that_users_call_by_name_is_a_function() -> None:
    under_other_names = {
        *("assign_slice", "slice"),  # they are what brackets mean
        *("assign_strided", "strided"),  # they are what windows and diagonals are
        *("bits_of_float", "float_of_bits"),  # they are what `x.view(dtype)` consists of
        *("exponential_of_bits", "normal_of_bits", "random_bits"),  # they are what `fusewire.random` draws by
        # They are what functions of `fusewire.linalg` take for complex matrices.
        *("complex_cholesky", "complex_eig", "complex_eigh", "complex_qr", "complex_slogdet", "complex_svd"),
        *("segment_max", "segment_min", "segment_prod", "segment_sum"),  # they are what `x.at[key].add` consists of
    }
    of_library = {1: fw.fft, 2: fw.linalg}
    namespaces = {op.name: of_library.get(op.core_rank, fw) for op in OPS}
    missing = {name for name, namespace in namespaces.items() if not hasattr(namespace, name)} - under_other_names
    assert missing == set()
    assert Category.POINTWISE in {op.category for op in OPS}


def test_a_function_made_from_the_catalogue_says_what_its_entry_says() -> None:
    for name in _catalogued.__all__:
        function = getattr(fw, name)
        assert (function.__name__, function.__doc__) == (name, BY_NAME[name].summary)


def test_a_function_made_from_the_catalogue_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(fw.tanh)) is fw.tanh  # noqa: S301  # our own bytes


def test_the_sdk_needs_neither_server_nor_compiler() -> None:
    program = (
        "import sys, fusewire\n"
        "print(sorted(name for name in sys.modules if name.split('.')[0] in ('fusewire_server', 'fusewire_kernels')))\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=HANGS_S, check=True)
    assert ended.stdout == "[]\n"
