"""Compiling: once for each kernel, together where the cache lacks several, safely beside other processes."""

from __future__ import annotations

import ctypes
import errno
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from fusewire_kernels.compile import c_compiler as compiling
from fusewire_kernels.compile.c_compiler import (
    CCompiler,
    Toolchain,
    compile_kernels,
    compile_library,
    find_compiler,
    missing_kernels,
)
from fusewire_kernels.compile.machine_faults import MachineFault
from fusewire_kernels.compile.watch import Bounds
from fusewire_kernels.plan.plan import KernelSource
from fusewire_protos.errors import ServerFault
from tests.kernels.problems import toolchain_in
from tests.shell_programs import shell_program

LACKS = (errno.EACCES, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EROFS)


@pytest.fixture
def toolchain(tmp_path: Path) -> Toolchain:
    return toolchain_in(tmp_path / "cache")


def _source(number: int) -> KernelSource:
    return KernelSource(f"fw_test_{number}", f"int64_t fw_test_{number}(void) {{ return {number}; }}\n")


def _answer(path: str, key: str) -> int:
    return int(ctypes.CDLL(path)[key]())


def test_missing_kernels_are_compiled_into_one_library(toolchain: Toolchain) -> None:
    sources = [_source(number) for number in range(3)]
    assert missing_kernels(sources, toolchain) == 3
    paths = compile_kernels(sources, toolchain)
    assert len(set(paths)) == 1
    assert [_answer(path, source.key) for path, source in zip(paths, sources, strict=True)] == [0, 1, 2]


def test_many_kernels_are_dealt_out_to_two_libraries(toolchain: Toolchain) -> None:
    sources = [_source(number) for number in range(9)]
    paths = compile_kernels(sources, toolchain)
    assert len(set(paths)) <= 2
    assert [_answer(path, source.key) for path, source in zip(paths, sources, strict=True)] == list(range(9))


def test_what_is_compiled_before_a_failure_is_kept(toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_MOST_KERNELS_AT_ONCE", 3)
    sources = [_source(number) for number in range(5)]
    with pytest.raises(ServerFault):
        compile_kernels([*sources, KernelSource("fw_broken", "int fw_broken(\n")], toolchain)
    assert missing_kernels(sources, toolchain) == 2


def test_a_kernel_in_the_cache_is_not_compiled_again(toolchain: Toolchain) -> None:
    (first,) = compile_kernels([_source(1)], toolchain)
    assert missing_kernels([_source(1), _source(2)], toolchain) == 1
    broken = replace(toolchain, compiler="/no/such/compiler")
    assert compile_kernels([_source(1)], broken) == (first,)


def test_a_kernel_given_twice_is_compiled_once(toolchain: Toolchain) -> None:
    first, second = compile_kernels([_source(1), _source(1)], toolchain)
    assert first == second


def test_another_compiler_or_processor_finds_nothing_in_the_cache(toolchain: Toolchain) -> None:
    compile_kernels([_source(1)], toolchain)
    other = replace(toolchain, cache=replace(toolchain.cache, identity="another compiler"))
    assert missing_kernels([_source(1)], other) == 1


def test_a_kernel_that_does_not_compile_is_a_fault_and_leaves_nothing_behind(toolchain: Toolchain) -> None:
    with pytest.raises(ServerFault, match="no_such_type"):
        compile_kernels([KernelSource("fw_bad", "no_such_type fw_bad(void);")], toolchain)
    assert list(toolchain.cache.folder.iterdir()) == []


def test_a_compiler_that_cannot_be_started_is_a_fault_and_leaves_nothing_behind(toolchain: Toolchain) -> None:
    gone = replace(toolchain, compiler="/no/such/compiler")
    with pytest.raises(MachineFault, match="/no/such/compiler"):
        compile_kernels([_source(1)], gone)
    assert list(toolchain.cache.folder.iterdir()) == []


def _compiler(toolchain: Toolchain, tmp_path: Path, script: str, *, with_probe: str = "") -> Toolchain:
    """A compiler that runs `script`, but `with_probe` for the source that is right, if there is one."""
    probe = f'grep -qs fw_probe -- "$@" && {{ {with_probe}; }}\n' if with_probe else ""
    return replace(toolchain, compiler=str(shell_program(tmp_path / "cc", f"{probe}{script}")))


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        ("kill -KILL $$", MachineFault),
        ("kill -TERM $$", MachineFault),
        ("kill -SEGV $$", ServerFault),
        ("echo 'gcc: fatal error: Killed signal terminated program cc1' >&2; exit 1", MachineFault),
        ("echo 'gcc: fatal error: Segmentation fault signal terminated program cc1' >&2; exit 1", ServerFault),
        ("echo 'collect2: fatal error: ld terminated with signal 9 [Killed]' >&2; exit 1", MachineFault),
        ("echo 'clang: error: unable to execute command: Killed' >&2; exit 254", MachineFault),
        ("echo 'cc1: out of memory allocating 524168 bytes' >&2; exit 1", MachineFault),
        ("echo 'LLVM ERROR: out of memory' >&2; exit 1", MachineFault),
        ("echo 'ld: final link failed: memory exhausted' >&2; exit 1", MachineFault),
        *((f"echo 'as: cannot write: {os.strerror(number)}' >&2; exit 1", MachineFault) for number in LACKS),
    ],
)
def test_what_keeps_a_compiler_from_its_work_is_told_from_what_a_source_is(
    toolchain: Toolchain, tmp_path: Path, script: str, kind: type[ServerFault]
) -> None:
    works = f'exec {toolchain.compiler} "$@"'
    with pytest.raises(ServerFault, match="the compiler ended with") as failed:
        compile_kernels([_source(1)], _compiler(toolchain, tmp_path, script, with_probe=works))
    assert type(failed.value) is kind
    assert list(toolchain.cache.folder.iterdir()) == []


@pytest.mark.parametrize(
    "script",
    ["kill -SEGV $$", "exit 1", "echo nonsense >&2; exit 1", "head -c 100000 /dev/urandom >&2; exit 1"],
    ids=["a crash", "an error", "a message", "rubbish"],
)
def test_a_compiler_that_fails_for_a_right_source_too_is_broken(
    toolchain: Toolchain, tmp_path: Path, script: str
) -> None:
    with pytest.raises(MachineFault, match="the compiler is broken: the compiler ended with"):
        compile_kernels([_source(1)], _compiler(toolchain, tmp_path, script))
    assert list(toolchain.cache.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 0", "file too short"),
        ('until [ "$1" = -o ]; do shift; done; echo rubbish > "$2"', "cannot be used"),
        ('exec {works} "$@" -Dfw_test_1=fw_another', "it lacks fw_test_1"),
    ],
    ids=["nothing", "rubbish", "another kernel"],
)
def test_a_compiler_that_claims_to_have_succeeded_is_found_out(
    toolchain: Toolchain, tmp_path: Path, script: str, words: str
) -> None:
    with pytest.raises(MachineFault, match=f"the compiler ended with 0, but.*{words}"):
        compile_kernels([_source(1)], _compiler(toolchain, tmp_path, script.format(works=toolchain.compiler)))
    assert list(toolchain.cache.folder.iterdir()) == []


def test_compilers_speak_the_language_of_the_messages_that_are_known(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    with pytest.raises(ServerFault, match=r"in locale C$"):
        compile_kernels([_source(1)], _compiler(toolchain, tmp_path, "echo in locale $LC_ALL >&2; exit 1"))


def test_a_compiler_that_takes_too_long_is_ended_and_leaves_nothing_behind(
    toolchain: Toolchain, tmp_path: Path
) -> None:
    sleeping = _compiler(toolchain, tmp_path, "sleep 600")  # in a process of its own, which is to end too
    with pytest.raises(MachineFault, match=r"did not end within 0\.1 s"):
        compile_kernels([_source(1)], replace(sleeping, bounds=Bounds(wall_s=0.1)))
    assert list(toolchain.cache.folder.iterdir()) == []


def test_a_compiler_that_vanished_is_used_again_when_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toolchain: Toolchain
) -> None:
    path = os.environ["PATH"]
    works = _compiler(toolchain, tmp_path, f'PATH={path} exec {toolchain.compiler} "$@"').compiler
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("FUSEWIRE_CACHE_DIR", str(tmp_path / "cache"))
    compiler = CCompiler(find_compiler)
    assert compiler.compile([_source(1)]).fresh == 1
    away = Path(works).rename(tmp_path / "away")
    for words in ("cannot be started", "is gone"):
        with pytest.raises(MachineFault, match=words):
            compiler.compile([_source(2)])
    away.rename(works)
    assert compiler.compile([_source(2)]).fresh == 1


def test_processes_that_share_a_cache_may_compile_the_same_kernel_at_once(toolchain: Toolchain) -> None:
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: compile_kernels([_source(5)], toolchain), range(4)))
    assert [_answer(path, "fw_test_5") for (path,) in found] == [5] * 4
    assert [path for path in toolchain.cache.folder.iterdir() if path.name.startswith("part-")] == []


def test_the_sine_and_the_cosine_of_a_value_stay_two_calls(toolchain: Toolchain) -> None:
    text = "void fw_both(const double *x, double *y) { y[0] = fw_sin_f64(*x); y[1] = fw_cos_f64(*x); }\n"
    (path,) = compile_kernels([KernelSource("fw_both", text)], toolchain)
    assert b"sincos" not in Path(path).read_bytes()


def test_nothing_to_compile_is_no_work(toolchain: Toolchain) -> None:
    assert compile_kernels([], toolchain) == ()


def test_a_library_needs_no_prelude(toolchain: Toolchain) -> None:
    source = KernelSource("answer", "int answer(void) { return 42; }")
    path = compile_library(source, toolchain)
    assert _answer(path, "answer") == 42
    assert compile_library(source, toolchain) == path


def test_no_compiler_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    assert find_compiler() is None


@pytest.mark.parametrize("script", ["exit 1", "kill -KILL $$", "exec >&2; read line < /dev/zero", "echo rubbish >&2"])
def test_a_compiler_that_does_not_tell_its_version_is_passed_over(
    script: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shell_program(tmp_path / "cc", script)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    assert find_compiler(bounds=Bounds(processor_s=0.1, wall_s=1.0)) is None


def test_the_environment_names_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FUSEWIRE_CACHE_DIR", str(tmp_path))
    toolchain = find_compiler()
    if toolchain is None:
        pytest.skip("no C compiler")
    assert toolchain.cache.folder == tmp_path
