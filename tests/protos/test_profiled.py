"""What a server tells a profiled session comes as it was sent, and other bytes are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_protos.frames import INLINE_BYTES
from fusewire_protos.profiled import MOST_RUNS, RUN_BYTES, Profiled, Run, decode_profiled, encode_profiled, encode_run

_LONG, _COUNT = st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1)
_SHORT, _BYTE = st.integers(0, 2**16 - 1), st.integers(0, 255)
_RUNS = st.builds(Run, *[_LONG] * 6, *[_COUNT] * 3, _SHORT, _BYTE, _BYTE)


@given(_LONG, _COUNT, st.lists(_RUNS, max_size=5))
def test_an_answer_comes_as_it_was_sent(now_ns: int, lost: int, runs: list[Run]) -> None:
    raw = encode_profiled(now_ns, lost, map(encode_run, runs))
    assert decode_profiled(raw) == Profiled(now_ns, lost, tuple(runs))


def test_counts_beyond_their_field_are_cut() -> None:
    run = Run(1, 2, 3, 4, 5, 6, 2**32 + 7, 2**40, 2**40, 2**20, 1, 0)
    (decoded,) = decode_profiled(encode_profiled(0, 2**40, [encode_run(run)])).runs
    assert decoded[6:10] == (7, 2**32 - 1, 2**32 - 1, 2**16 - 1)


@pytest.mark.parametrize("size_bytes", [0, 11, 13, 12 + 65])
def test_bytes_of_another_length_are_refused(size_bytes: int) -> None:
    with pytest.raises(ValueError, match="are no head of"):
        decode_profiled(bytes(size_bytes))


def test_the_longest_answer_fits_in_a_frame() -> None:
    assert RUN_BYTES == 64
    assert MOST_RUNS * RUN_BYTES + 12 <= INLINE_BYTES
