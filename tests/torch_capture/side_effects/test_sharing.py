"""Tensors of a model that share memory are one, or are not written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.runtime.equality import compare  # noqa: E402
from situate.runtime.step import PlacedStep  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.side_effects.sharing import check_apart  # noqa: E402
from tests.runtime.placing import placed_step, sgd  # noqa: E402

BASE = torch.zeros(4, 4)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (BASE, BASE[1]),
        (BASE, BASE.t()),
        (BASE[:3], BASE[2:]),
        (BASE[0], BASE.view(torch.int32)[0, 3:]),
        (BASE.diagonal(), BASE[3]),
    ],
)
def test_two_that_overlap_are_named_where_one_is_written(first: Tensor, second: Tensor) -> None:
    state = {"one": first, "other": second}
    check_apart(state, ())
    for written in state:
        with pytest.raises(
            SituateError, match=r"'one' and 'other' share memory, .*: make them one"
        ):
            check_apart(state, (written,))


@pytest.mark.parametrize(
    ("first", "second"),
    [(BASE, BASE), (BASE[0], BASE[1]), (BASE, torch.zeros(4)), (BASE[:0], BASE)],
)
def test_one_tensor_by_two_names_and_parts_that_do_not_overlap_are_apart(
    first: Tensor, second: Tensor
) -> None:
    check_apart({"one": first, "other": second}, ("one", "other"))


class Sharing(nn.Module):
    """Has a buffer, a part of it, and a frozen parameter that is another part."""

    base: Tensor
    part: Tensor

    def __init__(self, write: Callable[[Sharing, Tensor], object]) -> None:
        super().__init__()
        self.layer, self.write = nn.Linear(3, 3), write
        self.register_buffer("base", torch.zeros(3, 3))
        self.register_buffer("part", self.base[0])
        self.frozen = nn.Parameter(self.base.t()[0], requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.write(self, x)
        out: Tensor = self.layer(x + self.part + self.frozen).mean()
        return out


@pytest.mark.parametrize(
    "write",
    [
        lambda model, x: model.part.add_(x.mean(0)),
        lambda model, x: model.frozen.add_(x.mean(0)),
        lambda model, x: model.base[0].add_(1),
        lambda model, x: setattr(model, "part", model.part + 1),
    ],
)
def test_capture_refuses_to_write_into_common_memory(
    write: Callable[[Sharing, Tensor], object],
) -> None:
    with pytest.raises(SituateError, match=r"share memory, which the step writes: make them one"):
        capture(lambda: (Sharing(write), torch.ones(4, 3), None))


def test_common_memory_that_is_only_read_is_captured() -> None:
    assert capture(lambda: (Sharing(lambda model, x: None), torch.ones(4, 3), None)).ops


class Whole(nn.Module):
    """Takes the part in the step."""

    base: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("base", torch.zeros(3, 3))

    def forward(self, x: Tensor) -> Tensor:
        part = self.base[0]
        part.add_(x.detach().mean(0))
        out: Tensor = self.layer(x + part + self.base.t()[0]).mean()
        return out


def test_a_part_that_the_step_takes_of_one_buffer_is_written_as_pytorch_does() -> None:
    found = compare(Whole(), torch.randn(4, 3), None, sgd, placed_step_of_whole, threads=1)
    assert found.within(0.0)
    assert found.changed == 3


def placed_step_of_whole(model: nn.Module, optimizer: Any) -> PlacedStep:
    return placed_step(model, optimizer, given=((torch.randn(4, 3),), None))
