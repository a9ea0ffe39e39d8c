"""Processes compute with the caller's settings of PyTorch."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator

import pytest
from torch import nn

torch = pytest.importorskip("torch")

from situate.runtime.programs.program import capture_program  # noqa: E402
from situate.runtime.settings import (  # noqa: E402
    FLAGS,
    FUNCTIONS,
    apply_settings,
    current_settings,
    use_threads,
)
from situate.runtime.step import StartDevices  # noqa: E402
from tests.runtime.steps import step_of  # noqa: E402


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = current_settings()
    yield
    apply_settings(before)


def deterministic() -> None:
    torch.use_deterministic_algorithms(True, warn_only=True)


def without_tf32() -> None:
    torch.backends.cudnn.allow_tf32 = False


def with_tf32() -> None:
    torch.set_float32_matmul_precision("high")


def with_tf32_anew() -> None:
    torch.backends.cuda.matmul.fp32_precision = "tf32"


def without_mkldnn() -> None:
    torch.backends.mkldnn.enabled = False


def in_double() -> None:
    torch.set_default_dtype(torch.float64)


# Settings in another process.
@pytest.mark.parametrize(
    "choose",
    [deterministic, without_tf32, with_tf32, with_tf32_anew, without_mkldnn, in_double],
)
def test_the_callers_settings_apply(choose: Callable[[], None]) -> None:
    before = current_settings()
    assert before.keys() == {*FUNCTIONS, *FLAGS}
    choose()
    setting = current_settings()
    assert setting != before
    apply_settings(before)
    assert current_settings() == before
    apply_settings(pickle.loads(pickle.dumps(setting)))  # noqa: S301 - made in this line
    assert current_settings() == setting


class OfIntegers(nn.Module):
    """The product of integers and a float is of the default type."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.layer(x) * (k * 0.1).sin()
        return out


def test_devices_of_their_own_compute_as_the_caller_does(processes: StartDevices) -> None:
    in_double()
    torch.manual_seed(0)
    model, inputs = OfIntegers(), (torch.randn(4, 3), torch.arange(3))
    captured = capture_program(model, inputs, None, training=False)
    with torch.no_grad():
        expected = model.eval()(*inputs)
    with step_of(captured, model, None, 2, processes) as step:
        assert torch.equal(step(*inputs), expected)


# Threads within a block.
def test_threads_are_as_before_afterwards():
    before = torch.get_num_threads()
    with use_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_none_leaves_them():
    before = torch.get_num_threads()
    with use_threads(None):
        assert torch.get_num_threads() == before
