"""Bytes of compute buffers by a replay of llama.cpp's reservation: one pass over a full ubatch.

Of runs of equal layers a few stand for all: what is alive at the end of one is alive at the end of
the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from situate.language.activations.allocation import Allocator
from situate.language.activations.blocks import PASS, Block, Matrix, PassOptions
from situate.language.activations.passes import PassBuilder
from situate.language.activations.scheduling import Scheduler
from situate.language.activations.tensors import F32
from situate.language.hyperparameters import Hyperparameters
from situate.language.layout import HOST, Layout
from situate.language.model import LanguageModel, LayerKind, gguf_layer

LONGEST_PERIOD, REPEATS = 8, 3
"""Longest pattern of layers that is recognised, and how often it stays at least."""


def can_replay(model: LanguageModel, layout: Layout) -> bool:
    """True if the graph of a model is known, and its layers are on devices one after the other."""
    names = {weight.name for weight in model.layers[0].weights}
    return (
        model.sizes.architecture in PASS
        and layout.split == "layer"
        and "blk.0.attn_norm.weight" in names
    )


def replayed_peaks(
    model: LanguageModel, layout: Layout, options: PassOptions, pipeline: bool
) -> list[int]:
    """Bytes of the compute buffer of each device of `layout.order`, and of the host last."""
    numbers = _numbers(layout)
    moved, width = dict(layout.moved), model.sizes.width
    matrices = [
        Matrix(weight.shape, weight.size, numbers[moved.get(weight.name, place)])
        for weights, place in ((model.embedding, HOST), (model.output, layout.output))
        for weight in weights
        if weight.role in ("embedding", "output")
    ]
    embedding, head = matrices[0], matrices[-1]
    if model.tied:
        head = embedding._replace(place=numbers[layout.output])
    return list(
        _replay(
            model.sizes,
            _shortened(_blocks(model, layout)),
            embedding,
            Matrix((width,), F32 * width, numbers[layout.split_output]),
            head,
            options,
            Setting(
                len(layout.order),
                layout.op_offload,
                pipeline,
                options.enforced and HOST not in layout.layers,
            ),
        )
    )


class Setting(NamedTuple):
    """The scheduler's side of a pass.

    Attributes:
        gpus: number of GPUs.
        op_offload, pipeline: as in a layout.
        pinned: all layers are on GPUs, so that llama.cpp pins normalisations to their layers.
    """

    gpus: int
    op_offload: bool
    pipeline: bool
    pinned: bool


def _numbers(layout: Layout) -> dict[int, int]:
    """The scheduler's number of each device; the host is the last one."""
    numbers = {gpu: i for i, gpu in enumerate(layout.order)}
    return numbers | {HOST: len(layout.order)}


def _blocks(model: LanguageModel, layout: Layout) -> list[Block]:
    """The layers; those whose matrices differ in their types alone are equal, of the largest."""
    numbers = _numbers(layout)
    moved: dict[int, list[tuple[str, int]]] = {}
    for name, place in layout.moved:
        if (layer := gguf_layer(name)) is not None:
            moved.setdefault(layer, []).append((name[len(f"blk.{layer}.") :], numbers[place]))
    kinds, templates = model.layer_kinds
    keys = [
        (kind, numbers[place], numbers[experts], tuple(moved.get(i, ())))
        for i, (kind, place, experts) in enumerate(
            zip(kinds, layout.layers, layout.experts, strict=True)
        )
    ]
    blocks = {key: _block(templates[key[0]], *key[1:]) for key in dict.fromkeys(keys)}
    largest: dict[tuple[str, int], int] = {}
    for block in blocks.values():
        for name, matrix in block.weights:
            part = name, matrix.place
            largest[part] = max(largest.get(part, 0), matrix.size)
    for key, block in blocks.items():
        weights = tuple(
            (name, matrix._replace(size=largest[name, matrix.place]))
            for name, matrix in block.weights
        )
        blocks[key] = block._replace(weights=weights)
    # Equal blocks become one object: `_shortened` compares identities.
    distinct = {block: block for block in blocks.values()}
    return [distinct[blocks[key]] for key in keys]


def _block(kind: LayerKind, place: int, experts: int, moved: Sequence[tuple[str, int]]) -> Block:
    places = dict(moved)
    weights = tuple(
        (name, Matrix(shape, size, places.get(name, experts if of_experts else place)))
        for name, shape, size, of_experts in kind.weights
    )
    return Block(place, kind.window, weights)


def _shortened(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """The layers without the repetitions of a pattern beyond the first few."""
    keys = [id(block) for block in blocks]
    result: list[Block] = []
    i = 0
    while i < len(keys):
        period, repeats = _pattern(keys, i)
        # What is alive may alternate, so that an even number is left out.
        count = min(repeats, REPEATS + (repeats - REPEATS) % 2)
        result += blocks[i : i + period * count]
        i += period * repeats
    return tuple(result)


def _pattern(keys: Sequence[int], start: int) -> tuple[int, int]:
    """The period from `start` that saves the most layers, and how often it occurs in a row."""
    best = (1, 1)
    for period in range(1, LONGEST_PERIOD + 1):
        end = start + period
        while end < len(keys) and keys[end] == keys[end - period]:
            end += 1
        repeats = (end - start) // period
        # Layers that a period saves are those of its repetitions beyond the first `REPEATS`.
        if period * (repeats - REPEATS) > best[0] * (best[1] - REPEATS) and repeats > REPEATS:
            best = period, repeats
    return best


@lru_cache(maxsize=4096)
def _replay(
    sizes: Hyperparameters,
    blocks: tuple[Block, ...],
    embedding: Matrix,
    norm: Matrix,
    head: Matrix,
    options: PassOptions,
    setting: Setting,
) -> tuple[int, ...]:
    builder = PassBuilder(sizes, options)
    builder.begin(embedding.tensor())
    for i, block in enumerate(blocks):
        builder.layer(block, setting.pinned, last=i == len(blocks) - 1)
    graph = builder.end(norm.tensor(), head.tensor())
    leaves, nodes = Scheduler(setting.gpus, setting.op_offload, setting.pipeline).run(graph)
    return tuple(Allocator(setting.gpus + 1).run(leaves, nodes))
