"""Inception-V3 with its auxiliary head (Szegedy et al., CVPR 2016), 299 x 299 pixels.

The papers' batch is 32. Blocks and branches have the names of torchvision.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from situate.zoo.parts import ModelParts

Size = int | tuple[int, int]

CLASSES = 1000


class Convolution(nn.Module):
    """Convolution, batch normalisation, rectifier."""

    def __init__(
        self, channels: int, out: int, kernel: Size, stride: int = 1, padding: Size = 0
    ) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, out, kernel, stride, padding, bias=False)
        self.bn = nn.BatchNorm2d(out, eps=0.001)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.bn(self.conv(x)), inplace=True)


def chain(channels: int, *layers: tuple[int, Size, int, Size]) -> nn.Sequential:
    """Convolutions in a row, each given by (channels out, kernel, stride, padding)."""
    modules = []
    for out, kernel, stride, padding in layers:
        modules.append(Convolution(channels, out, kernel, stride, padding))
        channels = out
    return nn.Sequential(*modules)


class Pooled(nn.Module):
    """An average over 3 x 3 pixels, then a 1 x 1 convolution."""

    def __init__(self, channels: int, out: int) -> None:
        super().__init__()
        self.convolution = Convolution(channels, out, 1)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.convolution(F.avg_pool2d(x, 3, 1, 1))
        return result


class Fork(nn.Module):
    """A chain, then two convolutions of its result side by side."""

    def __init__(self, stem: nn.Module, channels: int, out: int) -> None:
        super().__init__()
        self.stem = stem
        self.wide = Convolution(channels, out, (1, 3), padding=(0, 1))
        self.tall = Convolution(channels, out, (3, 1), padding=(1, 0))

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        return torch.cat([self.wide(x), self.tall(x)], 1)


class Mixed(nn.Module):
    """Branches side by side, joined by channel."""

    def __init__(self, **branches: nn.Module) -> None:
        super().__init__()
        self.branches = list(branches)
        for name, branch in branches.items():
            self.add_module(name, branch)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([self.get_submodule(name)(x) for name in self.branches], 1)


def mixed_5(channels: int, pooled: int) -> Mixed:
    """35 x 35 pixels."""
    return Mixed(
        branch1x1=Convolution(channels, 64, 1),
        branch5x5=chain(channels, (48, 1, 1, 0), (64, 5, 1, 2)),
        branch3x3=chain(channels, (64, 1, 1, 0), (96, 3, 1, 1), (96, 3, 1, 1)),
        branch_pool=Pooled(channels, pooled),
    )


def mixed_6a(channels: int) -> Mixed:
    """From 35 x 35 to 17 x 17 pixels."""
    return Mixed(
        branch3x3=Convolution(channels, 384, 3, 2),
        branch3x3dbl=chain(channels, (64, 1, 1, 0), (96, 3, 1, 1), (96, 3, 2, 0)),
        branch_pool=nn.MaxPool2d(3, 2),
    )


def mixed_6(channels: int, inner: int) -> Mixed:
    """17 x 17 pixels."""
    wide, tall = ((1, 7), 1, (0, 3)), ((7, 1), 1, (3, 0))
    return Mixed(
        branch1x1=Convolution(channels, 192, 1),
        branch7x7=chain(channels, (inner, 1, 1, 0), (inner, *wide), (192, *tall)),
        branch7x7dbl=chain(
            channels, (inner, 1, 1, 0), (inner, *tall), (inner, *wide), (inner, *tall), (192, *wide)
        ),
        branch_pool=Pooled(channels, 192),
    )


def mixed_7a(channels: int) -> Mixed:
    """From 17 x 17 to 8 x 8 pixels."""
    return Mixed(
        branch3x3=chain(channels, (192, 1, 1, 0), (320, 3, 2, 0)),
        branch7x7x3=chain(
            channels,
            (192, 1, 1, 0),
            (192, (1, 7), 1, (0, 3)),
            (192, (7, 1), 1, (3, 0)),
            (192, 3, 2, 0),
        ),
        branch_pool=nn.MaxPool2d(3, 2),
    )


def mixed_7(channels: int) -> Mixed:
    """8 x 8 pixels."""
    return Mixed(
        branch1x1=Convolution(channels, 320, 1),
        branch3x3=Fork(Convolution(channels, 384, 1), 384, 384),
        branch3x3dbl=Fork(chain(channels, (448, 1, 1, 0), (384, 3, 1, 1)), 384, 384),
        branch_pool=Pooled(channels, 192),
    )


class InceptionV3(nn.Module):
    """Returns the logits of the main head and, where it trains, of the auxiliary one."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            *chain(3, (32, 3, 2, 0), (32, 3, 1, 0), (64, 3, 1, 1)),
            nn.MaxPool2d(3, 2),
            *chain(64, (80, 1, 1, 0), (192, 3, 1, 0)),
            nn.MaxPool2d(3, 2),
        )
        self.mixed_5b, self.mixed_5c = mixed_5(192, 32), mixed_5(256, 64)
        self.mixed_5d, self.mixed_6a = mixed_5(288, 64), mixed_6a(288)
        self.mixed_6b, self.mixed_6c = mixed_6(768, 128), mixed_6(768, 160)
        self.mixed_6d, self.mixed_6e = mixed_6(768, 160), mixed_6(768, 192)
        self.auxiliary = nn.Sequential(
            nn.AvgPool2d(5, 3),
            *chain(768, (128, 1, 1, 0), (768, 5, 1, 0)),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(768, CLASSES),
        )
        self.mixed_7a, self.mixed_7b = mixed_7a(768), mixed_7(1280)
        self.mixed_7c = mixed_7(2048)
        self.head = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Dropout(), nn.Flatten(), nn.Linear(2048, CLASSES)
        )

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        x = self.mixed_5d(self.mixed_5c(self.mixed_5b(self.stem(x))))
        x = self.mixed_6e(self.mixed_6d(self.mixed_6c(self.mixed_6b(self.mixed_6a(x)))))
        auxiliary = (self.auxiliary(x),) if self.training else ()
        return self.head(self.mixed_7c(self.mixed_7b(self.mixed_7a(x)))), *auxiliary


def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """The auxiliary head counts for 0.4, as in the paper's code."""
    main, *auxiliary = model(images)
    total = F.cross_entropy(main, labels)
    for logits in auxiliary:
        total = total + 0.4 * F.cross_entropy(logits, labels)
    return total


def build(batch: int = 32) -> ModelParts:
    """Model, inputs and loss."""
    images, labels = torch.randn(batch, 3, 299, 299), torch.randint(CLASSES, (batch,))
    return InceptionV3(), (images, labels), loss
