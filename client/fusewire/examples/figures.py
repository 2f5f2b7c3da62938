"""Defines the figures of the demo as plain data, and the verdict that follows from the figures. Pure."""

from __future__ import annotations

from dataclasses import dataclass

# Fusewire's accuracy may differ from NumPy's by at most this much. They differ because Fusewire adds up the elements of
# a sum in another order than NumPy.
LARGEST_DIFFERENCE = 0.01

# A learning rate of LEAST_GOOD_RATE or more reaches GOOD_ACCURACY in FULL_EPOCHS, the default number of epochs.
GOOD_ACCURACY = 0.95
LEAST_GOOD_RATE = 0.03
FULL_EPOCHS = 20

MOST_PROGRAMS = 10


@dataclass(frozen=True)
class TrainingRun:
    """One training with one learning rate."""

    learning_rate: float
    accuracy: float  # the share of the held-out images that is classified correctly
    losses: tuple[float, ...]  # one for each epoch
    duration_s: float  # from the first op to the last value read


@dataclass(frozen=True)
class ClientRun:
    """One training by a client process, with the counts of its session."""

    run: TrainingRun
    ops: int
    segments: int
    fragments: int
    sent_bytes: int
    programs: tuple[str, ...]  # digests of the programs that the client sent, sorted, without fragments


@dataclass(frozen=True)
class TorchRun:
    """One training by PyTorch."""

    name: str
    accuracy: float  # the share of the held-out images that is classified correctly
    losses: tuple[float, ...]  # one for each epoch
    step_us: float  # of the median epoch


@dataclass(frozen=True)
class ServerCount:
    """Totals of a server, or the differences between two counts."""

    ops: int
    launches: int
    rows: int
    submissions: int
    device_ns: int
    plans: int
    kernels_compiled: int
    donations: int  # how many results were written over a dying input

    def since(self, earlier: ServerCount) -> ServerCount:
        """Returns how much the totals have grown since an earlier count."""
        return ServerCount(
            ops=self.ops - earlier.ops,
            launches=self.launches - earlier.launches,
            rows=self.rows - earlier.rows,
            submissions=self.submissions - earlier.submissions,
            device_ns=self.device_ns - earlier.device_ns,
            plans=self.plans - earlier.plans,
            kernels_compiled=self.kernels_compiled - earlier.kernels_compiled,
            donations=self.donations - earlier.donations,
        )


@dataclass(frozen=True)
class Phase:
    """Clients that trained at the same time. `server` is None if the server was not inspected."""

    clients: tuple[ClientRun, ...]
    server: ServerCount | None

    @property
    def duration_s(self) -> float:
        return max(client.run.duration_s for client in self.clients)

    @property
    def ops(self) -> int:
        return sum(client.ops for client in self.clients)

    @property
    def programs(self) -> frozenset[str]:
        """The programs that at least one of the clients sent, without fragments."""
        return frozenset(digest for client in self.clients for digest in client.programs)

    @property
    def shared_programs(self) -> frozenset[str]:
        """The programs that every client sent, without fragments."""
        return frozenset.intersection(*(frozenset(client.programs) for client in self.clients))

    @property
    def are_programs_shared(self) -> bool:
        """Whether every client sent the same programs."""
        return self.shared_programs == self.programs

    @property
    def are_most_programs_shared(self) -> bool:
        """Whether more than half of the programs are shared.

        Not all need to be shared, because a client that pauses sends other, shorter programs.
        """
        return 2 * len(self.shared_programs) > len(self.programs)


@dataclass(frozen=True)
class ServerName:
    """The server and its backend. If it was not inspected, the texts are empty, and `has_compiler` is None."""

    target: str
    backend: str
    detail: str
    has_compiler: bool | None


@dataclass(frozen=True)
class Figures:
    """All figures of the demo."""

    epochs: int
    server: ServerName
    numpy: tuple[TrainingRun, ...]  # one for each client of `together`, with the same learning rate
    first: Phase  # one client, whose programs are new to the server
    alone: Phase  # one client, whose programs the server knows
    together: Phase

    @property
    def differences(self) -> tuple[float, ...]:
        """For each client of `together`, its accuracy minus NumPy's."""
        return tuple(
            client.run.accuracy - run.accuracy for client, run in zip(self.together.clients, self.numpy, strict=True)
        )

    @property
    def has_passed(self) -> bool:
        """Whether every client learned as well as NumPy, and the clients sent few programs and shared most of them."""
        return self.agrees_with_numpy and self.has_learned and self.has_few_programs

    @property
    def agrees_with_numpy(self) -> bool:
        """Whether every accuracy is near NumPy's."""
        return all(abs(difference) <= LARGEST_DIFFERENCE for difference in self.differences)

    @property
    def has_learned(self) -> bool:
        """Whether every client with a good learning rate reached a good accuracy.

        True if there were fewer than `FULL_EPOCHS` epochs, because a good accuracy is not expected then.
        """
        good = (client.run for client in self.together.clients if client.run.learning_rate >= LEAST_GOOD_RATE)
        return self.epochs < FULL_EPOCHS or all(run.accuracy >= GOOD_ACCURACY for run in good)

    @property
    def has_few_programs(self) -> bool:
        """Whether the clients sent at most 10 distinct programs, and shared most of them."""
        return len(self.together.programs) <= MOST_PROGRAMS and self.together.are_most_programs_shared

    @property
    def good_rates(self) -> int:
        """How many clients reached a good accuracy."""
        return sum(client.run.accuracy >= GOOD_ACCURACY for client in self.together.clients)

    @property
    def is_op_by_op(self) -> bool:
        """Whether the server is known to have no compiler."""
        return self.server.has_compiler is False


def per(total: float, count: float) -> float | None:
    """Returns `total` divided by `count`, or None if `count` is 0."""
    return total / count if count else None
