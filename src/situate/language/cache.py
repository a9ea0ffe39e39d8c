"""Bytes of the cache of keys and values, and of recurrent states, as llama.cpp allocates them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from situate.errors import SituateError
from situate.language.hyperparameters import Hyperparameters
from situate.language.tensor_types import TYPES, TensorType

PAD = 256
"""Cells of a cache come in multiples of this."""

CACHE_TYPES = ("F32", "F16", "BF16", "Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0", "IQ4_NL", "Q6_0")
"""Types that a cache may have (`-ctk`, `-ctv`); the last is ik_llama.cpp's."""

MAX_CONTEXT = 2**31


def cache_type(name: str) -> TensorType:
    """The type of a cache by its name, in letters of either case.

    Raises:
        SituateError: no cache has that type.
    """
    if name.upper() not in CACHE_TYPES:
        raise SituateError(f"cache type {name!r}: must be one of {', '.join(CACHE_TYPES).lower()}")
    return TYPES[name.upper()]


@dataclass(frozen=True)
class CacheOptions:
    """The options of llama.cpp that the bytes of a cache depend on.

    Attributes:
        context: tokens, of all slots together (`-c`).
        key_type, value_type: of the cache (`-ctk`, `-ctv`).
        ubatch: tokens that pass through the model at once (`-ub`).
        slots: sequences at once (`-np`).
        unified: all sequences share one cache (`--kv-unified`).
        full_window: layers with a sliding window hold the whole context too (`--swa-full`).
        latent: latent attention keeps its cache compressed, where the file's matrices allow it.

    Raises:
        SituateError: a number is not positive or absurd, or no cache has the type.
    """

    context: int
    key_type: str = "F16"
    value_type: str = "F16"
    ubatch: int = 512
    slots: int = 1
    unified: bool = False
    full_window: bool = False
    latent: bool = True

    def __post_init__(self) -> None:
        for name in ("context", "ubatch", "slots"):
            value = getattr(self, name)
            if not 1 <= value <= MAX_CONTEXT:
                raise SituateError(f"{name}: must be 1 to {MAX_CONTEXT}, got {value}")
        cache_type(self.key_type), cache_type(self.value_type)

    @property
    def cells(self) -> int:
        """Tokens that a full cache of one stream holds."""
        if self.unified:
            return padded(self.context)
        return padded(padded(self.context) // self.slots or 1)

    @property
    def streams(self) -> int:
        """Caches side by side, one for each slot or one for all."""
        return 1 if self.unified else self.slots

    def window_cells(self, window: int) -> int:
        """Tokens that the cache of a layer with a sliding window holds, in one stream."""
        if self.full_window:
            return self.cells
        sequences = self.slots if self.unified else 1
        return padded(min(self.cells, window * sequences + self.ubatch))


def padded(tokens: int) -> int:
    """The number of cells for so many tokens."""
    return -(-tokens // PAD) * PAD


@dataclass(frozen=True)
class LayerCache:
    """The memory of one layer.

    Attributes:
        attention: `full`, `window`, `latent` (compressed keys and values) or `none`.
        key_width, value_width: elements of a token, uncompressed.
        latent_width: elements of a token in a compressed cache, 0 without one.
        window: tokens of the sliding window, 0 without one.
        state: 32-bit numbers of a recurrent state, of one sequence.
    """

    attention: Literal["full", "window", "latent", "none"]
    key_width: int
    value_width: int
    latent_width: int
    window: int
    state: int

    def bytes(self, options: CacheOptions) -> int:
        """Bytes of keys and values; 0 in a layer without attention."""
        if self.attention == "none":
            return 0
        keys, values = cache_type(options.key_type), cache_type(options.value_type)
        if self.attention == "latent" and options.latent:
            # The values are part of the compressed keys.
            token = keys.row_bytes(self.latent_width)
        else:
            token = keys.row_bytes(self.key_width) + values.row_bytes(self.value_width)
        window = self.attention == "window"
        cells = options.window_cells(self.window) if window else options.cells
        return token * cells * options.streams

    def state_bytes(self, slots: int = 1) -> int:
        """Bytes of the recurrent states of so many sequences, whatever their lengths."""
        return 4 * self.state * slots


def layer_cache(sizes: Hyperparameters, layer: int) -> LayerCache:
    """The memory of a layer by its number."""
    state = sizes.recurrence.numbers if sizes.recurrence and sizes.recurrent[layer] else 0
    if not (sizes.attentive[layer] and sizes.kv_heads[layer]):
        return LayerCache("none", 0, 0, 0, 0, state)
    if sizes.latent is not None:
        mla, heads = sizes.latent, sizes.heads[layer]
        width = mla.cache_rank + mla.rope
        return LayerCache("latent", heads * mla.key, heads * mla.value, width, 0, state)
    heads = sizes.kv_heads[layer]
    kind: Literal["full", "window"] = "window" if sizes.windowed[layer] else "full"
    window = sizes.window if kind == "window" else 0
    return LayerCache(kind, heads * sizes.key_size, heads * sizes.value_size, 0, window, state)
