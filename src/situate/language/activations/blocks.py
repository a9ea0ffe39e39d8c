"""Layers as a replay sees them: weights with their devices, and what weights do not show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from situate.language.activations.tensors import Tensor, stored
from situate.language.cache import CacheOptions


class Matrix(NamedTuple):
    """A weight: its shape, its bytes, and its device as a number of the scheduler."""

    shape: tuple[int, ...]
    size: int
    place: int

    def tensor(self) -> Tensor:
        """The weight as a leaf of a graph."""
        return stored(self.shape, self.size, self.place, weight=True)


class Block(NamedTuple):
    """A layer.

    Attributes:
        place: device of the layer and of its cache, as a number of the scheduler.
        window: its attention sees a sliding window.
        weights: (name, matrix) of its tensors.
    """

    place: int
    window: bool
    weights: tuple[tuple[str, Matrix], ...]


@dataclass(frozen=True)
class PassOptions:
    """The options of a pass.

    Attributes:
        cache: options of the cache, with the ubatch.
        outputs: tokens with logits.
        flash: flash attention.
        early: as builds of 2025 did: masks are 32-bit, and converted where they are used.
        cache_on_host: all keys and values are in host memory.
        converts: GPUs convert quantised keys and values to 16 bits before attention, as CUDA does.
        enforced: llama.cpp chooses the devices of some ops itself.
        host: number of the host among the devices.
    """

    cache: CacheOptions
    outputs: int
    flash: bool
    early: bool
    cache_on_host: bool
    converts: bool
    enforced: bool
    host: int


@dataclass(frozen=True)
class Traits:
    """Ops that the weights of a layer do not show.

    Attributes:
        parallel: attention and network read the same normalised input.
        residual_first: the residual stream is the first term of the sum behind a network.
        centred: normalisations subtract the mean, and are not computed in place.
        window_positions: layers that see the whole context have no rotary positions.
        scaled_embedding, scaled_queries: a factor.
        rows_last: tokens without logits are left out behind the last layer, not inside it.
    """

    parallel: bool = False
    residual_first: bool = False
    centred: bool = False
    window_positions: bool = False
    scaled_embedding: bool = False
    scaled_queries: bool = False
    rows_last: bool = False


PASS: Mapping[str, Traits] = {
    "llama": Traits(),
    "qwen2": Traits(),
    "qwen2moe": Traits(),
    "qwen3": Traits(),
    "qwen3moe": Traits(),
    "gpt-oss": Traits(rows_last=True),
    "gemma2": Traits(scaled_embedding=True, scaled_queries=True),
    "gemma3": Traits(scaled_embedding=True, scaled_queries=True),
    "phi3": Traits(scaled_queries=True, residual_first=True),
    "deepseek2": Traits(),
    "glm4": Traits(),
    "glm4moe": Traits(),
    "command-r": Traits(parallel=True, centred=True),
    "cohere2": Traits(parallel=True, centred=True, window_positions=True),
    "starcoder2": Traits(centred=True),
}
"""Architectures whose passes are replayed, by the name that GGUF has for them."""
