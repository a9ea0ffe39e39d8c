"""One pass of a language model as a graph: ops of its layers' parts, with weights and caches.

An op holds its weights. The keys and values of a layer, and its recurrent state, are tensors that
stay: part of the persistent bytes of an op of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from situate.data.graph import Graph, Op, Tensor
from situate.errors import SituateError, nearest
from situate.language.cache import CacheOptions
from situate.language.layer_seconds import (
    attended_cells,
    cell_bytes,
    cell_operations,
    read_share,
)
from situate.language.model import LanguageModel, Layer, Weight

Phase = Literal["decode", "prefill"]
PHASES: tuple[Phase, ...] = get_args(Phase)

F32 = 4
"""Bytes of an element of activations."""

ATTENTION = ("attention", "recurrent")
"""Roles of weights in the first op of a layer; norms are there too, but for those of networks."""


@dataclass(frozen=True)
class PassSize:
    """The tokens of a pass.

    Attributes:
        phase: `decode` passes one token, `prefill` a ubatch.
        tokens: that pass at once.
        depth: in the cache before them.

    Raises:
        SituateError: the phase does not exist, or numbers are out of range.
    """

    phase: Phase
    tokens: int
    depth: int

    def __post_init__(self) -> None:
        if self.phase not in PHASES:
            raise SituateError(f"unknown phase {self.phase!r}{nearest(self.phase, PHASES)}")
        if self.tokens < 1 or self.depth < 0:
            raise SituateError(f"a pass of {self.tokens} tokens at a depth of {self.depth} is none")


@dataclass
class _Builder:
    """Ops and tensors as they are added."""

    ops: list[Op] = field(default_factory=list)
    tensors: list[tuple[str, int, int, bool, bool]] = field(default_factory=list)
    readers: dict[int, list[int]] = field(default_factory=dict)

    def op(self, op: Op, inputs: Iterable[int] = ()) -> int:
        """Add an op that reads tensors, by their numbers; the op's number."""
        self.ops.append(op)
        for tensor in inputs:
            self.readers.setdefault(tensor, []).append(len(self.ops) - 1)
        return len(self.ops) - 1

    def tensor(self, producer: int, size: int, output: bool = False, resident: bool = False) -> int:
        """Add a tensor; its number."""
        name = f"{self.ops[producer].name}.output"
        self.tensors.append((name, producer, size, output, resident))
        return len(self.tensors) - 1

    def graph(self, name: str) -> Graph:
        tensors = (
            Tensor(text, producer, size, tuple(self.readers.get(i, ())), output, resident)
            for i, (text, producer, size, output, resident) in enumerate(self.tensors)
        )
        return Graph(name, tuple(self.ops), tuple(tensors), source="language model")


def phase_graph(model: LanguageModel, options: CacheOptions, size: PassSize) -> Graph:
    """A pass of the model as a graph.

    Args:
        model: its tensors.
        options: of the cache, which has room for the pass.
        size: tokens and depth.

    Raises:
        SituateError: the cache does not hold the pass, or the model is for shorter texts.
    """
    most = model.sizes.context
    if most and size.depth + size.tokens > most:
        raise SituateError(
            f"--depth: {size.depth:,} and {size.tokens:,} tokens, and {model.name} ends at {most:,}"
        )
    if size.depth + size.tokens > options.context:
        raise SituateError(
            f"--depth: {size.depth:,} and {size.tokens:,} tokens do not fit a context of "
            f"{options.context:,}: give a longer --context"
        )
    stream = F32 * model.sizes.width * size.tokens
    builder = _Builder()
    embedding = sum(weight.size for weight in model.embedding)
    first = builder.op(_op("embedding", "embedding", traffic=stream, persistent=embedding))
    inputs = [builder.tensor(first, stream)]
    for layer in model.layers:
        inputs = _add_layer(builder, model, layer, options, size, inputs)
    matrices = (*model.output, *(model.embedding if model.tied else ()))
    weight_bytes = sum(weight.size for weight in matrices)
    # Logits are of the last token of each sequence.
    flops = 2 * sum(weight.elements for weight in matrices if len(weight.shape) > 1)
    last = builder.op(_op("output", "output", flops, weight_bytes + stream, weight_bytes), inputs)
    builder.tensor(last, F32 * model.sizes.vocabulary, output=True)
    return builder.graph(f"{model.name} {size.phase} at {size.depth}")


def _add_layer(
    builder: _Builder,
    model: LanguageModel,
    layer: Layer,
    options: CacheOptions,
    size: PassSize,
    inputs: Sequence[int],
) -> list[int]:
    """Add the ops of a layer; the tensors that the next one reads."""
    stream = F32 * model.sizes.width * size.tokens
    name = f"blk.{layer.number}"
    cache_bytes = layer.cache.bytes(options) + layer.cache.state_bytes(options.slots)
    reads = list(inputs)
    flops, read_bytes = 0.0, layer.cache.state_bytes(options.slots)
    if layer.cache.attention != "none":
        cells = attended_cells(layer, size.tokens, size.depth)
        flops = cell_operations(model.sizes, layer, options, size.tokens)[0] * cells
        read_bytes += round(cell_bytes(layer, options) * cells)
    if cache_bytes:
        cache = builder.op(_op(f"{name}.cache", "cache", persistent=cache_bytes))
        reads.append(builder.tensor(cache, min(read_bytes, cache_bytes), resident=True))
    groups = _parts(layer)
    attention = builder.op(
        _part(
            f"{name}.attention", "attention", groups["attention"], size.tokens, flops, read_bytes
        ),
        reads,
    )
    hidden = builder.tensor(attention, stream)
    outputs = []
    for part in ("network", "experts"):
        if groups[part]:
            share, tokens = 1.0, float(size.tokens)
            if part == "experts" and layer.experts is not None:
                share = read_share(layer, size.tokens)
                tokens *= layer.experts.used / layer.experts.count
            op = _part(f"{name}.{part}", part, groups[part], tokens, share=share)
            outputs.append(builder.tensor(builder.op(op, [hidden]), stream))
    return outputs or [hidden]


def _parts(layer: Layer) -> dict[str, list[Weight]]:
    parts: dict[str, list[Weight]] = {"attention": [], "network": [], "experts": []}
    for weight in layer.weights:
        if weight.role == "experts":
            parts["experts"].append(weight)
        elif weight.role in ATTENTION or (weight.role == "norm" and "ffn" not in weight.name):
            parts["attention"].append(weight)
        else:
            parts["network"].append(weight)
    return parts


def _part(
    name: str,
    kind: str,
    weights: Sequence[Weight],
    tokens: float,
    flops: float = 0.0,
    traffic: int = 0,
    share: float = 1.0,
) -> Op:
    """An op with its weights, of which a share is read."""
    weight_bytes = sum(weight.size for weight in weights)
    products = 2 * tokens * sum(weight.elements for weight in weights if len(weight.shape) > 1)
    return _op(
        name, kind, round(products + flops), round(weight_bytes * share) + traffic, weight_bytes
    )


def _op(name: str, kind: str, flops: int = 0, traffic: int = 0, persistent: int = 0) -> Op:
    module = name.rpartition(".")[0]
    return Op(
        name,
        kind,
        flops=flops,
        traffic=traffic,
        dtype="float16",
        persistent=persistent,
        module=module,
        phase="forward",
    )
