"""Operators that a build of torchvision lacks whose library does not load.

PyPI's torchvision is built for CUDA. Beside a PyTorch for CPUs its library is not found, and
importing it fails where it describes operators that nobody defined.
"""

from __future__ import annotations

import importlib.util

import torch

_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)
_LIBRARY = torch.library.Library("torchvision", "FRAGMENT")


def define() -> None:
    """Define operators that torchvision lacks; to be called before its import."""
    if importlib.util.find_spec("torchvision") is None:
        return
    for schema in _SCHEMAS:
        if not hasattr(torch.ops.torchvision, schema.partition("(")[0]):
            _LIBRARY.define(schema)
    from torchvision import extension
    from torchvision.ops import boxes

    if not extension._has_ops():
        boxes.nms = suppressed


def suppressed(boxes: torch.Tensor, scores: torch.Tensor, iou_threshold: float) -> torch.Tensor:
    """Non-maximum suppression: the boxes, best first, that overlap no better one by more."""
    from torchvision.ops import box_iou

    remaining, chosen = scores.argsort(descending=True), list[torch.Tensor]()
    while len(remaining):
        chosen.append(remaining[0])
        overlaps = box_iou(boxes[remaining[:1]], boxes[remaining[1:]])[0]
        remaining = remaining[1:][overlaps <= iou_threshold]
    return torch.stack(chosen) if chosen else remaining
