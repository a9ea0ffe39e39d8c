"""The CIFAR-10 network of TensorFlow's tutorial: two convolutions, three dense layers, 32 x 32."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from situate.zoo.parts import ModelParts

CLASSES = 10


class CifarCNN(nn.Module):
    """Convolution, pooling and local response normalisation twice, then dense layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 5, padding=2)
        self.conv2 = nn.Conv2d(64, 64, 5, padding=2)
        self.pool = nn.MaxPool2d(3, 2, 1)
        # TensorFlow's alpha is per channel and its radius 4; PyTorch divides alpha by the size, 9.
        self.norm = nn.LocalResponseNorm(9, alpha=0.001 * 9, k=1.0)
        self.local3 = nn.Linear(64 * 8 * 8, 384)
        self.local4 = nn.Linear(384, 192)
        self.softmax_linear = nn.Linear(192, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.norm(self.pool(F.relu(self.conv1(x))))
        x = self.pool(self.norm(F.relu(self.conv2(x))))
        x = F.relu(self.local4(F.relu(self.local3(torch.flatten(x, 1)))))
        logits: Tensor = self.softmax_linear(x)
        return logits


def loss(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    """Cross entropy."""
    return F.cross_entropy(model(images), labels)


def build(batch: int = 128) -> ModelParts:
    """Model, inputs and loss."""
    images, labels = torch.randn(batch, 3, 32, 32), torch.randint(CLASSES, (batch,))
    return CifarCNN(), (images, labels), loss
