"""State on a device with memory of its own: what the caller changes reaches it, and stays."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from situate.runtime.hardware import RealDevice  # noqa: E402
from situate.runtime.mirror import Mirror  # noqa: E402
from situate.runtime.optimizers import default  # noqa: E402
from situate.runtime.step import PlacedStep  # noqa: E402
from tests.runtime.entries import contents, entry, same  # noqa: E402
from tests.runtime.pairs import Pair  # noqa: E402
from tests.runtime.steps import cut  # noqa: E402

CPU = torch.device("cpu")


@pytest.fixture
def pair() -> Pair:
    return Pair("towers", functools.partial(default, "adam"))


def apart(pair: Pair, keep: bool) -> PlacedStep:
    """Its step, on a device that works on copies."""
    device = RealDevice("apart", "cpu", 1, mirrored=True)
    return PlacedStep(cut(pair.program, 1), pair.model, pair.optimizer, [device], keep=keep)


def put_in_place(parameters: list[torch.nn.Parameter]) -> None:
    for parameter in parameters:
        parameter.data = torch.full_like(parameter, 0.1)


def from_vector(parameters: list[torch.nn.Parameter]) -> None:
    vector = torch.linspace(-0.1, 0.1, sum(parameter.numel() for parameter in parameters))
    torch.nn.utils.vector_to_parameters(vector, parameters)


def unseen(parameters: list[torch.nn.Parameter]) -> None:
    for parameter in parameters:
        parameter.data.clamp_(-0.01, 0.01)


def plainly(parameters: list[torch.nn.Parameter]) -> None:
    with torch.no_grad():
        for parameter in parameters:
            parameter.mul_(0.5)


@pytest.mark.parametrize(
    ("change", "keep"),
    [
        *((change, keep) for change in (put_in_place, from_vector) for keep in (True, False)),
        (unseen, True),
    ],
)
def test_what_is_put_into_data_is_trained_on(
    pair: Pair, change: Callable[[list[torch.nn.Parameter]], None], keep: bool
) -> None:
    with apart(pair, keep) as step:
        pair.both(step)
        for model in (pair.model, pair.copy):
            change(list(model.parameters()))
        pair.both(step)
        step.sync()
        pair.assert_same()


@pytest.mark.parametrize(("change", "keep"), [(plainly, True), (plainly, False), (unseen, True)])
def test_what_was_changed_is_saved(
    pair: Pair, change: Callable[[list[torch.nn.Parameter]], None], keep: bool
) -> None:
    with apart(pair, keep) as step:
        pair.both(step)
        step.sync()
        for model in (pair.model, pair.copy):
            change(list(model.parameters()))
        step.model.state_dict()
        pair.assert_same()
        pair.both(step)
    pair.assert_same()


def test_it_takes_over_all_that_it_holds_and_no_more() -> None:
    host = [entry(torch.full((3,), float(number))) for number in range(2)]
    mirror = Mirror(host, here={0}, changed=[0], device=CPU)
    for held in host:
        held.value.add_(5.0)
        held.count.add_(1.0)
    assert not same(contents(mirror.state[0]), contents(host[0]))
    mirror.load_all()
    assert same(contents(mirror.state[0]), contents(host[0]))
    assert mirror.state[1] is host[1]


def test_it_takes_over_the_parts_that_are_named() -> None:
    host = entry(torch.zeros(3))
    mirror = Mirror([host], here={0}, changed=[0], device=CPU)
    host.value.add_(1.0)
    host.count.add_(1.0)
    mirror.load([(0, 0)])
    assert mirror.state[0].value.tolist() == [1.0, 1.0, 1.0]
    assert float(mirror.state[0].count) == 0.0


def test_what_is_brought_back_can_be_undone() -> None:
    host = entry(torch.zeros(3))
    mirror = Mirror([host], here={0}, changed=[0], device=CPU)
    mirror.state[0].value.add_(1.0)
    mirror.store(4)
    assert host.value.tolist() == [1.0, 1.0, 1.0]
    host.undo(4)
    assert host.value.tolist() == [0.0, 0.0, 0.0]
