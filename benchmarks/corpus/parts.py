"""Parts of models that take the place of others, or of the whole, as refusals say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from benchmarks.corpus.configuration import Built


def dense_experts(built: Built, message: str) -> Built:
    """The experts of Dbrx or Switch Transformers, each of which computes every token."""
    kinds = {"DbrxExperts": EveryExpertOfDbrx, "SwitchTransformersExperts": EveryExpertOfSwitch}
    [name] = re.findall(r"in the place of its (\w+) that computes", message)
    for module in [*built[0].modules()]:
        for path, child in module.named_children():
            if type(child).__name__ == name:
                setattr(module, path, kinds[name](child))
    return built


class EveryExpertOfDbrx(torch.nn.Module):
    """Experts that are slices of one parameter each."""

    def __init__(self, experts: Any) -> None:
        super().__init__()
        self.mlp, self.count = experts.mlp, experts.num_experts
        self.split = (self.count, experts.ffn_hidden_size, experts.hidden_size)

    def forward(
        self, hidden: torch.Tensor, chosen: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        """The sum over experts, weighted by the router."""
        flat = hidden.reshape(-1, hidden.shape[-1])
        w1, v1, w2 = (p.view(self.split) for p in (self.mlp.w1, self.mlp.v1, self.mlp.w2))
        result = torch.zeros_like(flat)
        for k in range(self.count):
            weight = (weights * (chosen == k)).sum(-1, keepdim=True)
            result = result + weight * self.mlp(flat, w1[k], v1[k], w2[k])
        return result.view(len(hidden), -1, hidden.shape[-1])


class EveryExpertOfSwitch(torch.nn.Module):
    """Experts that are modules, of which a token has one or none."""

    def __init__(self, experts: Any) -> None:
        super().__init__()
        self.experts = torch.nn.ModuleList(experts.values())

    def forward(
        self, hidden: torch.Tensor, chosen: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        """The sum over experts, weighted by the router."""
        result = torch.zeros_like(hidden)
        for k, expert in enumerate(self.experts):
            result = result + expert(hidden) * weights * chosen[:, 0, k, None]
        return result


def buffers_of_numbers(built: Built, message: str) -> Built:
    """The model, whose buffers of integers in modules of one class the step makes of numbers."""
    model, inputs, loss = built
    [name] = re.findall(r"out of the buffers of its (\w+) modules", message)
    return OfNumberedBuffers(model, name), inputs, loss


class OfNumberedBuffers(torch.nn.Module):
    """A model that sets attributes in place of buffers."""

    def __init__(self, model: torch.nn.Module, name: str) -> None:
        super().__init__()
        self.model = model
        self.numbers: list[tuple[torch.nn.Module, str, int]] = []
        for module in model.modules():
            if type(module).__name__ == name:
                self.numbers += [(module, *number) for number in _integers_of(module)]

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """The model's result."""
        for module, name, number in self.numbers:
            setattr(module, name, torch.tensor(number))
        return self.model(*inputs, **named)


def _integers_of(module: torch.nn.Module) -> Iterator[tuple[str, int]]:
    for name, buffer in [*module.named_buffers(recurse=False)]:
        if not buffer.is_floating_point():
            delattr(module, name)
            yield name, int(buffer)


def pictures_seen(built: Built, _: str) -> Built:
    """A model that talks of pictures, whose features the step computes."""
    return Seeing(built[0]), *built[1:]


class Seeing(torch.nn.Module):
    """Idefics 3, given pictures none of which stands for one that is not there."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model, self.size = model, model.config.vision_config.patch_size

    def forward(self, pixel_values: torch.Tensor, **batch: Any) -> Any:
        """The model's result."""
        pixels, inner = pixel_values.flatten(0, 1), self.model.model
        height, width = (length // self.size for length in pixels.shape[-2:])
        whole = torch.ones(len(pixels), height, width, dtype=torch.bool)
        vision = inner.vision_model(pixel_values=pixels, patch_attention_mask=whole)
        features = inner.connector(vision.last_hidden_state)
        return self.model(image_hidden_states=features, **batch)


def without_boxes(built: Built, _: str) -> Built:
    """The body and head of a detector, on a batch of images; boxes are left to who calls it."""
    model, inputs, _loss = built

    def loss(parts: torch.nn.Module, images: torch.Tensor) -> torch.Tensor:
        result = tree_leaves(parts(images))
        return torch.stack([output.square().mean() for output in result]).sum()

    return BodyAndHead(model), (torch.stack(inputs[0]),), loss


class BodyAndHead(torch.nn.Module):
    """The parts of a detector that compute on images of one size."""

    def __init__(self, detector: Any) -> None:
        super().__init__()
        self.backbone = detector.backbone
        self.head = detector.rpn.head if hasattr(detector, "rpn") else detector.head

    def forward(self, images: torch.Tensor) -> Any:
        """The head's result."""
        return self.head(list(self.backbone(images).values()))
