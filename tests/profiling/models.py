"""Small models to measure, by name."""

from __future__ import annotations

from typing import Any


def mlp() -> Any:
    """Two layers, a target, cross entropy."""
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
    return model, (torch.randn(8, 32), torch.randint(10, (8,))), nn.CrossEntropyLoss()


def tied() -> Any:
    """A bit of everything: an embedding tied to the output, dropout, batch-norm, a strided view."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(20, 16)
            self.norm, self.drop = nn.BatchNorm1d(16), nn.Dropout(0.5)
            self.out = nn.Linear(16, 20, bias=False)
            self.out.weight = self.table.weight

        def forward(self, words: torch.Tensor) -> torch.Tensor:
            x = self.drop(self.norm(self.table(words)))
            return self.out(x.t().contiguous().t())

    def loss(model: nn.Module, words: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(model(words), words)

    return Net(), (torch.randint(20, (12,)),), loss


def two() -> Any:
    """Not three things."""
    return 1, 2


def broken() -> Any:
    """No model at all."""
    raise RuntimeError("no weights here")
