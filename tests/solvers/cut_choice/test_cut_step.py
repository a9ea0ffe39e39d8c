"""Steps whose ops may be cut and whose batch may be sliced."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from situate import Problem  # noqa: E402
from situate.solvers.cut_choice.cut_step import CutStep  # noqa: E402
from situate.torch_capture import trace_step  # noqa: E402
from tests.torch_capture.cuts.cut_steps import devices, wide_layers  # noqa: E402
from tests.torch_capture.cuts.networks import decoder  # noqa: E402


def known(build: Any, *recompute: str, training: bool = True) -> CutStep:
    step = trace_step(build, "adam", "step", training=training)
    return CutStep.of(step, lambda graph: Problem(graph, devices(2)), recompute)


# Letters number the ops of the step in which every module runs once.
def test_modules_that_run_again_have_no_letters() -> None:
    assert known(decoder).letters() is not None
    assert known(decoder, "layers.0").letters() is None


# Slices are of steps that train on several samples, and train the same model in slices.
def test_a_batch_has_slices() -> None:
    sliced = known(wide_layers(4)).sliced((3, 1))
    assert sliced is not None
    slices = sliced.problem_of(None).graph.slices
    assert slices is not None
    assert slices.shares == (3, 1)
    assert sliced.sliced((1, 1)) is None


def test_more_slices_than_samples_are_none() -> None:
    assert known(wide_layers(1)).sliced((1, 1)) is None


def test_inference_has_no_slices() -> None:
    assert known(wide_layers(4), training=False).sliced((1, 1)) is None


def test_slices_that_change_the_numbers_of_a_step_are_none() -> None:
    """The statistics of a batch norm would be those of a slice."""

    def build() -> Any:
        model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))

        def loss(model: nn.Module, x: Tensor) -> Tensor:
            return model(x).square().mean()

        return model, (torch.empty(4, 8),), loss

    assert known(build).sliced((1, 1)) is None


def test_slices_of_a_mean_that_may_leave_out_labels_are_none() -> None:
    """A slice would be divided by the labels of its own."""

    def build() -> Any:
        def loss(model: nn.Module, ids: Tensor, labels: Tensor) -> Tensor:
            return nn.functional.cross_entropy(model(ids).flatten(0, 1), labels.flatten())

        model = nn.Sequential(nn.Embedding(16, 8), nn.Linear(8, 16))
        ids = torch.zeros(4, 6, dtype=torch.int64)
        return model, (ids, ids.clone()), loss

    assert known(build).sliced((1, 1)) is None
