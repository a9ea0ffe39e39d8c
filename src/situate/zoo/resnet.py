"""ResNet-50, -101 and -200 (He et al., CVPR and ECCV 2016), 224 x 224 pixels.

The papers' batch is 32. Layers have the names of torchvision.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from situate.zoo.parts import ModelParts

CLASSES = 1000
WIDTHS = (64, 128, 256, 512)
EXPANSION = 4


class Bottleneck(nn.Module):
    """Convolutions of 1 x 1, 3 x 3 and 1 x 1 beside a shortcut."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = width * EXPANSION
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        # The stride is in the 3 x 3 convolution (version 1.5), as in torchvision.
        self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, out, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(out)
        self.downsample: nn.Module = nn.Identity()
        if stride != 1 or channels != out:
            self.downsample = nn.Sequential(
                nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        return F.relu(self.bn3(self.conv3(y)) + self.downsample(x), inplace=True)


def stage(channels: int, width: int, blocks: int, stride: int) -> nn.Sequential:
    """Blocks of one width; the first changes channels and resolution."""
    first = Bottleneck(channels, width, stride)
    rest = (Bottleneck(width * EXPANSION, width, 1) for _ in range(blocks - 1))
    return nn.Sequential(first, *rest)


class ResNet(nn.Module):
    """`blocks` is the number of blocks in each of the four stages."""

    def __init__(self, blocks: tuple[int, int, int, int]) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = stage(64, WIDTHS[0], blocks[0], 1)
        self.layer2 = stage(WIDTHS[0] * EXPANSION, WIDTHS[1], blocks[1], 2)
        self.layer3 = stage(WIDTHS[1] * EXPANSION, WIDTHS[2], blocks[2], 2)
        self.layer4 = stage(WIDTHS[2] * EXPANSION, WIDTHS[3], blocks[3], 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(WIDTHS[3] * EXPANSION, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(F.relu(self.bn1(self.conv1(x)), inplace=True))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        logits: Tensor = self.fc(torch.flatten(self.avgpool(x), 1))
        return logits


def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy."""
    return F.cross_entropy(model(images), labels)


def build(*blocks: int, batch: int = 32) -> ModelParts:
    """Model, inputs and loss; `blocks` as in `ResNet`."""
    first, second, third, fourth = blocks
    images, labels = torch.randn(batch, 3, 224, 224), torch.randint(CLASSES, (batch,))
    return ResNet((first, second, third, fourth)), (images, labels), loss
