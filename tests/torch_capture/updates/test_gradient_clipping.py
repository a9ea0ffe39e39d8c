"""Clipped gradients in a captured step equal those of `clip_grad_norm_`, to the last bit."""

from __future__ import annotations

import copy
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from situate.runtime.equality import UnplacedOptions, compare  # noqa: E402
from situate.runtime.model_state.optimizers import default_optimizer  # noqa: E402
from situate.runtime.programs.program import capture_program  # noqa: E402
from situate.torch_capture import capture  # noqa: E402
from tests.runtime.steps import step_of  # noqa: E402


class Awkward(nn.Module):
    """Weights under two names, in several layouts and types, frozen, or read by nobody."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.words = nn.Embedding(20, 6)
        self.out = nn.Linear(6, 20, bias=False)
        self.out.weight = self.words.weight
        self.low = nn.Linear(8, 6).bfloat16()
        self.frozen = nn.Linear(6, 6).requires_grad_(requires_grad=False)
        self.unread = nn.Linear(3, 3)
        self.scale = nn.Parameter(torch.tensor(0.5, dtype=torch.bfloat16))
        self.shift = nn.Parameter(torch.tensor(0.5, dtype=torch.float64))

    def forward(self, x: torch.Tensor, word: torch.Tensor) -> torch.Tensor:
        hidden = self.low(F.relu(self.conv(x)).mean((2, 3)).bfloat16()).float()
        logits: torch.Tensor = self.out(self.frozen(hidden) + self.words(word))
        return logits * self.scale.float() + self.shift.float() * logits.square()


def awkward() -> tuple[Any, ...]:
    torch.manual_seed(0)
    inputs = torch.randn(4, 3, 9, 9), torch.randint(20, (4,)), torch.randint(20, (4,))
    return Awkward(), inputs, lambda model, x, i, y: F.cross_entropy(model(x, i), y)


# Clipped gradients equal PyTorch's to the last bit.
@pytest.mark.parametrize("kind", ["sgd", "adamw"])
@pytest.mark.parametrize("clip", [0.01, 0.5, 1e6])
def test_a_step_is_that_of_pytorch(kind: str, clip: float) -> None:
    model, inputs, loss = awkward()
    program = capture_program(model, inputs, loss, optimizer=f"{kind}:clip={clip}")
    result = compare(
        model,
        inputs,
        loss,
        lambda parameters: default_optimizer(kind, parameters),
        lambda trained, optimizer: step_of(program, trained, optimizer, 1),
        unplaced=UnplacedOptions(clip=clip),
        threads=1,
        name="awkward",
    )
    assert result.within(0)
    assert result.changed > 2


def test_clipping_changes_the_step() -> None:
    """Without this, the test above could not fail."""
    model, inputs, loss = awkward()
    program = capture_program(model, inputs, loss, optimizer="sgd:clip=0.01")

    def step(trained: nn.Module, optimizer: Any) -> Any:
        return step_of(program, trained, optimizer, 1)

    sgd = lambda parameters: default_optimizer("sgd", parameters)  # noqa: E731
    assert not compare(copy.deepcopy(model), inputs, loss, sgd, step, threads=1).within(0)


def test_ops_say_what_clips_and_stay_with_their_module() -> None:
    graph = capture(awkward, optimizer="adamw:clip=0.5")
    ops = {op.name: op for op in graph.ops}
    assert ops["clip=0.5/clamp"].module == ""
    assert ops["conv/linalg_vector_norm"].module == "conv"
    assert sum(op.kind == "aten.linalg_vector_norm" for op in graph.ops) == 8
    assert not any("clip" in op.name for op in capture(awkward, optimizer="adamw").ops)
