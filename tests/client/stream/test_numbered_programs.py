"""The programs a session has numbered."""

from __future__ import annotations

from fusewire._stream.encoded_programs import EncodedProgram
from fusewire._stream.numbered_programs import MOST_DIGESTS, Numbered, ProgramKey, Programs, Use
from fusewire_protos.credit import Amount
from fusewire_protos.programs.codec import digest


def key(name: bytes, *, is_fragment: bool = False) -> ProgramKey:
    return ProgramKey(name, (0,), is_fragment)


def programs(most: int, *names: bytes) -> Programs:
    kept = Programs(most)
    for name in names:
        kept.keep(key(name), EncodedProgram(name, (0,), Amount()))
    return kept


def use(kept: Programs, used: ProgramKey) -> Numbered:
    numbered = kept.number(used)
    kept.take(used, numbered, 100, 2)
    return numbered


def test_a_program_is_new_once() -> None:
    kept = programs(4, b"a", b"b")
    assert use(kept, key(b"a")) == (0, True, ())
    assert use(kept, key(b"b")) == (1, True, ())
    assert use(kept, key(b"a")) == (0, False, ())


def test_the_least_used_is_forgotten_and_comes_back_under_another_number() -> None:
    kept = programs(2, b"a", b"b")
    use(kept, key(b"a"))
    use(kept, key(b"b"))
    use(kept, key(b"a"))
    kept.keep(key(b"c"), EncodedProgram(b"c", (0,), Amount()))
    assert use(kept, key(b"c")) == (2, True, (1,))
    assert kept.encoded(key(b"b")) is None


def test_a_use_taken_twice_counts_once() -> None:
    kept = programs(2, b"a", b"b")
    use(kept, key(b"b"))
    numbered = kept.number(key(b"a"))
    kept.take(key(b"a"), numbered, 100, 2)
    kept.take(key(b"a"), numbered, 100, 2)
    kept.keep(key(b"c"), EncodedProgram(b"c", (0,), Amount()))
    assert use(kept, key(b"c")) == (2, True, (0,))


def test_what_a_use_pushes_out_is_told_before_and_happens_after() -> None:
    kept = programs(1, b"a", b"b")
    use(kept, key(b"b"))
    kept.keep(key(b"a"), EncodedProgram(b"a", (0,), Amount()))
    numbered = kept.number(key(b"a"))
    assert numbered.forgotten == (0,)
    assert kept.number(key(b"a")) == numbered


def test_digests_are_told_apart_by_being_fragments() -> None:
    kept = programs(4, b"a")
    kept.keep(key(b"a", is_fragment=True), EncodedProgram(b"f", (0,), Amount()))
    use(kept, key(b"a"))
    use(kept, key(b"a", is_fragment=True))
    assert len(kept.digests(are_fragments=False)) == len(kept.digests(are_fragments=True)) == 1


def test_no_more_digests_are_kept_than_of_the_programs_numbered_last() -> None:
    kept = Programs(1)
    names = [b"%d" % number for number in range(MOST_DIGESTS + 1)]
    for name in [*names, names[1]]:
        kept.keep(key(name), EncodedProgram(name, (0,), Amount()))
        use(kept, key(name))
    digests = kept.digests(are_fragments=False)
    assert len(digests) == MOST_DIGESTS
    assert {digest(names[1]).hex(), digest(names[-1]).hex()} <= {*digests}
    assert digest(names[0]).hex() not in digests


def test_the_newest_digests_are_those_of_whole_bodies() -> None:
    kept = programs(8, b"a", b"b", b"c")
    kept.keep(key(b"piece", is_fragment=True), EncodedProgram(b"piece", (0,), Amount()))
    for used in (key(b"a"), key(b"b"), key(b"c"), key(b"piece", is_fragment=True)):
        use(kept, used)
    assert kept.newest_digests(2) == (digest(b"b"), digest(b"c"))
    assert len(kept.newest_digests(8)) == 3


def test_the_last_use_of_each_program_that_the_server_knows_is_told_the_newest_first() -> None:
    kept = programs(4, b"a", b"b", b"never used")
    use(kept, key(b"a"))
    use(kept, key(b"b"))
    kept.take(key(b"a"), kept.number(key(b"a")), 300, 6)
    assert [*kept.last_uses()] == [Use(0, 300, 6), Use(1, 100, 2)]
