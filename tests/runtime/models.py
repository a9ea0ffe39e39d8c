"""Small training steps of every kind that a placed step has to carry: model, inputs, loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

ModelParts = tuple[nn.Module, tuple[Tensor, ...], Callable[..., Tensor]]


def entropy(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    """Cross entropy of the model's output for `x`."""
    return functional.cross_entropy(model(x).flatten(0, -2), y.flatten())


class Towers(nn.Module):
    """Two branches of one input."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(6, 5), nn.Linear(6, 4)
        self.head = nn.Linear(9, 3)

    def forward(self, x: Tensor) -> Tensor:
        both = functional.gelu(self.left(x)), torch.tanh(self.right(x))
        out: Tensor = self.head(torch.cat(both, 1))
        return out


def towers() -> ModelParts:
    torch.manual_seed(1)
    return Towers(), (torch.randn(8, 6), torch.randint(3, (8,))), entropy


def convolutional() -> ModelParts:
    """Batch-norm counts and averages, dropout draws."""
    torch.manual_seed(2)
    model = nn.Sequential(
        nn.Conv2d(2, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        nn.Dropout(0.4),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(16, 3),
    )
    return model, (torch.randn(5, 2, 6, 6), torch.randint(3, (5,))), entropy


class Tied(nn.Module):
    """A word's embedding is its output weight."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 6)
        self.norm = nn.LayerNorm(6)
        self.out = nn.Linear(6, 11, bias=False)
        self.out.weight = self.table.weight

    def forward(self, words: Tensor) -> Tensor:
        out: Tensor = self.out(self.norm(self.table(words)))
        return out


def tied() -> ModelParts:
    torch.manual_seed(3)
    words = torch.randint(11, (3, 4))
    return Tied(), (words, words.roll(1, 1)), entropy


class Unrolled(nn.Module):
    """One cell, word after word."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.out = nn.LSTMCell(4, 5), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        state, text = None, []
        for word in x.unbind(0):
            state = self.cell(word, state)
            text.append(self.out(state[0]))
        return torch.stack(text)


def unrolled() -> ModelParts:
    torch.manual_seed(4)
    return Unrolled(), (torch.randn(3, 2, 4), torch.randint(3, (3, 2))), entropy


class Gated(nn.Module):
    """Gates in parts that PyTorch hands out as tensors of their own, and which share one memory."""

    def __init__(self) -> None:
        super().__init__()
        self.gates, self.out = nn.Linear(4, 9), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        keep, new, scale = self.gates(x).unsafe_chunk(3, 1)
        first, rest = (keep * scale).unsafe_split_with_sizes([1, 2], 1)
        return self.out(keep.sigmoid() * new.tanh() + torch.cat([rest, first], 1))


def gated() -> ModelParts:
    torch.manual_seed(10)
    return Gated(), (torch.randn(6, 4), torch.randint(3, (6,))), entropy


class Odd(nn.Module):
    """Buffers that several ops read and overwrite, constants, writes in place, parameters that are
    frozen or never read."""

    inputs_seen: Tensor
    scale: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.frozen = nn.Linear(4, 4).requires_grad_(False)
        self.unread = nn.Linear(4, 4)
        self.register_buffer("seen", torch.zeros(4))
        self.register_buffer("scale", torch.full((4,), 2.0), persistent=False)
        self.shift = torch.arange(4.0)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.shift
        x.mul_(self.scale).clamp_(min=-3.0)
        y = self.first(x)
        self.seen.mul_(0.9).add_(y.detach().mean(0), alpha=0.1)
        y = self.frozen(y - self.seen)
        y[:, 0] = 1.0
        out: Tensor = self.second(y.t().contiguous().t()) * self.scale
        return out.masked_fill(out > 5.0, float("-inf")).nan_to_num(neginf=-7.0)


def odd() -> ModelParts:
    torch.manual_seed(5)
    return Odd(), (torch.randn(6, 4), torch.randint(4, (6,))), entropy


class Strided(nn.Module):
    """A parameter that is a transposed tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 7).t())

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(x @ self.weight)


def strided() -> ModelParts:
    """Its input is transposed, too."""
    torch.manual_seed(6)
    return Strided(), (torch.randn(7, 4).t(), torch.randint(5, (4,))), entropy


def wide() -> ModelParts:
    """A parameter that is updated in several pieces."""
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(300, 260), nn.ReLU(), nn.Linear(260, 3))
    return model, (torch.randn(4, 300), torch.randint(3, (4,))), entropy


class Relative(nn.Module):
    """Takes parts of values from the values themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        square = self.first.weight * 2
        h = (h - h[:, :1]) @ (square - square.t())
        h = h.flip(0) - h[:1]
        out: Tensor = self.last(h - h.mean(0))
        return out


def relative() -> ModelParts:
    torch.manual_seed(8)
    return Relative(), (torch.randn(8, 6), torch.randint(3, (8,))), entropy


class Following(nn.Module):
    """A frozen layer follows a trained one; a buffer is assigned an average."""

    average: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.target = nn.Linear(6, 3), nn.Linear(6, 3)
        self.target.requires_grad_(False)
        self.register_buffer("average", torch.ones(3))

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            for target, source in zip(
                self.target.parameters(), self.layer.parameters(), strict=True
            ):
                target.mul_(0.9).add_(source, alpha=0.1)
        out = self.layer(x) * self.average - self.target(x)
        self.average = self.average * 0.9 + out.detach().mean(0) * 0.1
        return out


def following() -> ModelParts:
    torch.manual_seed(9)
    return Following(), (torch.randn(8, 6), torch.randint(3, (8,))), entropy


class Turned(nn.Module):
    """The kernels' results for transposed values have other layouts than PyTorch tells capture."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(5, 6), nn.Linear(6, 2)
        self.batch, self.layer = nn.BatchNorm1d(6), nn.LayerNorm(6)

    def forward(self, x: Tensor) -> Tensor:
        h = self.batch(self.first(x).transpose(1, 2)).transpose(1, 2)
        out: Tensor = self.last(self.layer(h.transpose(0, 1)))
        return out.transpose(0, 1)


def turned() -> ModelParts:
    torch.manual_seed(11)
    x, y = torch.randn(3, 4, 5), torch.randn(3, 4, 2)
    return Turned(), (x, y), lambda model, x, y: functional.mse_loss(model(x), y)


def double() -> ModelParts:
    model, (x, y), loss = towers()
    return model.double(), (x.double(), y), loss


def brief() -> ModelParts:
    model, (x, y), loss = towers()
    return model.bfloat16(), (x.bfloat16(), y), loss


MODELS: dict[str, Callable[[], ModelParts]] = {
    build.__name__: build
    for build in (
        towers,
        convolutional,
        tied,
        unrolled,
        gated,
        odd,
        strided,
        wide,
        relative,
        following,
        turned,
        double,
        brief,
    )
}


class Structured(nn.Module):
    """Returns a dict of a tuple and a number."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm = nn.Linear(3, 2), nn.BatchNorm1d(2)

    def forward(self, x: Tensor, scale: Tensor) -> dict[str, Any]:
        y = self.norm(self.layer(x))
        return {"pair": (y * scale, y.t()), "count": 3, "nothing": None}
