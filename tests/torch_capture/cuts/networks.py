"""Small networks for tests of cuts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Block(nn.Module):
    """A transformer layer with fused queries, keys and values, which it splits or slices."""

    def __init__(
        self,
        hidden: int,
        heads: int,
        inner: int,
        dropout: float,
        attention_dropout: float,
        is_sliced: bool = False,
    ) -> None:
        super().__init__()
        self.is_sliced = is_sliced
        self.heads, self.dropout, self.attention_dropout = heads, dropout, attention_dropout
        self.before, self.between = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, inner), nn.Linear(inner, hidden)

    def forward(self, x: Tensor) -> Tensor:
        b, t, hidden = x.shape
        fused = self.qkv(self.before(x))
        ends = (0, hidden, 2 * hidden, 3 * hidden)
        slices = [fused[..., begin:end] for begin, end in pairwise(ends)]
        fused = slices if self.is_sliced else fused.split(hidden, -1)
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in fused)
        drop = self.attention_dropout if self.training else 0.0
        attention = F.scaled_dot_product_attention(q, k, v, dropout_p=drop, is_causal=True)
        x = x + self.out(attention.transpose(1, 2).reshape(b, t, hidden))
        inner = F.dropout(F.gelu(self.up(self.between(x))), self.dropout, self.training)
        return x + self.down(inner)


class Decoder(nn.Module):
    """A language model whose head is its embedding."""

    def __init__(
        self,
        layers: int = 2,
        dropout: float = 0.0,
        tied: bool = True,
        attention_dropout: float = 0.0,
        is_sliced: bool = False,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(24, 16)
        self.layers = nn.ModuleList(
            Block(16, 4, 24, dropout, attention_dropout, is_sliced) for _ in range(layers)
        )
        self.head = nn.Linear(16, 24, bias=False)
        if tied:
            self.head.weight = self.embedding.weight

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def language_loss(model: nn.Module, tokens: Tensor, targets: Tensor) -> Tensor:
    """The mean cross entropy of the next token."""
    return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())


def decoder(
    layers: int = 2,
    dropout: float = 0.0,
    tied: bool = True,
    attention_dropout: float = 0.0,
    is_sliced: bool = False,
) -> Any:
    """Model, inputs and loss."""
    torch.manual_seed(0)
    tokens = torch.randint(24, (2, 8)), torch.randint(24, (2, 8))
    return Decoder(layers, dropout, tied, attention_dropout, is_sliced), tokens, language_loss


def dropping() -> Any:
    """A decoder of one layer with dropout."""
    return decoder(1, 0.3)


def perceptron() -> Any:
    """Two hidden layers, with dropout."""
    torch.manual_seed(0)
    layers = (nn.Linear(8, 12), nn.ReLU(), nn.Dropout(0.3), nn.Linear(12, 12), nn.Tanh())
    model = nn.Sequential(*layers, nn.Linear(12, 4))
    return model, (torch.randn(6, 8), torch.randn(6, 4)), lambda m, x, y: F.mse_loss(m(x), y)


def samples() -> Any:
    """Four layers for four samples."""
    layers = [m for _ in range(4) for m in (nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 32))]

    def loss(model: nn.Module, x: Tensor) -> Tensor:
        return model(x).square().mean()

    return nn.Sequential(*layers), (torch.randn(4, 16, 32),), loss


def convolutions() -> Any:
    """Convolutions, some in groups, batch norms and poolings."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(4, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, padding=1, groups=4, bias=False),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 6),
    )
    inputs = torch.randn(4, 4, 8, 8), torch.randint(6, (4,))
    return model, inputs, lambda m, x, y: F.cross_entropy(m(x), y)


def recurrent() -> Any:
    """An LSTM, unrolled."""
    torch.manual_seed(0)

    class Reader(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.lstm = nn.Embedding(12, 8), nn.LSTM(8, 8, batch_first=True)
            self.out = nn.Linear(8, 12)

        def forward(self, x: Tensor) -> Tensor:
            return self.out(self.lstm(self.embedding(x))[0])

    inputs = torch.randint(12, (4, 3)), torch.randint(12, (4, 3))
    loss = lambda m, x, y: F.cross_entropy(m(x).flatten(0, 1), y.flatten(), ignore_index=0)  # noqa: E731
    return Reader(), inputs, loss


def dropping_in_attention() -> Any:
    """A decoder of one layer whose attention drops scores, and so has no operator of its own."""
    return decoder(1, attention_dropout=0.1)


def slicing() -> Any:
    """A decoder of one layer that takes queries, keys and values as slices."""
    return decoder(1, is_sliced=True)


class Routing(nn.Module):
    """Experts that take the tokens that want them most, and tokens that take their neighbours."""

    def __init__(self, hidden: int, experts: int, capacity: int) -> None:
        super().__init__()
        self.shape = experts, capacity
        self.before, self.router = nn.Linear(hidden, hidden), nn.Linear(hidden, experts)
        self.up = nn.Parameter(torch.randn(experts, hidden, hidden))

    def forward(self, x: Tensor) -> Tensor:
        y = self.before(x)
        weights, own = self.router(y).softmax(-1).t().topk(self.shape[1])
        inputs = y.index_select(0, own.flatten()).view(*self.shape, -1)
        outputs = (inputs.bmm(self.up) * weights.unsqueeze(2)).flatten(0, 1)
        sums = torch.zeros_like(y).index_add(0, own.flatten(), outputs)
        places = torch.arange(y.shape[1]).flip(0).expand_as(y)
        return sums.gather(1, places) + torch.zeros_like(y).scatter_add(1, places, y)


def routing() -> Any:
    """Four experts for 24 tokens."""
    torch.manual_seed(0)

    def loss(model: nn.Module, x: Tensor) -> Tensor:
        return model(x).square().mean()

    return Routing(8, 4, 6), (torch.randn(24, 8),), loss


NETWORKS = {
    "decoder": decoder,
    "slicing": slicing,
    "dropping": dropping,
    "dropping in attention": dropping_in_attention,
    "perceptron": perceptron,
    "convolutions": convolutions,
    "recurrent": recurrent,
    "routing": routing,
}
