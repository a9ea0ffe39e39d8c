"""A step that runs again has the same outcome where it computes the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.torch_capture.side_effects.runs import Failed, Runs  # noqa: E402
from situate.torch_capture.side_effects.value_numbering import Run  # noqa: E402


class Step(nn.Module):
    """Does with a model and an input what it is told."""

    def __init__(self, does: Callable[[Any, Tensor], Tensor]) -> None:
        super().__init__()
        self.model, self._does = nn.BatchNorm1d(3), does

    def forward(self, x: Tensor) -> Tensor:
        return self._does(self.model, x)


def runs(does: Callable[[Any, Tensor], Tensor], training: bool = True) -> Runs:
    mode = FakeTensorMode()
    with mode:
        step, x = Step(does), torch.empty(4, 3)
    return Runs(step, [x], training, mode)


def test_outcomes_of_the_same_computation_are_equal() -> None:
    made = runs(lambda model, x: model(x.mul_(2)).sum())
    one, other = made.run(Run()), made.run(Run())
    assert one == other
    assert {*made.changed} == {*made.state}


def test_what_is_left_in_inputs_and_how_gradients_flow_count() -> None:
    calls = [0]

    def once(change: Callable[[Any, Tensor], Tensor]) -> Callable[[Any, Tensor], Tensor]:
        calls[0] = 0

        def does(model: Any, x: Tensor) -> Tensor:
            calls[0] += 1
            return change(model, x) if calls[0] == 1 else model(x).sum()

        return does

    made = runs(once(lambda model, x: (model(x).sum(), x.add_(1))[0]))
    one, other = made.run(Run()), made.run(Run())
    assert one.returned == other.returned
    assert one.left != other.left
    made = runs(once(lambda model, x: (model(x) + x.detach() * 0).sum()))
    assert made.run(Run()).gradients != made.run(Run()).gradients


def test_inference_changes_no_parameter() -> None:
    made = runs(lambda model, x: x * model.weight, training=False)
    made.run(Run())
    assert made.changed == ()


def test_a_step_that_fails_says_why() -> None:
    with pytest.raises(Failed) as error:
        runs(lambda model, x: x.reshape(5)).run(Run())
    assert "shape" in str(error.value.__cause__)


def test_what_is_changed_for_good_is_refused() -> None:
    with pytest.raises(SituateError, match="the step changes whether the model trains"):
        runs(lambda model, x: model.eval()(x)).run(Run())
