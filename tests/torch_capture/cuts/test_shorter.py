"""Models with fewer of their repeated blocks."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.torch_capture import trace_step  # noqa: E402
from situate.torch_capture.cuts.shorter import chains  # noqa: E402
from tests.torch_capture.cuts.networks import decoder  # noqa: E402


class Branches(nn.Module):
    """Layers that all read the input, as experts do."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def forward(self, x):
        return torch.stack([layer(x) for layer in self.layers]).sum(0)


def branches():
    return Branches(), (torch.randn(4, 8),), lambda model, x: model(x).sum()


def failing():
    """A model that needs all its layers."""

    class Counted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

        def forward(self, x):
            for k in range(4):
                x = self.layers[k](x)
            return x

    return Counted(), (torch.randn(4, 8),), lambda model, x: model(x).sum()


# Layers that read one another are left out, and the rest of the model stays.
def test_a_step_has_fewer_layers() -> None:
    step = trace_step(lambda: decoder(layers=6), "sgd", "network")
    short = step.shorter(2)
    assert short is not None
    assert short.units["heads"] == [4, 4]
    assert len(step.units["heads"]) == 6
    assert short.graph().ops == trace_step(lambda: decoder(layers=2), "sgd", "network").graph().ops


def test_branches_are_no_chain() -> None:
    step = trace_step(branches, "sgd", "network")
    assert chains(step.trace) == set()
    assert step.shorter(2) is None


def test_a_step_with_few_layers_has_no_shorter_one() -> None:
    assert trace_step(decoder, "sgd", "network").shorter(2) is None


def test_a_model_that_needs_all_its_layers_has_no_shorter_step() -> None:
    assert trace_step(failing, "sgd", "network").shorter(2) is None
