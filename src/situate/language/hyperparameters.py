"""The sizes of a language model that its tensors and its cache follow from.

Their source is the metadata of a GGUF file. A `config.json` is first translated to the same keys,
as llama.cpp's converter does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from situate.errors import ReadError
from situate.language.gguf import LongArray, Value

MAX_LAYERS, MAX_EXPERTS, MAX_SIZE = 1024, 2**16, 2**31
"""Largest numbers of layers and of experts, and the largest of any other size."""


@dataclass(frozen=True)
class Experts:
    """A mixture of experts.

    Attributes:
        count: experts of a layer.
        used: experts that a token passes through.
        width: hidden size of an expert.
        shared_width: hidden size of all shared experts together, 0 without any.
        dense_layers: leading layers without experts.
    """

    count: int
    used: int
    width: int
    shared_width: int
    dense_layers: int


@dataclass(frozen=True)
class LatentAttention:
    """Multi-head latent attention (DeepSeek-V2, arXiv:2405.04434, section 2.1).

    Attributes:
        query_rank: of the compressed queries, 0 if they are not compressed.
        cache_rank: of the compressed keys and values.
        rope: part of a head with rotary positions, the same for all heads.
        key, value: sizes of a head after decompression.
        split: the file has matrices for keys and values of their own (`attn_k_b`, `attn_v_b`), by
            which the cache stays compressed; older files have `attn_kv_b` alone.
    """

    query_rank: int
    cache_rank: int
    rope: int
    key: int
    value: int
    split: bool


@dataclass(frozen=True)
class Recurrence:
    """A state-space layer (Mamba-2, arXiv:2405.21060) or a gated delta net.

    Attributes:
        kernel: length of the convolution.
        inner: width of the state's input.
        state: size of the state for each of them.
        groups: of the state's inputs, or heads of keys.
        heads: of the state, or heads of values.
    """

    kernel: int
    inner: int
    state: int
    groups: int
    heads: int

    @property
    def convolution(self) -> int:
        """Channels of the convolution."""
        return self.inner + 2 * self.groups * self.state

    @property
    def numbers(self) -> int:
        """32-bit numbers that a layer remembers of a sequence, whatever its length."""
        return (self.kernel - 1) * self.convolution + self.state * self.inner


@dataclass(frozen=True)
class Hyperparameters:
    """The sizes of a model. Tuples have one entry a layer.

    Attributes:
        architecture: as GGUF calls it, such as `qwen3moe`.
        layers: that run for every token.
        draft_layers: for guesses at further tokens, after the others (multi-token prediction).
        width: of the residual stream.
        vocabulary: tokens; 0 if unknown.
        context: tokens that the model was trained for; 0 if unknown.
        heads, kv_heads: of queries, and of keys and values.
        key_size, value_size: of a head.
        rotary: part of a head with rotary positions.
        hidden: sizes of the feed-forward networks.
        experts: None in a dense model.
        latent: None without latent attention.
        recurrence: None without recurrent layers.
        window: tokens of a sliding window, 0 without any.
        windowed: layers that see the window alone.
        recurrent: layers with a recurrent state.
        attentive: layers with attention.
    """

    architecture: str
    layers: int
    draft_layers: int
    width: int
    vocabulary: int
    context: int
    heads: tuple[int, ...]
    kv_heads: tuple[int, ...]
    key_size: int
    value_size: int
    rotary: int
    hidden: tuple[int, ...]
    experts: Experts | None
    latent: LatentAttention | None
    recurrence: Recurrence | None
    window: int
    windowed: tuple[bool, ...]
    recurrent: tuple[bool, ...]
    attentive: tuple[bool, ...]

    @property
    def all_layers(self) -> int:
        """Layers with those for guesses."""
        return self.layers + self.draft_layers


class Keys:
    """Metadata by key, with the name of the architecture in front of each.

    Raises:
        ReadError: (each method) a value is missing, of another kind or absurd.
    """

    def __init__(self, architecture: str, metadata: Mapping[str, Value]) -> None:
        self.architecture = architecture
        self.metadata = metadata

    def __contains__(self, key: str) -> bool:
        return f"{self.architecture}.{key}" in self.metadata

    def size(self, key: str, default: int | None = None, limit: int = MAX_SIZE) -> int:
        """A whole number from 0 to `limit`."""
        value = self.metadata.get(f"{self.architecture}.{key}", default)
        if value is None:
            raise ReadError(f"has no {self.architecture}.{key}")
        return self._checked(key, value, limit)

    def sizes(self, key: str, count: int, default: int | None = None) -> tuple[int, ...]:
        """One number for each layer, or the same for all."""
        value = self.metadata.get(f"{self.architecture}.{key}", default)
        if isinstance(value, LongArray) or (isinstance(value, tuple) and len(value) < count):
            raise self._error(key, value, f"must be a number or {count} of them")
        if isinstance(value, tuple):
            return tuple(self._checked(key, entry, MAX_SIZE) for entry in value[:count])
        return (self.size(key, default),) * count

    def length(self, key: str) -> int:
        """The length of an array outside the architecture, 0 if it is missing."""
        value = self.metadata.get(key)
        if isinstance(value, LongArray):
            return value.length
        return len(value) if isinstance(value, tuple) else 0

    def _checked(self, key: str, value: Value, limit: int) -> int:
        # Some converters write whole numbers as floats.
        if isinstance(value, (int, float)) and 0 <= value <= limit and value == int(value):
            return int(value)
        raise self._error(key, value, f"must be a whole number from 0 to {limit}")

    def _error(self, key: str, value: object, problem: str) -> ReadError:
        text = "an array" if isinstance(value, LongArray) else repr(value)
        return ReadError(f"{self.architecture}.{key}: {problem}, got {text[:60]}")


def read_experts(keys: Keys, hidden: int) -> Experts | None:
    """The mixture of experts; None if there is none."""
    count = keys.size("expert_count", 0, MAX_EXPERTS)
    if not count:
        return None
    used = keys.size("expert_used_count", None, count)
    if not used:
        raise ReadError(f"{keys.architecture}.expert_used_count: must be at least 1, got 0")
    width = max(keys.sizes("expert_feed_forward_length", 1, hidden))
    shared = keys.size("expert_shared_count", 0, MAX_EXPERTS) * width
    return Experts(
        count,
        used,
        width,
        keys.size("expert_shared_feed_forward_length", shared),
        keys.size("leading_dense_block_count", 0),
    )


def read_latent(keys: Keys) -> LatentAttention | None:
    """The latent attention; None if there is none."""
    rank = keys.size("attention.kv_lora_rank", 0)
    if not rank:
        return None
    split = "attention.key_length_mla" in keys
    suffix = "_mla" if split else ""
    key = keys.size(f"attention.key_length{suffix}")
    rope = keys.size("rope.dimension_count")
    if rope >= key:
        raise ReadError(
            f"{keys.architecture}.rope.dimension_count: must be smaller than a head ({key}), got "
            f"{rope}"
        )
    value = keys.size(f"attention.value_length{suffix}")
    return LatentAttention(keys.size("attention.q_lora_rank", 0), rank, rope, key, value, split)


def read_recurrence(keys: Keys) -> Recurrence | None:
    """The recurrent layers' sizes; None without such layers."""
    inner = keys.size("ssm.inner_size", 0)
    if not inner:
        return None
    parts = ("conv_kernel", "state_size", "group_count", "time_step_rank")
    kernel, state, groups, heads = (keys.size(f"ssm.{part}") for part in parts)
    if not (kernel and groups and heads):
        raise ReadError(f"{keys.architecture}.ssm: sizes must not be 0")
    return Recurrence(kernel, inner, state, groups, heads)
