"""Vision models of transformers: pictures and videos to classes, boxes, masks and depths."""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.corpus.configuration import (
    BATCH,
    PIXELS,
    Configuration,
    classes,
    pictures,
    transformers_models,
)


def classified(config: Any, training: bool) -> dict[str, Any]:
    """Pictures, each of a class."""
    pixels = {"pixel_values": pictures(_pixels(config))}
    return pixels | {"labels": classes(config.num_labels)} if training else pixels


def unlabelled(config: Any, training: bool) -> dict[str, Any]:
    """Pictures, which a model learns to fill in."""
    return {"pixel_values": pictures(_pixels(config))}


def segmented(config: Any, training: bool) -> dict[str, Any]:
    """Pictures of 64 pixels, each pixel of a class."""
    pixels = {"pixel_values": pictures(64)}
    return pixels | {"labels": classes(config.num_labels, BATCH, 64, 64)} if training else pixels


def measured(config: Any, training: bool) -> dict[str, Any]:
    """Pictures of which the depth is asked."""
    return {"pixel_values": pictures(56)}


def detected(config: Any, training: bool) -> dict[str, Any]:
    """Pictures with two objects each."""
    pixels = {"pixel_values": pictures(64)}
    return pixels | {"labels": [_objects(), _objects()]} if training else pixels


def masks(config: Any, training: bool) -> dict[str, Any]:
    """Pictures with two objects each, and where those are."""
    pixels = {"pixel_values": pictures(64)}
    result = {
        "mask_labels": [(torch.rand(2, 64, 64) > 0.5).float() for _ in range(BATCH)],
        "class_labels": [classes(config.num_labels, 2) for _ in range(BATCH)],
    }
    return pixels | result if training else pixels


def video(config: Any, training: bool) -> dict[str, Any]:
    """Videos, each of a class."""
    frames = {"pixel_values": torch.randn(BATCH, config.num_frames, 3, PIXELS, PIXELS)}
    return frames | {"labels": classes(config.num_labels)} if training else frames


def pointed(config: Any, training: bool) -> dict[str, Any]:
    """Pictures and a point of an object in each."""
    size = config.vision_config.image_size
    points = torch.rand(BATCH, 1, 1, 2) * size
    return {"pixel_values": pictures(size), "input_points": points}


def _pixels(config: Any) -> int:
    size = getattr(config, "image_size", 64)
    return size if isinstance(size, int) and size <= 64 else 64


def _objects() -> dict[str, torch.Tensor]:
    corners = torch.rand(2, 4) * 0.4 + 0.1
    return {"class_labels": classes(5, 2), "boxes": corners}


def masks_found(model: torch.nn.Module, **batch: Any) -> Any:
    """A loss of the masks that a model finds."""
    result: Any = model(**batch)
    return result.pred_masks.square().mean()


def depths_found(model: torch.nn.Module, **batch: Any) -> Any:
    """A loss of the depths that a model finds."""
    result: Any = model(**batch)
    return result.predicted_depth.square().mean()


def configurations() -> list[Configuration]:
    """All of this module."""
    return transformers_models("vision", globals())
