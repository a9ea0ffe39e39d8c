"""A language model without its weights: the tensors of each layer, their types, and their cache."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Literal, NamedTuple

from situate.errors import ReadError
from situate.language.architectures import Architecture
from situate.language.cache import CacheOptions, LayerCache, layer_cache
from situate.language.hyperparameters import Experts, Hyperparameters
from situate.language.layer_parts import draft_head
from situate.language.tensor_types import TensorType

Role = Literal[
    "embedding",
    "attention",
    "recurrent",
    "feed-forward",
    "experts",
    "shared experts",
    "router",
    "norm",
    "output",
    "draft",
    "other",
]

GGUF_ROLES: tuple[tuple[str, Role], ...] = (
    (r"nextn\.", "draft"),
    (r"_shexp\.", "shared experts"),
    (r"_exps\.", "experts"),
    (r"ffn_gate_inp\.|exp_probs_b\.", "router"),
    (r"token_embd\.|per_layer_token_embd\.", "embedding"),
    (r"(^|\.)output\.", "output"),
    (r"norm", "norm"),
    (r"attn_", "attention"),
    (r"ssm_", "recurrent"),
    (r"ffn_", "feed-forward"),
)
"""Roles by a pattern in GGUF's name of a tensor; the first that occurs counts."""

MAX_BYTES = 2**63


class Weight(NamedTuple):
    """A tensor of the model.

    Attributes:
        name: as in the file, or as a GGUF file would call it.
        shape: elements by dimension, those of a row first.
        type: of its elements.
        size: bytes.
        role: its part in the model.
        layer: None outside the layers.
    """

    name: str
    shape: tuple[int, ...]
    type: TensorType
    size: int
    role: Role
    layer: int | None

    @property
    def elements(self) -> int:
        """Number of elements."""
        return prod(self.shape)


@dataclass(frozen=True)
class Layer:
    """A layer.

    Attributes:
        number: from 0.
        weights: its tensors.
        cache: the memory of its attention and its recurrent state.
        experts: its mixture of experts, None in a dense layer.
    """

    number: int
    weights: tuple[Weight, ...]
    cache: LayerCache
    experts: Experts | None

    @property
    def size(self) -> int:
        """Bytes of its tensors."""
        return sum(weight.size for weight in self.weights)


class LayerKind(NamedTuple):
    """What layers with equal tensors have in common.

    Attributes:
        window: their attention sees a sliding window.
        weights: (name in the layer, shape, bytes, whether it is of the experts) of each tensor.
    """

    window: bool
    weights: tuple[tuple[str, tuple[int, ...], int, bool], ...]


@dataclass(frozen=True)
class LanguageModel:
    """A language model, of which only sizes and types are known.

    Attributes:
        name: of the model, or of its file.
        source: `gguf`, `safetensors` or `config`.
        sizes: its hyperparameters.
        layers: those that run for every token.
        embedding: tensors that turn tokens into vectors; llama.cpp keeps them in host memory.
        output: tensors after the last layer; without `output.weight` the embedding is used again.
        draft: tensors for guesses at further tokens, which llama.cpp loads on request only.
        file_type: such as `Q4_K_M`, if it is known.
        complete: False if the file holds no more than the header.
        warnings: oddities of the files.
    """

    name: str
    source: Literal["gguf", "safetensors", "config"]
    sizes: Hyperparameters
    layers: tuple[Layer, ...]
    embedding: tuple[Weight, ...]
    output: tuple[Weight, ...]
    draft: tuple[Weight, ...]
    file_type: str | None
    complete: bool
    warnings: tuple[str, ...] = ()

    @cached_property
    def weights(self) -> tuple[Weight, ...]:
        """All tensors, without those for guesses."""
        inner = (weight for layer in self.layers for weight in layer.weights)
        return (*self.embedding, *inner, *self.output)

    @cached_property
    def layer_kinds(self) -> tuple[tuple[int, ...], tuple[LayerKind, ...]]:
        """(layers,) the number of each layer's kind, and the kinds."""
        numbers: dict[LayerKind, int] = {}
        kinds = []
        for layer in self.layers:
            start = len(f"blk.{layer.number}.")
            weights = tuple(
                (weight.name[start:], weight.shape, weight.size, weight.role == "experts")
                for weight in layer.weights
            )
            kind = LayerKind(layer.cache.attention == "window", weights)
            kinds.append(numbers.setdefault(kind, len(numbers)))
        return tuple(kinds), tuple(numbers)

    @property
    def tied(self) -> bool:
        """True if the output's matrix is the embedding."""
        return not any(weight.role == "output" for weight in self.output)

    @property
    def parameters(self) -> int:
        """Elements of all tensors; a tied embedding counts once."""
        return sum(weight.elements for weight in self.weights)

    @property
    def active_parameters(self) -> int:
        """Elements of the tensors that one token passes through."""
        e = self.sizes.experts
        idle = 0 if e is None else 1 - e.used / e.count
        experts = sum(weight.elements for weight in self.weights if weight.role == "experts")
        return round(self.parameters - idle * experts)

    @property
    def size(self) -> int:
        """Bytes of all tensors."""
        return sum(weight.size for weight in self.weights)

    def bytes_by_type(self) -> dict[str, int]:
        """Bytes by the name of a type, the most first."""
        return _sums(self.weights, lambda weight: weight.type.name)

    def bytes_by_role(self) -> dict[str, int]:
        """Bytes by role, the most first."""
        return _sums(self.weights, lambda weight: weight.role)

    def cache_bytes(self, options: CacheOptions) -> int:
        """Bytes of the cache of keys and values of all layers, without recurrent states."""
        return sum(layer.cache.bytes(options) for layer in self.layers)

    def state_bytes(self, slots: int = 1) -> int:
        """Bytes of the recurrent states of so many sequences."""
        return sum(layer.cache.state_bytes(slots) for layer in self.layers)

    def growth(self, key_type: str = "F16", value_type: str = "F16") -> float:
        """Bytes by which the cache grows with each token of a long context."""
        # Windows no longer grow there.
        first, second = (
            self.cache_bytes(CacheOptions(tokens, key_type, value_type))
            for tokens in (2**30, 2**30 + 2**10)
        )
        return (second - first) / 2**10


def _sums(weights: Iterable[Weight], key: Callable[[Weight], str]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for weight in weights:
        sums[key(weight)] = sums.get(key(weight), 0) + weight.size
    return dict(sorted(sums.items(), key=lambda entry: -entry[1]))


def gguf_role(name: str, layer: int | None, layers: int) -> Role:
    """The role of a tensor by GGUF's name for it; those from layer `layers` on are for guesses."""
    if layer is not None and layer >= layers:
        return "draft"
    return next((role for part, role in GGUF_ROLES if re.search(part, name)), "other")


def gguf_layer(name: str) -> int | None:
    """The number of a tensor's layer by GGUF's name for it; None outside the layers."""
    match = re.match(r"blk\.(\d{1,9})\.", name)
    return int(match[1]) if match else None


def gguf_shapes(
    architecture: Architecture, sizes: Hyperparameters, tied: bool
) -> dict[str, tuple[int, ...]]:
    """The shapes of all tensors of a GGUF file, by name.

    Args:
        architecture: which tensors there are.
        sizes: of the model.
        tied: the output uses the matrix of the embedding.
    """
    shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (sizes.width, sizes.vocabulary)}
    for i in range(sizes.all_layers):
        layer = architecture.layer(sizes, i)
        if i >= sizes.layers:
            layer |= draft_head(sizes)
        shapes |= {f"blk.{i}.{name}": shape for name, shape in layer.items()}
    shapes["output_norm.weight"] = (sizes.width,)
    if architecture.norm_bias:
        shapes["output_norm.bias"] = (sizes.width,)
    if not (tied or architecture.never_untied):
        shapes["output.weight"] = (sizes.width, sizes.vocabulary)
    return shapes


def typed_weights(
    shapes: Mapping[str, tuple[int, ...]], types: Mapping[str, TensorType], layers: int
) -> list[Weight]:
    """Tensors with GGUF's names as weights.

    Raises:
        ReadError: rows are no whole number of blocks, or a dimension is 0.
    """
    weights = []
    for name, shape in shapes.items():
        if not 0 < prod(shape) < MAX_BYTES:
            raise ReadError(f"sizes give tensor {name!r} the shape {list(shape)}")
        kind, layer = types[name], gguf_layer(name)
        role = gguf_role(name, layer, layers)
        weights.append(Weight(name, shape, kind, kind.tensor_bytes(shape), role, layer))
    return weights


def assemble(
    weights: Iterable[Weight],
    sizes: Hyperparameters,
    name: str,
    source: Literal["gguf", "safetensors", "config"],
    file_type: str | None = None,
    complete: bool = True,
    warnings: tuple[str, ...] = (),
) -> LanguageModel:
    """The model of these weights.

    Raises:
        ReadError: a layer has no tensors, or the model has no embedding.
    """
    inner: dict[int, list[Weight]] = {i: [] for i in range(sizes.layers)}
    embedding: list[Weight] = []
    output: list[Weight] = []
    draft: list[Weight] = []
    for weight in weights:
        if weight.role == "draft":
            draft.append(weight)
        elif weight.layer is not None:
            inner[weight.layer].append(weight)
        else:
            (embedding if weight.role == "embedding" else output).append(weight)
    if not embedding:
        raise ReadError("has no embedding: it is no whole language model")
    for i, members in inner.items():
        if not members:
            raise ReadError(f"has no tensors of layer {i} of {sizes.layers}")
    return LanguageModel(
        name,
        source,
        sizes,
        tuple(_layer(i, members, sizes) for i, members in inner.items()),
        tuple(embedding),
        tuple(output),
        tuple(draft),
        file_type,
        complete,
        warnings,
    )


def _layer(number: int, weights: list[Weight], sizes: Hyperparameters) -> Layer:
    mixture = any(weight.role == "experts" for weight in weights)
    cache = layer_cache(sizes, number)
    return Layer(number, tuple(weights), cache, sizes.experts if mixture else None)
