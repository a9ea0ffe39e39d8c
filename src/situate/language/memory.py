"""Bytes that llama.cpp takes on each device for a layout: weights, cache, compute buffers."""

from __future__ import annotations

from dataclasses import dataclass

from situate.language.cache import CacheOptions
from situate.language.layout import HOST, Layout
from situate.language.model import LanguageModel

MASK_BYTES = 2
"""Bytes of an element of the mask of attention."""


@dataclass(frozen=True)
class DeviceMemory:
    """Bytes on one device.

    Attributes:
        weights: tensors of the model.
        cache: keys and values, and recurrent states.
        compute: activations, masks, logits and uploaded weights.
        output: logits that the program reads (host only).
        context: that the driver takes beside all buffers.
        margin: by which the compute buffer may be larger, in 95 of 100 runs.
        per_token: growth of the cache and of the mask with a token of context.
    """

    weights: int
    cache: int
    compute: int
    output: int
    context: int
    margin: int
    per_token: float

    @property
    def total(self) -> int:
        """Bytes of all parts, without the margin."""
        return self.weights + self.cache + self.compute + self.output + self.context


def device_memory(
    model: LanguageModel, layout: Layout, options: CacheOptions, gpus: int, context: int = 0
) -> tuple[DeviceMemory, ...]:
    """The memory of each GPU and, last, of the host.

    The layout's ubatch counts, and not that of the options.

    Args:
        model: its tensors.
        layout: where they lie.
        options: context, types of the cache, slots.
        gpus: number of GPUs of the home, in use or not.
        context: bytes that the driver takes on a GPU in use.
    """
    weights, cache = [0] * (gpus + 1), [0] * (gpus + 1)
    for layer, place, expert_place in zip(model.layers, layout.layers, layout.experts, strict=True):
        for weight in layer.weights:
            weights[expert_place if weight.role == "experts" else place] += weight.size
        place = HOST if layout.host_cache else place
        cache[place] += layer.cache.bytes(options) + layer.cache.state_bytes(options.slots)
    embedding = sum(weight.size for weight in model.embedding)
    weights[HOST] += embedding
    weights[layout.output] += sum(weight.size for weight in model.output)
    if model.tied and layout.output != HOST:
        weights[layout.output] += embedding
    width = model.sizes.width * layout.ubatch * 4
    mask = MASK_BYTES * layout.ubatch * options.cells
    compute = [(width * 4 + mask) if d in layout.order else 0 for d in range(gpus)]
    compute += [width + mask]
    compute[layout.output] += 4 * model.sizes.vocabulary * layout.ubatch
    output = 4 * model.sizes.vocabulary * options.slots
    return tuple(
        DeviceMemory(
            weights[d],
            cache[d],
            compute[d],
            output if d == gpus else 0,
            context if d in layout.order else 0,
            compute[d] // 4,
            cache[d] / options.cells,
        )
        for d in range(gpus + 1)
    )
