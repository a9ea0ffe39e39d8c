"""Networks that this machine trains in seconds: those of the zoo at small batches, and a few of
their own. Each function returns model, inputs and loss, so
`benchmarks.runtime.runtime_models:NAME` names a model to every command."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from situate.zoo import cifar_cnn as cifar
from situate.zoo import inception_v3 as inception
from situate.zoo import nmt, resnet
from situate.zoo import rnnlm as language_model
from situate.zoo.lstm import Cell, unroll
from situate.zoo.parts import ModelParts

CLASSES = 10


def cifar_cnn(batch: int = 64) -> ModelParts:
    """The zoo's."""
    return cifar.build(batch)


def resnet50(batch: int = 8) -> ModelParts:
    """The zoo's."""
    return resnet.build(3, 4, 6, 3, batch=batch)


def inception_v3(batch: int = 8) -> ModelParts:
    """The zoo's."""
    return inception.build(batch)


def rnnlm(batch: int = 4) -> ModelParts:
    """The zoo's."""
    return language_model.build(batch)


def nmt2(batch: int = 4, steps: int = 6) -> ModelParts:
    """The zoo's, unrolled six times."""
    return nmt.build(2, batch, steps)


def gpt2(batch: int = 1, length: int = 128) -> ModelParts:
    """The zoo's: GPT-2 small."""
    from situate.zoo import transformer

    return transformer.gpt2(batch, length)


def gpt2_batch4(batch: int = 4, length: int = 128) -> ModelParts:
    """The same with four samples, which can be cut into slices."""
    return gpt2(batch, length)


def moe(batch: int = 1, length: int = 64) -> ModelParts:
    """The zoo's mixture of experts with two layers of four experts, in float32: 1.6 million
    parameters."""
    import transformers

    from situate.zoo.moe import Experts
    from situate.zoo.transformer import from_config, language_loss, tokens

    config = transformers.MixtralConfig(
        vocab_size=1000,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_local_experts=4,
    )
    model: Any = from_config(transformers.AutoModelForCausalLM, config)
    for layer in model.model.layers:
        layer.mlp.experts = Experts(config)
    return model, tokens(config.vocab_size, batch, length), language_loss


class TwoBranches(nn.Module):
    """Two equal towers of convolutions that meet in one sum."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.left, self.right = _tower(width, depth), _tower(width, depth)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.left(x) + self.right(x))
        return logits


def _tower(width: int, depth: int) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Conv2d(3, width, 3, padding=1), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def classification_loss(model: nn.Module, x: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy."""
    return F.cross_entropy(model(x), labels)


def two_branches(batch: int = 16) -> ModelParts:
    """Two towers of nine convolutions, 32 x 32 pixels, 64 channels."""
    inputs = torch.randn(batch, 3, 32, 32), torch.randint(CLASSES, (batch,))
    return TwoBranches(64, 8), inputs, classification_loss


class SmallRNN(nn.Module):
    """One LSTM layer, unrolled: a chain of ops that take microseconds."""

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.cell, self.head = Cell(hidden, hidden), nn.Linear(hidden, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        outputs, _ = unroll(self.cell, list(x.unbind(1)))
        logits: Tensor = self.head(outputs[-1])
        return logits


def small_rnn(batch: int = 4, steps: int = 20, hidden: int = 32) -> ModelParts:
    """Twenty steps of 32 cells."""
    inputs = torch.randn(batch, steps, hidden), torch.randint(CLASSES, (batch,))
    return SmallRNN(hidden), inputs, classification_loss


def chain(batch: int = 256, width: int = 1024, blocks: int = 8) -> ModelParts:
    """A sequence of equal blocks, which a pipeline can cut anywhere."""
    model = nn.Sequential(
        *(nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(blocks))
    )
    return model, (torch.randn(batch, width), torch.randn(batch, width)), regression_loss


def regression_loss(model: nn.Module, x: Tensor, wanted: Tensor) -> Tensor:
    """Mean squared error."""
    return F.mse_loss(model(x), wanted)


class Diamonds(nn.Module):
    """Blocks of two branches side by side."""

    def __init__(self, width: int, blocks: int) -> None:
        super().__init__()
        self.left = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))
        self.right = nn.ModuleList(nn.Linear(width, width) for _ in range(blocks))

    def forward(self, x: Tensor) -> Tensor:
        for left, right in zip(self.left, self.right, strict=True):
            x = F.relu(left(x)) + F.gelu(right(x))
        return x


def diamonds(batch: int = 256, width: int = 512, blocks: int = 20) -> ModelParts:
    """A hundred ops that compute, five a block, which are sixty where a layer and its activation
    are one; for inference."""
    inputs = torch.randn(batch, width), torch.randn(batch, width)
    return Diamonds(width, blocks), inputs, regression_loss


def perceptron(width: int = 8192) -> ModelParts:
    """One wide hidden layer, and a batch of one sample."""
    model = nn.Sequential(nn.Linear(1024, width), nn.ReLU(), nn.Linear(width, 1024))
    return model, (torch.randn(1, 1024), torch.randn(1, 1024)), lambda m, x, y: F.mse_loss(m(x), y)
