"""Networks of torchvision and timm, and adapters of peft."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F

from benchmarks.corpus.configuration import (
    BATCH,
    Built,
    Configuration,
    classes,
    entries,
    pictures,
    returned,
    with_tuples,
)
from benchmarks.corpus.decoders import causal
from benchmarks.corpus.encoders import sentence, translated
from benchmarks.corpus.vision import classified

CLASSES = 10

ADAPTED = {
    "causal": causal,
    "sentence": sentence,
    "translated": translated,
    "classified": classified,
}
"""Inputs of the models that adapters are put on."""


def cross_entropy(model: torch.nn.Module, pixels: torch.Tensor, labels: torch.Tensor) -> Any:
    """The loss of a classifier, and of those beside it that some networks have."""
    result: Any = model(pixels)
    if isinstance(result, tuple):
        return sum(F.cross_entropy(part, labels) for part in result)
    return F.cross_entropy(result, labels)


def of_pixels(model: torch.nn.Module, pixels: torch.Tensor, labels: torch.Tensor) -> Any:
    """The loss of a classifier of every pixel."""
    result: Any = model(pixels)
    return F.cross_entropy(result["out"], labels)


def of_boxes(model: torch.nn.Module, pixels: list[torch.Tensor], targets: Any) -> Any:
    """The losses of a detector in sum."""
    result: Any = model(pixels, targets)
    return sum(result.values())


def of_flow(model: torch.nn.Module, one: torch.Tensor, other: torch.Tensor, rounds: int) -> Any:
    """A loss of the flows from one picture to another."""
    result: Any = model(one, other, rounds)
    return sum(flow.square().mean() for flow in result)


def _classifier(make: Callable[[], torch.nn.Module], pixels: int, training: bool) -> Built:
    model = make().train(training)
    inputs = (pictures(pixels),)
    return model, (*inputs, classes(CLASSES)) if training else inputs, cross_entropy


def of_torchvision(name: str, pixels: int, settings: Mapping[str, Any]) -> Configuration:
    """A classifier of torchvision."""

    def build(training: bool) -> Built:
        from torchvision import models

        make = getattr(models, name)
        return _classifier(
            lambda: make(weights=None, num_classes=CLASSES, **settings), pixels, training
        )

    return Configuration(f"torchvision.{name}", "torchvision", "vision", build)


def of_timm(name: str, pixels: int, settings: Mapping[str, Any]) -> Configuration:
    """A classifier of timm."""

    def build(training: bool) -> Built:
        import timm

        return _classifier(
            lambda: timm.create_model(name, num_classes=CLASSES, **with_tuples(settings)),
            pixels,
            training,
        )

    return Configuration(f"timm.{name}", "timm", "vision", build)


def segmenter(training: bool) -> Built:
    """DeepLabV3 on MobileNetV3."""
    from torchvision.models.segmentation import deeplabv3_mobilenet_v3_large

    model = deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=CLASSES)
    inputs = (pictures(64),)
    labels = classes(CLASSES, BATCH, 64, 64)
    return model.train(training), (*inputs, labels) if training else inputs, of_pixels


def videos(training: bool) -> Built:
    """A ResNet over space and time."""
    from torchvision.models.video import r3d_18

    model = r3d_18(weights=None, num_classes=CLASSES).train(training)
    inputs = (torch.randn(BATCH, 3, 4, 32, 32),)
    return model, (*inputs, classes(CLASSES)) if training else inputs, cross_entropy


def flows(training: bool) -> Built:
    """RAFT, which follows points from one picture to the next."""
    from torchvision.models.optical_flow import raft_small

    model = raft_small(weights=None).train(training)
    return model, (pictures(128), pictures(128), 2), of_flow


def detector(name: str) -> Callable[[bool], Built]:
    """A detector of torchvision with MobileNetV3 or ResNet as its backbone."""

    def build(training: bool) -> Built:
        from torchvision.models import detection

        make = getattr(detection, name)
        sizes = {"min_size": 64, "max_size": 64} if "ssd" not in name else {}
        model = make(weights=None, weights_backbone=None, num_classes=CLASSES, **sizes)
        pixels = [torch.rand(3, 64, 64) for _ in range(BATCH)]
        result = torch.tensor([[4.0, 4.0, 30.0, 30.0], [20.0, 10.0, 60.0, 50.0]])
        targets = [{"boxes": result, "labels": classes(CLASSES, 2)} for _ in range(BATCH)]
        return model.train(training), (pixels, targets) if training else (pixels,), of_boxes

    return build


def of_peft(kind: str, name: str, of: str, settings: Mapping[str, Any]) -> Configuration:
    """A model of transformers of which an adapter alone is trained."""

    def build(training: bool) -> Built:
        import peft
        import transformers

        plain = next(entry for entry in entries("adapted") if entry["name"] == of)
        model = getattr(transformers, plain["model"])
        config = model.config_class(**plain["settings"])
        inputs = ADAPTED[plain["inputs"]](config, training)
        adapted: Any = peft.get_peft_model(model(config), getattr(peft, kind)(**settings))
        return adapted.train(training), dict(inputs), returned

    return Configuration(f"peft.{name}_{of}", "peft", "adapter", build)


def configurations() -> list[Configuration]:
    """All of this module."""
    return [
        *(of_torchvision(**entry) for entry in entries("torchvision")),
        Configuration("torchvision.deeplabv3", "torchvision", "vision", segmenter),
        Configuration("torchvision.r3d_18", "torchvision", "vision", videos),
        Configuration("torchvision.raft_small", "torchvision", "vision", flows),
        *(
            Configuration(f"torchvision.{name}", "torchvision", "detection", detector(name))
            for name in ("retinanet_resnet50_fpn", "fasterrcnn_mobilenet_v3_large_320_fpn")
        ),
        *(of_timm(**entry) for entry in entries("timm")),
        *(of_peft(**entry) for entry in entries("adapters")),
    ]
