"""Runs of a step, and the state that each run preserves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

from situate.errors import SituateError  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from situate.torch_capture.refusals.errors import Unsupported  # noqa: E402
from situate.torch_capture.side_effects.runs import (  # noqa: E402  # noqa: E402
    Failed,
    Runs,
    contents_kept,
    invariants,
    settings_kept,
)
from situate.torch_capture.side_effects.value_numbering import Run  # noqa: E402


class Step(nn.Module):
    """Calls a function with a model and an input."""

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


# Outcomes are equal if and only if the runs compute the same.
def test_outcomes_of_the_same_computation_are_equal() -> None:
    repeated = runs(lambda model, x: model(x.mul_(2)).sum())
    one, other = repeated.run(Run()), repeated.run(Run())
    assert one == other
    assert {*repeated.changed} == {*repeated.state}


def test_what_is_left_in_inputs_and_how_gradients_flow_count() -> None:
    calls = [0]

    def once(change: Callable[[Any, Tensor], Tensor]) -> Callable[[Any, Tensor], Tensor]:
        calls[0] = 0

        def does(model: Any, x: Tensor) -> Tensor:
            calls[0] += 1
            return change(model, x) if calls[0] == 1 else model(x).sum()

        return does

    repeated = runs(once(lambda model, x: (model(x).sum(), x.add_(1))[0]))
    one, other = repeated.run(Run()), repeated.run(Run())
    assert one.returned == other.returned
    assert one.state != other.state
    repeated = runs(once(lambda model, x: (model(x) + x.detach() * 0).sum()))
    assert repeated.run(Run()).gradients != repeated.run(Run()).gradients


def test_inference_changes_no_parameter() -> None:
    repeated = runs(lambda model, x: x * model.weight, training=False)
    repeated.run(Run())
    assert repeated.changed == ()


def test_a_step_that_fails_says_why() -> None:
    with pytest.raises(Failed) as error:
        runs(lambda model, x: x.reshape(5)).run(Run())
    assert "shape" in str(error.value.__cause__)


def test_what_is_changed_for_good_is_refused() -> None:
    with pytest.raises(SituateError, match="the step changes whether the model trains"):
        runs(lambda model, x: model.eval()(x)).run(Run())


def graded(model: Any) -> None:
    model.weight.grad = torch.ones_like(model.weight)


CHANGES: list[tuple[Callable[[Any, Tensor], object], str]] = [
    (lambda model, x: model.eval(), r"whether the model trains \(train or eval\)"),
    (lambda model, x: graded(model), "the gradient of parameter 'weight'"),
    (lambda model, x: x.unsqueeze_(0), "the shape of input 0"),
    (
        lambda model, x: model.register_parameter("more", nn.Parameter(torch.ones(1))),
        "the parameters and modules of the model",
    ),
    (lambda model, x: x.requires_grad_(), "whether input 0 takes a gradient"),
    (lambda model, x: model.frozen.requires_grad_(), "whether parameter 'frozen' takes a gradient"),
]


# A run may change neither the model nor PyTorch's settings for good.
def build_model() -> nn.Module:
    model = nn.Linear(3, 3)
    model.frozen = nn.Parameter(torch.ones(1), requires_grad=False)
    return model


@pytest.mark.parametrize(("change", "what"), CHANGES)
def test_what_a_step_changes_for_good_is_named(change: Any, what: str) -> None:
    def loss(model: Any, x: Tensor) -> Tensor:
        change(model, x)
        return model(x.reshape(-1, 3) * 1).mean()  # type: ignore[no-any-return]

    with pytest.raises(SituateError, match=f"the step changes {what}, which a placed step would"):
        capture(lambda: (build_model(), (torch.ones(4, 3),), loss))


def test_what_is_as_it_was_is_equal() -> None:
    model, x = build_model(), torch.ones(4, 3)
    before = invariants(model, [x])
    model.eval()
    model.train()
    assert invariants(model, [x]) == before


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda: torch.set_grad_enabled(False), "torch.set_grad_enabled"),
        (lambda: torch.set_default_dtype(torch.float64), "torch.set_default_dtype"),
        (lambda: torch.use_deterministic_algorithms(True), "torch.use_deterministic_algorithms"),
        (lambda: torch.set_num_threads(torch.get_num_threads() + 1), "torch.set_num_threads"),
    ],
)
def test_settings_that_are_left_behind_are_named_and_put_back(change: Any, name: str) -> None:
    settings = torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads()
    with pytest.raises(Unsupported, match=name), settings_kept():
        change()
    assert settings == (
        torch.is_grad_enabled(),
        torch.get_default_dtype(),
        torch.get_num_threads(),
    )
    assert not torch.are_deterministic_algorithms_enabled()


def test_a_step_may_set_them_for_a_part_of_itself() -> None:
    with settings_kept(), torch.no_grad():
        pass


@pytest.mark.parametrize(
    "change",
    [
        lambda batch: batch.pop("y"),
        lambda batch: batch.update(x=batch["x"] * 2),
        lambda batch: batch["more"].append(batch["x"]),
        lambda batch: batch.update(z=1),
    ],
)
def test_dicts_and_lists_of_inputs_hold_what_they_did(change: Any) -> None:
    batch = {"x": torch.ones(1), "y": torch.ones(1), "more": [torch.ones(1)]}
    with (
        pytest.raises(
            SituateError, match=r"into a dict or list of its inputs, .*: let it change a"
        ),
        contents_kept((batch,)),
    ):
        change(batch)


def test_tensors_in_them_may_be_written_and_copies_changed() -> None:
    batch = {"x": torch.ones(1)}
    with contents_kept((batch,)):
        batch["x"].add_(1)
        dict(batch).pop("x")


def test_capture_looks_at_them() -> None:
    def loss(model: Any, batch: dict[str, Tensor]) -> Tensor:
        return model(batch.pop("x")).mean()  # type: ignore[no-any-return]

    with pytest.raises(SituateError, match="into a dict or list of its inputs"):
        capture(lambda: (build_model(), ({"x": torch.ones(4, 3)},), loss))
