"""Placed steps of slices against PyTorch's loop that accumulates the gradients of the same ones."""

from __future__ import annotations

import copy
import functools

import msgspec
import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from situate.data.slices import Slices  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from situate.runtime.equality import Equality, UnplacedOptions, compare  # noqa: E402
from situate.runtime.programs.program import Program, capture_program  # noqa: E402
from situate.runtime.programs.seeds import kept_generator, seeded_draws  # noqa: E402
from situate.runtime.step import PlacedStep, StartDevices  # noqa: E402
from tests.runtime.models import MODELS  # noqa: E402
from tests.runtime.placing import sgd  # noqa: E402
from tests.runtime.steps import STEPS, assert_same, optimizer_snapshot, state, step_of  # noqa: E402

SHARES = {
    "towers": (2, 2, 2, 2),
    "convolutional": (3, 2),
    "tied": (1, 2),
    "gated": (2, 2, 2),
    "odd": (4, 2),
    "strided": (2, 2),
    "wide": (1, 1, 1, 1),
    "relative": (4, 4),
    "following": (4, 1, 3),
    "turned": (1, 1, 1),
    "double": (3, 5),
    "brief": (4, 4),
}
"""The samples of each slice of one of `MODELS`."""


@functools.cache
def program(name: str, shares: tuple[int, ...]) -> Program:
    model, inputs, loss = MODELS[name]()
    return capture_program(
        model, inputs, loss, optimizer="momentum", name=name, slices=Slices(shares, loss="mean")
    )


def accumulate(
    model: nn.Module, inputs: tuple[Tensor, ...], loss, shares: tuple[int, ...], step: int
) -> Tensor:
    """The gradients of a step, slice after slice, with a placed step's draws; returns the loss."""
    total, begin = torch.tensor(0), 0
    with kept_generator(), seeded_draws(0, step):
        for samples in shares:
            part = loss(model, *(tensor[begin : begin + samples] for tensor in inputs))
            part = part / (sum(shares) / samples)
            part.backward()
            total, begin = (part.detach() + total if begin else part.detach()), begin + samples
    return total


class Looking(nn.Module):
    """Takes another layer where some samples are masked."""

    def __init__(self) -> None:
        super().__init__()
        self.all, self.some = nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        out: Tensor = self.all(x) if mask.all() else self.some(x) * mask[:, None]
        return out


class Doubling(nn.Linear):
    """Writes over its input."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.mul_(2))


def placed_step(model: nn.Module, inputs: tuple[Tensor, ...], loss, slices: Slices) -> Program:
    return capture_program(model, inputs, loss, slices=slices)


def equal(model: nn.Module, inputs: tuple[Tensor, ...], loss, slices: Slices) -> Equality:
    """The step on one device beside the loop."""
    equality = placed_step(model, inputs, loss, slices)
    step = functools.partial(step_of, equality, devices=1)
    return compare(
        model,
        inputs,
        loss,
        sgd,
        step,
        threads=1,
        unplaced=UnplacedOptions(slices=equality.graph.slices),
    )


# Slices against a loop that accumulates gradients.
def test_slices_that_look_at_their_values_are_captured_each_for_its_own():
    mask = torch.ones(8, dtype=torch.bool)
    mask[6] = False
    inputs = torch.randn(8, 6), mask, torch.randn(8, 3)

    def loss(model, x, mask, y):
        return nn.functional.mse_loss(model(x, mask), y)

    model, slices = Looking(), Slices((1, 1), loss="mean")
    assert equal(model, inputs, loss, slices).within(0.0)
    with step_of(
        placed_step(model, inputs, loss, slices), model, sgd([*model.parameters()]), 1
    ) as step:
        other = mask.clone()
        other[0] = False
        with pytest.raises(SituateError, match=r"input 1, slice 0 is False at \[0\] and was True"):
            step(inputs[0], other, inputs[2])
        with pytest.raises(SituateError, match=r"input 0 has shape \[4, 6\], .* for 8 samples"):
            step(*(tensor[:4] for tensor in inputs))


def test_inputs_that_slices_overwrite_are_written_back():
    inputs = torch.randn(8, 6), torch.randn(8, 3)

    def loss(model, x, y):
        return nn.functional.mse_loss(model(x), y)

    equality = equal(Doubling(6, 3), inputs, loss, Slices((3, 1)))
    assert equality.inputs == {0: 0.0}
    assert equality.within(0.0)


def test_a_batch_in_another_dimension_is_cut_there_and_its_gradients_are_clipped():
    model, inputs, loss = MODELS["unrolled"]()
    slices = Slices((1, 1), axes={"0": 1, "1": 1})
    equality = capture_program(model, inputs, loss, optimizer="sgd:clip=0.01", slices=slices)
    step = functools.partial(step_of, equality, devices=1)
    same = compare(
        model,
        inputs,
        loss,
        sgd,
        step,
        threads=1,
        unplaced=UnplacedOptions(clip=0.01, slices=equality.graph.slices),
    )
    assert same.within(0.0)


@pytest.mark.parametrize("devices", [1, 2, 3])
@pytest.mark.parametrize("name", SHARES)
def test_three_steps_are_equal_to_the_last_bit(
    processes: StartDevices, name: str, devices: int
) -> None:
    model, inputs, loss = MODELS[name]()
    other = copy.deepcopy(model)
    optimizer, plain = (
        torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9) for m in (model, other)
    )
    start = processes if devices > 1 else None
    equality = program(name, SHARES[name])
    with step_of(equality, model, optimizer, devices, start, seed=devices) as step:
        for number in range(1, STEPS + 1):
            expected = accumulate(other, inputs, loss, SHARES[name], number)
            plain.step()
            plain.zero_grad()
            assert torch.equal(step(*inputs), expected)
    assert_same(state(model), state(other))
    assert_same(optimizer_snapshot(model, optimizer), optimizer_snapshot(other, plain))


REPLICAS = {
    "towers": ((2, 2, 2, 2), (2, 2)),
    "convolutional": ((3, 2), (1, 1)),
    "tied": ((1, 1, 1), (2, 1)),
    "gated": ((2, 2, 2), (1, 1, 1)),
    "double": ((3, 2, 2, 1), (1, 3)),
    "odd": ((3, 2, 1), (2, 1)),
    "following": ((4, 1, 3), (1, 2)),
}
"""The samples of each slice of one of `MODELS`, and the slices that read each replica."""


# Replicas and sums of gradients.
@pytest.mark.parametrize("devices", [1, 3])
@pytest.mark.parametrize("name", REPLICAS)
def test_replicas_are_equal_to_the_loop_that_adds_up_each_of_them(
    processes: StartDevices, name: str, devices: int
) -> None:
    model, inputs, loss = MODELS[name]()
    shares, replicas = REPLICAS[name]
    slices = Slices(shares, loss="mean", replicas=replicas)
    equality = capture_program(model, inputs, loss, optimizer="adam", name=name, slices=slices)
    start = processes if devices > 1 else None
    step = functools.partial(step_of, equality, devices=devices, start=start)
    same = compare(
        model,
        inputs,
        loss,
        torch.optim.Adam,
        step,
        threads=1,
        unplaced=UnplacedOptions(slices=equality.graph.slices),
    )
    count = len(list(model.parameters())) - len(equality.graph.slices.once)
    assert len(same.copies) == (len(replicas) - 1) * count > 0
    assert same.within(0.0)


TREES = {
    "towers": ((2, 2, 2, 1, 1), ()),
    "double": ((2, 1, 1, 1, 1, 1, 1), (4, 3)),
    "odd": ((1,) * 6, (1,) * 6),
    "following": ((2,) * 4, ()),
}
"""The samples of each slice of one of `MODELS`, and the slices that read each replica."""


@pytest.mark.parametrize("name", TREES)
def test_gradients_of_slices_are_added_up_in_a_tree(processes: StartDevices, name: str):
    model, inputs, loss = MODELS[name]()
    shares, replicas = TREES[name]
    slices = Slices(shares, loss="mean", replicas=replicas, sums="tree")
    equality = capture_program(model, inputs, loss, optimizer="adam", name=name, slices=slices)
    step = functools.partial(step_of, equality, devices=2, start=processes)
    same = functools.partial(compare, model, inputs, loss, torch.optim.Adam, step, threads=1)
    tree = equality.graph.slices
    chain = msgspec.structs.replace(tree, sums="chain")
    assert same(unplaced=UnplacedOptions(slices=tree)).within(0.0)
    assert not same(unplaced=UnplacedOptions(slices=chain)).within(0.0)


def replicated(optimizer: type = torch.optim.Adam) -> tuple[PlacedStep, tuple[Tensor, ...]]:
    model, inputs, loss = MODELS["towers"]()
    slices = Slices((4, 4), loss="mean", replicas=(1, 1))
    equality = capture_program(model, inputs, loss, optimizer="adam", slices=slices)
    return step_of(equality, model, optimizer(model.parameters(), lr=0.1), 1), inputs


def test_a_callers_change_reaches_all_copies_at_the_next_step():
    step, inputs = replicated()
    with step:
        step(*inputs)
        assert step.optimizer is not None
        with torch.no_grad():
            for parameter in step.model.parameters():
                parameter.data.fill_(0.25)
                step.optimizer.state[parameter]["exp_avg"].zero_()
        step._bindings.refresh()
        for name, (copy,) in step.copies.items():
            parameter = step.model.get_parameter(name)
            assert torch.equal(copy["value"], parameter)
            assert copy["value"].data_ptr() != parameter.data_ptr()
            assert torch.equal(copy["exp_avg"], step.optimizer.state[parameter]["exp_avg"])


def test_the_optimizer_keeps_nothing_of_copies():
    step, inputs = replicated()
    with step:
        step(*inputs)
        assert step.optimizer is not None
        assert len(step.optimizer.state) == len(list(step.model.parameters())) == len(step.copies)
