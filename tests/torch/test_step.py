"""A step that is recorded once does what it does plainly."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import fusewire.torch
from fusewire import ArgumentError, RequestError, Session
from fusewire.testing.server_process import ServerProcess
from tests.torch.live_handles import assert_long_loops_leave_no_more
from tests.torch.nets import Case, cases

STEPS = 200
TOLERANCE = 1e-5
BATCH = 8

Train = Callable[..., Any]


def mlp(*layers: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Linear(16, 32), *layers, nn.ReLU(), nn.Linear(32, 4))


def batches(device: str, count: int = STEPS) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yields batches of which every tenth has fewer rows."""
    generator = torch.Generator().manual_seed(1)
    for number in range(count):
        rows = BATCH - 3 * (number % 10 == 9)
        x, y = torch.randn(rows, 16, generator=generator), torch.randint(0, 4, (rows,), generator=generator)
        yield x.to(device), y.to(device)


def train_step(net: nn.Module, optimizer: torch.optim.Optimizer, clip: float | None = None) -> Train:
    def train(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = functional.cross_entropy(net(x), y)
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(net.parameters(), clip)
        optimizer.step()
        return loss

    return train


def adam(kind: type[torch.optim.Optimizer]) -> Callable[..., torch.optim.Optimizer]:
    def make(parameters: Any, lr: float = 1e-2) -> torch.optim.Optimizer:
        listed = list(parameters)
        return kind(listed, lr=lr, capturable=listed[0].device.type == "fusewire")

    return make


def sgd(**options: Any) -> Callable[..., torch.optim.Optimizer]:
    return lambda parameters: torch.optim.SGD(parameters, lr=1e-2, **options)


OPTIMIZERS = {
    "sgd": sgd(),
    "momentum": sgd(momentum=0.9, nesterov=True),
    "sgd_one_by_one": sgd(momentum=0.9, foreach=False),
    "adam": adam(torch.optim.Adam),
    "adamw": adam(torch.optim.AdamW),
}


def losses_of(
    net: nn.Module, optimizer_of: Callable[..., Any], device: str, *, by_step: bool = False, clip: float | None = None
) -> list[float]:
    """Trains a copy of a net on batches, and returns the losses."""
    copied = copy.deepcopy(net).to(device)
    train = train_step(copied, optimizer_of(copied.parameters()), clip)
    if by_step:
        train = fusewire.torch.step(train)
    return [each.item() for each in [train(x, y) for x, y in batches(device)]]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_losses_are_those_of_plain_steps_and_of_the_cpu(name: str) -> None:
    torch.manual_seed(0)
    net, optimizer_of = mlp(), OPTIMIZERS[name]
    found = losses_of(net, optimizer_of, "fusewire", by_step=True)
    assert found == losses_of(net, optimizer_of, "fusewire")
    assert found == pytest.approx(losses_of(net, optimizer_of, "cpu"), abs=TOLERANCE)


def test_clipped_gradients_are_those_of_the_cpu() -> None:
    torch.manual_seed(0)
    net, optimizer_of = mlp(), sgd(momentum=0.9)
    found = losses_of(net, optimizer_of, "fusewire", by_step=True, clip=0.1)
    assert found == losses_of(net, optimizer_of, "fusewire", clip=0.1)
    assert found == pytest.approx(losses_of(net, optimizer_of, "cpu", clip=0.1), abs=TOLERANCE)


def test_the_buffers_of_batch_norm_go_on() -> None:
    torch.manual_seed(0)
    nets = {device: mlp(nn.BatchNorm1d(32)) for device in ("cpu", "fusewire")}
    nets["fusewire"].load_state_dict(nets["cpu"].state_dict())
    for device, net in nets.items():
        net.to(device)
        train = train_step(net, sgd()(net.parameters()))
        train = fusewire.torch.step(train) if device == "fusewire" else train
        for x, y in batches(device, 50):
            train(x, y)
    found, expected = (nets[device][1] for device in ("fusewire", "cpu"))
    assert found.num_batches_tracked.item() == 50
    torch.testing.assert_close(found.running_var.cpu(), expected.running_var, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("name", ["lstm", "gru", "attention", "cnn"])
def test_a_net_learns_by_steps_as_plainly(name: str) -> None:
    case = cases()[name]
    found = losses_of_case(case, "fusewire", by_step=True)
    assert found == losses_of_case(case, "fusewire")
    assert found == pytest.approx(losses_of_case(case, "cpu"), abs=TOLERANCE)


def losses_of_case(case: Case, device: str, *, by_step: bool = False) -> list[float]:
    net = copy.deepcopy(case.net).to(device)
    train = train_step(net, sgd(momentum=0.9)(net.parameters()))
    if by_step:
        train = fusewire.torch.step(train)
    x, y = case.x.to(device), case.y.to(device)
    return [each.item() for each in [train(x, y) for _ in range(20)]]


# ---- what changes from step to step ----


def test_dropout_draws_the_numbers_of_plain_steps() -> None:
    torch.manual_seed(0)
    net, found = mlp(nn.Dropout(0.5)), []
    for by_step in (True, False):
        torch.manual_seed(7)
        found.append(losses_of(net, sgd(), "fusewire", by_step=by_step))
    assert found[0] == found[1]
    assert len(set(found[0])) > STEPS // 2


def test_a_seed_between_steps_is_the_seed_of_the_next() -> None:
    drop = fusewire.torch.step(lambda x: functional.dropout(x, 0.5))
    x, found = torch.ones(64, device="fusewire"), []
    for _ in range(6):
        torch.manual_seed(3)
        found.append(drop(x).cpu())
    assert all(torch.equal(each, found[0]) for each in found)
    assert not torch.equal(drop(x).cpu(), found[0])


def scheduled(
    device: str,
    lr: Any,
    scheduler_of: Callable[..., Any],
    *,
    by_step: bool,
    optimizer_of: Callable[..., Any] = torch.optim.SGD,
) -> list[float]:
    torch.manual_seed(0)
    net = mlp().to(device)
    optimizer = optimizer_of(net.parameters(), lr=lr)
    scheduler = scheduler_of(optimizer)
    train = train_step(net, optimizer)
    if by_step:
        train = fusewire.torch.step(train)
    found = []
    for x, y in batches(device):
        found.append(train(x, y))
        scheduler.step()
    return [each.item() for each in found]


def test_a_schedule_of_a_tensor_on_the_device_is_followed() -> None:
    def cosine(optimizer: Any) -> Any:
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)

    found = []
    for by_step in (True, False):
        lr = torch.tensor(0.01, device="fusewire")
        found.append(scheduled("fusewire", lr, cosine, by_step=by_step, optimizer_of=adam(torch.optim.AdamW)))
    assert found[0] == found[1]
    assert found[0] == pytest.approx(
        scheduled("cpu", 0.01, cosine, by_step=False, optimizer_of=torch.optim.AdamW), abs=TOLERANCE
    )


def test_a_schedule_of_a_number_is_followed() -> None:
    def steps(optimizer: Any) -> Any:
        return torch.optim.lr_scheduler.StepLR(optimizer, 30)

    found = scheduled("fusewire", 0.05, steps, by_step=True)
    assert found == scheduled("fusewire", 0.05, steps, by_step=False)


def test_a_number_that_changes_at_each_call_is_followed_with_a_warning() -> None:
    def decay(optimizer: Any) -> Any:
        return torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)

    with pytest.warns(UserWarning, match="SGD.*lr changes"):
        found = scheduled("fusewire", 0.05, decay, by_step=True)
    assert found == scheduled("fusewire", 0.05, decay, by_step=False)


def test_a_net_that_is_evaluated_drops_nothing() -> None:
    net = nn.Dropout(0.5)
    run = fusewire.torch.step(net)
    x = torch.ones(64, device="fusewire")
    for _ in range(4):
        assert not torch.equal(run(x).cpu(), x.cpu())
    net.eval()
    assert torch.equal(run(x).cpu(), x.cpu())


def test_a_step_within_a_step_is_part_of_it() -> None:
    inner = fusewire.torch.step(lambda x: x * 2)
    outer = fusewire.torch.step(lambda x: inner(x) + 1)
    for number in range(5):
        assert outer(torch.full((2,), float(number), device="fusewire")).cpu()[0].item() == 2 * number + 1


def test_another_number_as_an_argument_is_another_recording() -> None:
    scale = fusewire.torch.step(lambda x, factor: x * factor)
    x = torch.ones(3, device="fusewire")
    for factor in (2.0, 2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0, -0.0, 2.0):
        assert torch.equal(scale(x, factor).cpu(), torch.full((3,), factor))


def test_a_loaded_state_is_the_one_that_goes_on() -> None:
    torch.manual_seed(0)
    found = []
    net = mlp().to("fusewire")
    start = copy.deepcopy(net.state_dict())
    for by_step in (True, False):
        net.load_state_dict(start)
        optimizer = adam(torch.optim.Adam)(net.parameters())
        train = train_step(net, optimizer)
        train = fusewire.torch.step(train) if by_step else train
        data, losses = [*batches("fusewire", 8)], []
        saved = None
        for _ in range(3):
            losses += [train(x, y).item() for x, y in data]
            saved = saved or copy.deepcopy(optimizer.state_dict())
            optimizer.load_state_dict(copy.deepcopy(saved))
        found.append(losses)
    assert found[0] == found[1]


# ---- what a step reads and leaves ----


def test_gradients_are_seen_behind_a_replay() -> None:
    torch.manual_seed(0)
    nets = [mlp().to("fusewire")]
    nets.append(copy.deepcopy(nets[0]))
    trains = [train_step(net, sgd()(net.parameters())) for net in nets]
    trains[0] = fusewire.torch.step(trains[0])
    for x, y in batches("fusewire", 8):
        for train in trains:
            train(x, y)
        for one, other in zip(*[net.parameters() for net in nets], strict=True):
            assert torch.equal(one.grad.cpu(), other.grad.cpu())


@pytest.mark.filterwarnings("ignore:a step differs from call to call")
@pytest.mark.parametrize("set_to_none", [True, False])
def test_gradients_that_the_user_clears_add_up_as_plainly(set_to_none: bool) -> None:
    torch.manual_seed(0)
    found = []
    start = mlp().to("fusewire")
    for by_step in (True, False):
        net = copy.deepcopy(start)
        optimizer = sgd()(net.parameters())

        def add(x: torch.Tensor, y: torch.Tensor, net: nn.Module = net) -> torch.Tensor:
            loss = functional.cross_entropy(net(x), y)
            loss.backward()
            return loss

        add = fusewire.torch.step(add) if by_step else add
        losses = []
        for number, (x, y) in enumerate(batches("fusewire", 40)):
            losses.append(add(x, y).item())
            if number % 4 == 3:
                optimizer.step()
                optimizer.zero_grad(set_to_none=set_to_none)
        found.append(losses)
    assert found[0] == found[1]


def test_nets_that_share_parameters_learn_as_plainly() -> None:
    found = []
    for by_step in (True, False):
        torch.manual_seed(0)
        body, heads = nn.Linear(16, 8).to("fusewire"), [nn.Linear(8, 4).to("fusewire") for _ in range(2)]
        nets = [nn.Sequential(body, nn.Tanh(), head) for head in heads]
        trains = [train_step(net, sgd(momentum=0.9)(net.parameters())) for net in nets]
        if by_step:
            trains = [fusewire.torch.step(train) for train in trains]
        found.append([train(x, y).item() for x, y in batches("fusewire", 30) for train in trains])
    assert found[0] == found[1]


def test_parameters_of_one_array_are_two_tensors() -> None:
    first = torch.ones(3, device="fusewire")
    second = first.clone()

    def subtract(x: torch.Tensor) -> torch.Tensor:
        second.sub_(x)
        return first + second

    run = fusewire.torch.step(subtract)
    x = torch.ones(3, device="fusewire")
    found = [run(x).cpu()[0].item() for _ in range(5)]
    assert found == [1.0, 0.0, -1.0, -2.0, -3.0]


def test_an_argument_that_is_written_has_its_new_elements() -> None:
    run = fusewire.torch.step(lambda x: x.add_(1))
    for _ in range(5):
        whole = torch.zeros(2, 3, device="fusewire")
        assert run(whole[1]) is not None
        assert whole.cpu().tolist() == [[0, 0, 0], [1, 1, 1]]


def test_returned_tensors_are_new_at_each_call() -> None:
    run = fusewire.torch.step(lambda x: {"double": x * 2, "views": [(x + 1).t()]})
    results = [run(torch.full((2, 3), float(each), device="fusewire")) for each in range(6)]
    assert [each["double"].cpu()[0, 0].item() for each in results] == [0, 2, 4, 6, 8, 10]
    assert [each["views"][0].cpu()[2, 1].item() for each in results] == [1, 2, 3, 4, 5, 6]


def test_a_tensor_that_the_step_keeps_is_kept_anew() -> None:
    kept: dict[str, torch.Tensor] = {}

    def run(x: torch.Tensor) -> torch.Tensor:
        kept["last"] = x * 2
        return kept["last"]

    stepped = fusewire.torch.step(run)
    results = [stepped(torch.full((2,), float(each), device="fusewire")) for each in range(6)]
    assert kept["last"].cpu()[0].item() == 10
    assert [each.cpu()[0].item() for each in results] == [0, 2, 4, 6, 8, 10]


# ---- costs ----


@pytest.mark.usefixtures("without_pauses")
def test_steps_one_after_the_other_are_iterations_of_a_loop(session: Session) -> None:
    torch.manual_seed(0)
    net = mlp().to("fusewire")
    train = fusewire.torch.step(train_step(net, adam(torch.optim.Adam)(net.parameters())))
    x, y = next(batches("fusewire"))

    def run() -> tuple[int, int]:
        """Trains fifty steps. Returns the numbers of segments and programs so far."""
        losses = [train(x, y) for _ in range(50)]
        losses[-1].item()
        return session.stats.segments, len(session.stats.programs)

    run()
    before, after = run(), run()
    assert after[0] - before[0] <= 10
    assert after[1] == before[1]


@pytest.mark.usefixtures("without_pauses")
def test_a_thousand_steps_leave_as_many_arrays_as_ten(server: ServerProcess, session: Session) -> None:
    torch.manual_seed(0)
    net = mlp(nn.Dropout(0.5)).to("fusewire")
    train = fusewire.torch.step(train_step(net, adam(torch.optim.Adam)(net.parameters())))
    x, y = next(batches("fusewire"))

    def run(steps: int) -> None:
        for _ in range(steps):
            train(x, y)

    assert_long_loops_leave_no_more(run, 10, 1000, server, session)


# ---- what a step may not do ----


def counted() -> Train:
    numbers = iter(range(1, 100))
    return lambda x: x * float(next(numbers))


REFUSED: dict[str, tuple[Train, str]] = {
    "a read": (lambda x: x * x.sum().item(), r"test_step\.py:\d+ reads a value"),
    "an upload": (lambda x: x + torch.ones(3).to("fusewire"), r"test_step\.py:\d+ uploads a tensor of the device cpu"),
    "a changing number": (counted(), r"'multiply'.*test_step\.py:\d+.* 2\.0 and is 3\.0"),
    "a seed": (lambda x: functional.dropout(x) if torch.manual_seed(3) else x, "sets the seed"),
    "no result": (lambda x: None if x is None else 0, "keeps|kept"),
    "a tensor of the CPU": (lambda x: torch.ones(3), "returns a tensor of the device cpu"),
    "another object": (lambda x: object(), "returns a object"),
}


def call_often(call: Train, *arguments: Any) -> None:
    """Calls a step as often as it takes until it is replayed."""
    for _ in range(4):
        call(*arguments)


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_replay_would_not_do_is_refused_at_its_line(name: str) -> None:
    call, match = REFUSED[name]
    run = fusewire.torch.step(call)
    x = torch.ones(3, device="fusewire")
    with pytest.raises(RequestError, match=match):
        call_often(run, x)
    assert (x + 1).cpu().tolist() == [2, 2, 2]


def test_an_optimizer_that_computes_on_the_cpu_is_refused_with_the_way_out() -> None:
    net = mlp().to("fusewire")
    train = fusewire.torch.step(train_step(net, torch.optim.Adam(net.parameters())))
    with pytest.raises(ArgumentError, match=r"Adam keeps 'step' on the CPU.*capturable=True"):
        call_often(train, *next(batches("fusewire")))


def test_a_scheduler_within_a_step_is_refused() -> None:
    net = mlp().to("fusewire")
    optimizer = sgd()(net.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 30)
    train = train_step(net, optimizer)

    def both(x: torch.Tensor, y: torch.Tensor) -> None:
        train(x, y)
        scheduler.step()

    stepped = fusewire.torch.step(both)
    with pytest.raises(ArgumentError, match=r"StepLR\.step\(\)"):
        call_often(stepped, *next(batches("fusewire")))


@pytest.mark.parametrize(
    ("x", "match"),
    [
        (lambda: torch.ones(3), r"x\.to\('fusewire'\)"),
        (lambda: torch.ones(3, device="fusewire", requires_grad=True), r"x\.detach\(\)"),
        (lambda: {1, 2}, "hashable"),
    ],
)
def test_arguments_that_no_recording_can_take_are_refused(x: Callable[[], Any], match: str) -> None:
    with pytest.raises(ArgumentError, match=match):
        fusewire.torch.step(lambda x: x)(x())


def test_a_step_that_reads_other_tensors_at_each_call_runs_plainly_with_a_warning() -> None:
    state = {"hidden": torch.zeros(3, device="fusewire")}

    def run(x: torch.Tensor) -> torch.Tensor:
        state["hidden"] = state["hidden"] + x
        return state["hidden"] * 2

    stepped = fusewire.torch.step(run)
    x = torch.ones(3, device="fusewire")
    with pytest.warns(UserWarning, match="other tensors"):
        found = [stepped(x) for _ in range(10)]
    assert [each.cpu()[0].item() for each in found] == [2.0 * (number + 1) for number in range(10)]


@pytest.mark.parametrize("calls_before", [0, 1, 2])
def test_a_step_that_raises_leaves_all_tensors_as_they_were(calls_before: int) -> None:
    torch.manual_seed(0)
    net = mlp(nn.BatchNorm1d(32), nn.Dropout(0.5)).to("fusewire")
    optimizer = adam(torch.optim.Adam)(net.parameters())
    train, fails = train_step(net, optimizer), list[bool]()

    def failing(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        loss: torch.Tensor = train(x, y)
        if fails:
            raise KeyError("stop")
        return loss

    stepped = fusewire.torch.step(failing)
    data = [*batches("fusewire", 6)]
    for x, y in data[:calls_before]:
        stepped(x, y)
    before = {name: each.cpu() for name, each in net.state_dict().items()}
    counter = torch.fusewire.get_rng_state()
    fails.append(True)
    with pytest.raises(KeyError):
        stepped(*data[4])
    assert all(torch.equal(each.cpu(), before[name]) for name, each in net.state_dict().items())
    assert torch.equal(torch.fusewire.get_rng_state(), counter)
    fails.clear()
    for x, y in data:
        stepped(x, y)


def test_a_tensor_without_elements_may_be_made_within_a_step() -> None:
    step = fusewire.torch.step(lambda x: torch.cat([torch.tensor([], device="fusewire"), x + 1]))
    for _ in range(4):
        assert step(torch.zeros(2, device="fusewire")).tolist() == [1.0, 1.0]


def test_a_step_takes_keeps_and_returns_complex_tensors() -> None:
    start = torch.randn(4, dtype=torch.complex64)
    states, results = [], []
    for device in ("cpu", "fusewire"):
        state, weight = start.clone().to(device), torch.nn.Parameter(start.clone().to(device))
        optimizer = torch.optim.SGD([weight], lr=0.1)

        def train(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            optimizer.zero_grad()  # noqa: B023  # called within this turn of the loop
            spectrum = torch.fft.fft(x * weight)  # noqa: B023
            spectrum.abs().square().sum().backward()
            optimizer.step()  # noqa: B023
            state.mul_(0.5).add_(spectrum.detach())  # noqa: B023
            y.add_(spectrum.detach())
            return spectrum.detach().conj()

        call = train if device == "cpu" else fusewire.torch.step(train)
        y = torch.zeros(4, dtype=torch.complex64, device=device)
        inputs = [torch.full((4,), 0.1 + 0.1j * number, dtype=torch.complex64).to(device) for number in range(6)]
        results.append([call(x, y).resolve_conj().cpu() for x in inputs])
        states.append((state.cpu(), weight.detach().cpu(), y.cpu()))
    torch.testing.assert_close(*states)
    torch.testing.assert_close(*results)


def test_a_call_that_is_refused_writes_nothing() -> None:
    count = torch.zeros(1, device="fusewire")
    base = torch.ones(2, 3, device="fusewire")

    @fusewire.torch.step
    def add(x: torch.Tensor, y: torch.Tensor) -> None:
        count.add_(1)
        x.add_(y)

    for _ in range(4):
        add(base[0].clone(), base[1].clone())
    with pytest.raises(ArgumentError, match="shares elements"):
        add(base[0], base[1])
    assert (count.item(), base.sum().item()) == (4, 6)
