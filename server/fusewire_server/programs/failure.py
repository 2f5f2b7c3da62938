"""Defines a failure: the reason why a value will never exist, in the words that the client gets."""

from __future__ import annotations

from typing import NamedTuple, Protocol, Self

from fusewire_protos.errors import Case, CaseError, bounded_text


class NamesOps(Protocol):
    """Knows the names of a program's ops."""

    def op_name(self, index: int) -> str:
        """Returns the name of an op, or an empty text if it is unknown."""
        ...


class _FailureFields(NamedTuple):
    """The fields of a failure."""

    case: Case
    text: str
    base: int
    op_index: int


class Failure(_FailureFields):
    """The reason why a value will never exist. The server sends the reason to a client that fetches the value.

    `base` is the handle of op 0 of the segment that failed, or 0 if no segment failed. `op_index` is the index of an op
    in that segment's program. The text is cut at a bound, because the server keeps the text as long as any value that
    failed for this reason, and sends the text for each fetch of such a value.
    """

    __slots__ = ()

    def __new__(cls, case: Case, text: str, base: int, op_index: int) -> Self:
        return super().__new__(cls, case, bounded_text(text), base, op_index)

    @classmethod
    def of(cls, error: CaseError, base: int = 0, op_index: int = 0) -> Failure:
        return cls(error.case, error.text, base, op_index)

    def of_result(self, program: NamesOps, base: int, op_index: int) -> Failure:
        """Returns the failure of result `op_index` of the segment whose base is `base`.

        If this failure began in another segment, returns it unchanged. If its text names the op that failed, as in
        "op 3 add: …", that op is the one that failed, and not the op of the result.
        """
        if self.base != base:
            return self
        named = _op_named_in(self.text)
        if named is not None:
            return self._replace(op_index=named)
        name = program.op_name(op_index)
        text = f"op {op_index} {name}: {self.text}" if name else self.text
        return Failure(self.case, text, base, op_index)


def _op_named_in(text: str) -> int | None:
    word, number, *_ = [*text.split(" ", 2), ""]
    return int(number) if word == "op" and number.isdecimal() else None
