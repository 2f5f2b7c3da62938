"""Figures as a demo with two clients might measure them, for tests of what is made of them."""

from fusewire.examples.figures import ClientRun, Figures, Phase, ServerCount, ServerName, TrainingRun

EPOCHS = 3
SERVER = ServerName("127.0.0.1:5000", "cpu", "as asked; gcc 12", has_compiler=True)


def run(rate: float, accuracy: float) -> TrainingRun:
    return TrainingRun(rate, accuracy, losses=(1.5, 0.4, 0.25), duration_s=0.5)


def client(rate: float, accuracy: float, *, programs: tuple[str, ...] = ("aa", "bb")) -> ClientRun:
    return ClientRun(run(rate, accuracy), ops=1000, segments=12, fragments=2, sent_bytes=400, programs=programs)


def count(*, ops: int, launches: int, plans: int = 2) -> ServerCount:
    return ServerCount(
        ops, launches, rows=24, submissions=16, device_ns=900_000, plans=plans, kernels_compiled=9, donations=30
    )


def figures(
    *,
    accuracies: tuple[float, float] = (0.94, 0.975),
    plans: int = 2,
    others_programs: tuple[str, ...] = ("aa", "bb"),
) -> Figures:
    """NumPy reaches 0.94 and 0.97."""
    together = (client(0.02, accuracies[0]), client(0.8, accuracies[1], programs=others_programs))
    return Figures(
        epochs=EPOCHS,
        server=SERVER,
        numpy=(run(0.02, 0.94), run(0.8, 0.97)),
        first=Phase((client(0.8, 0.97),), count(ops=1000, launches=1000, plans=plans)),
        alone=Phase((client(0.8, 0.97),), count(ops=1000, launches=50, plans=plans)),
        together=Phase(together, count(ops=2000, launches=40, plans=plans)),
    )
