"""Equal numbers are of values that are computed alike."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from situate.torch_capture.side_effects.value_numbering import Run, Values, numbered  # noqa: E402

Step = Callable[[Tensor, Tensor], Tensor]


class Steps:
    """Runs of steps on a fake input and a fake buffer."""

    def __init__(self) -> None:
        self.mode = FakeTensorMode()
        self.values = Values(self.mode)
        with self.mode:
            self.buffer = torch.zeros(3)

    def number(self, step: Step, changed: tuple[str, ...] = ()) -> str:
        """The value number of a step's output in another run."""
        with self.mode:
            x = torch.empty(4, 3)
        self.values.begin([x], {"buffer": self.buffer}, changed, Run())
        with self.mode, numbered(self.values):
            result = step(x, self.buffer)
        return self.values.of(result)


def in_place(x: Tensor, _: Tensor) -> Tensor:
    result = torch.zeros(4, 3)
    result[0].add_(x[0])
    return result


ALIKE: list[Step] = [
    lambda x, b: x * 2 + b,
    lambda x, b: x.t()[0] * b.sum(),
    lambda x, b: torch.dropout(x, 0.5, True) + torch.rand(3),
    lambda x, b: x + torch.tensor([1.0, 2.0, 3.0]),
    in_place,
]


# Equal computations have equal numbers, and different ones do not.
@pytest.mark.parametrize("step", ALIKE)
def test_a_step_that_runs_again_has_the_same_number(step: Step) -> None:
    steps = Steps()
    assert steps.number(step) == steps.number(step)


def test_others_have_other_numbers() -> None:
    steps = Steps()
    different: list[Step] = [
        *ALIKE,
        lambda x, b: x * 3 + b,
        lambda x, b: x[1] * b.sum(),
        lambda x, b: x + torch.tensor([1.0, 2.0, 4.0]),
        lambda x, b: torch.zeros(4, 3),
        lambda x, b: x,
        lambda x, b: b,
    ]
    assert len({steps.number(step) for step in different}) == len(different)


def test_a_write_through_a_view_is_seen_by_the_others() -> None:
    def write_row(x: Tensor, _: Tensor) -> Tensor:
        y = x.clone()
        row = y[1]
        y[0] = 7.0
        return row

    steps = Steps()
    assert steps.number(write_row) != steps.number(lambda x, b: x.clone()[1])


# Values of an earlier run differ from new ones if they depend on anything that changes.
def test_what_is_left_of_a_run_before_is_told_from_what_is_made_now() -> None:
    steps = Steps()
    cache: list[Tensor] = []

    def keeping(x: Tensor, _: Tensor) -> Tensor:
        cache.append(x * 2)
        return cache[0] + 1

    assert steps.number(keeping) != steps.number(keeping)


def test_what_was_made_of_constants_and_of_state_that_does_not_change_is_not() -> None:
    def caching(cache: list[Tensor]) -> Step:
        def step(x: Tensor, buffer: Tensor) -> Tensor:
            if not cache:
                cache.append(torch.ones(3).cumsum(0) * buffer)
            return x + cache[0]

        return step

    steps, cached = Steps(), caching([])
    assert steps.number(cached) == steps.number(cached)
    steps, cached = Steps(), caching([])
    assert steps.number(cached) != steps.number(cached, changed=("buffer",))


def test_real_tensors_are_known_by_their_content() -> None:
    steps = Steps()
    steps.mode.allow_non_fake_inputs = True
    real = torch.ones(3)
    first = steps.number(lambda x, b: x + real)
    assert first == steps.number(lambda x, b: x + real)
    real[0] = 2.0
    assert first != steps.number(lambda x, b: x + real)


def test_a_write_is_noted_of_the_storage() -> None:
    steps = Steps()
    steps.number(lambda x, b: b[:2].add_(1))
    assert steps.values.is_written(steps.buffer)
    steps.number(lambda x, b: b + 1)
    assert not steps.values.is_written(steps.buffer)
