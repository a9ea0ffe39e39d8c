"""Peak of the activations that llama.cpp allocates on a device, by the moments of its graph.

llama.cpp reserves one buffer a device for the largest graph: a ubatch at the end of the context.
Its peak is the largest of a few moments, and each moment is a sum of live tensors:

- attention without flash attention: scores of all heads, and the mask;
- latent attention of ik_llama.cpp: keys and values decompressed for the whole context;
- a mixture of experts: the outputs of the experts in use, before and after weighting;
- a dense network: its hidden activations;
- logits, and the residual stream beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from situate.language.cache import CacheOptions, cache_type
from situate.language.hyperparameters import Hyperparameters

Engine = Literal["llama.cpp", "ik_llama.cpp"]

LATENT_BLOCK = 512 * 2**20
"""Bytes of attention scores at once in ik_llama.cpp's latent attention (`-amb`)."""

COPIES = 4
"""Inputs of pipeline parallelism (`GGML_SCHED_MAX_COPIES`)."""

F16, F32 = 2, 4


@dataclass(frozen=True)
class Build:
    """The engine, and the options that activations depend on.

    Attributes:
        engine: whose rules hold.
        flash: flash attention (`-fa`).
        mask: bytes of an element of the mask; builds since 2026 have 2 with flash attention.
        pipeline: several ubatches are under way at once.
        scores: bytes of attention scores at once (`-amb`).
        outputs: tokens of a ubatch with logits; 0 for all of them.
        dry: as llama-fit-params counts, which forgets the devices that llama.cpp enforces.
        converts: GPUs convert quantised keys and values to 16 bits before attention, as CUDA does.
    """

    engine: Engine = "llama.cpp"
    flash: bool = True
    mask: int = 2
    pipeline: bool = False
    scores: int = LATENT_BLOCK
    outputs: int = 0
    dry: bool = False
    converts: bool = True


@dataclass(frozen=True)
class Contents:
    """Parts of a model on a device, in long batches.

    Attributes:
        attention: attention of any layer.
        experts: experts of any layer.
        dense: a dense network of any layer.
        output: the output matrix.
        gate, down: bytes of the largest matrices of experts that are uploaded; 0 without any.
        head: bytes of an output matrix that is uploaded.
        visitors: a GPU's layers whose experts the CPU computes.
    """

    attention: bool = False
    experts: bool = False
    dense: bool = False
    output: bool = False
    gate: int = 0
    down: int = 0
    head: int = 0
    visitors: bool = False


def accelerator_peak(
    sizes: Hyperparameters, options: CacheOptions, contents: Contents, build: Build
) -> int:
    """Bytes of the compute buffer of a GPU; 0 if no part of the model is there."""
    moments = [0]
    if contents.attention:
        moments.append(_attention(sizes, options, build, contents))
    if contents.experts or contents.down:
        moments.append(_experts(sizes, options, contents, build))
    if contents.gate and build.engine == "ik_llama.cpp":
        # One op computes with both matrices, gate and up.
        masks = (F32 + F16) * options.ubatch * options.cells
        moments.append(2 * contents.gate + masks + _stream(sizes, options))
    if contents.head:
        logits = F32 * sizes.vocabulary * (build.outputs or options.ubatch)
        moments.append(contents.head + logits + _stream(sizes, options))
    if contents.dense:
        moments.append(_dense(sizes, options))
    if contents.output:
        tokens = build.outputs or options.ubatch
        streams = 2 if build.engine == "ik_llama.cpp" and sizes.experts and build.flash else 1
        moments.append(streams * _stream(sizes, options) + F32 * sizes.vocabulary * tokens)
    return max(moments)


def host_peak(
    sizes: Hyperparameters,
    options: CacheOptions,
    contents: Contents,
    build: Build,
    accelerated: bool,
) -> int:
    """Bytes of the compute buffers in host memory.

    Args:
        sizes: of the model.
        options: of the cache; the ubatch counts.
        contents: parts that the CPU computes with, in long batches too.
        build: the engine.
        accelerated: a GPU has layers, whose inputs are staged in host memory.
    """
    stream = _stream(sizes, options)
    mask = build.mask * options.ubatch * options.cells * (COPIES if build.pipeline else 1)
    if accelerated:
        used = sizes.experts.used if contents.experts and sizes.experts else 1
        masks = 2 if sizes.window and not options.full_window else 1
        return stream * used + mask * masks
    moments = [F32 * sizes.vocabulary * (build.outputs or options.ubatch) + stream]
    if sizes.latent is not None and options.latent and build.engine == "ik_llama.cpp":
        cells = _decompressed(sizes, options)
        block = cells if build.scores >= 2 * cells else 0
        moments.append(cells + block + mask + 2 * stream)
        if cells < moments[0]:
            # The logits do not fit into the place of keys and values, and lie behind them.
            moments.append(cells + mask + moments[0])
    elif not build.flash:
        head = sizes.key_size if sizes.latent is None else sizes.latent.key
        queries = F32 * options.ubatch * max(sizes.heads) * head
        moments.append(_scores(sizes, options) + mask + 3 * queries)
    return max(moments)


def _stream(sizes: Hyperparameters, options: CacheOptions) -> int:
    """Bytes of the residual stream of a ubatch."""
    return F32 * sizes.width * options.ubatch


def _masks(options: CacheOptions, build: Build) -> int:
    """Bytes of the mask on a GPU, which flash attention reads in 16 bits."""
    size = F16 if build.flash else build.mask
    return size * options.ubatch * options.cells * (COPIES if build.pipeline else 1)


def _scores(sizes: Hyperparameters, options: CacheOptions) -> int:
    """Bytes of the attention scores of all heads."""
    return F32 * max(sizes.heads) * options.ubatch * options.cells


def _decompressed(sizes: Hyperparameters, options: CacheOptions) -> int:
    """Bytes of the keys and values of a latent cache, for all heads, in 16 bits."""
    assert sizes.latent is not None
    return F16 * max(sizes.heads) * (sizes.latent.key + sizes.latent.value) * options.cells


def _converted(sizes: Hyperparameters, options: CacheOptions) -> int:
    """Bytes of a layer's quantised keys and values in 16 bits."""
    heads = max(sizes.kv_heads)
    pairs = ((sizes.key_size, options.key_type), (sizes.value_size, options.value_type))
    widths = sum(width for width, kind in pairs if cache_type(kind).quantized)
    return F16 * heads * widths * options.cells


def _attention(
    sizes: Hyperparameters, options: CacheOptions, build: Build, contents: Contents
) -> int:
    stream, heads = _stream(sizes, options), max(sizes.heads)
    queries = F32 * options.ubatch * heads * sizes.key_size
    if sizes.latent is not None and build.engine == "ik_llama.cpp" and options.latent:
        return _latent_blocks(sizes, options, build, contents)
    if not build.flash:
        return _scores(sizes, options) + _masks(options, build) + queries
    if sizes.latent is not None and options.latent:
        # Queries and results are as wide as the compressed cache.
        queries = F32 * options.ubatch * heads * (sizes.latent.cache_rank + sizes.latent.rope)
        quantized = cache_type(options.key_type).quantized
        converted = F16 * (queries // (F32 * options.ubatch * heads)) * options.cells
        return 2 * queries + _masks(options, build) + stream + (converted if quantized else 0)
    return _converted(sizes, options) + _masks(options, build) + 2 * queries + 2 * stream


def _latent_blocks(
    sizes: Hyperparameters, options: CacheOptions, build: Build, contents: Contents
) -> int:
    """ik_llama.cpp's attention over decompressed keys and values, some heads at once."""
    mla = sizes.latent
    assert mla is not None
    heads = max(sizes.heads)
    block = F32 * heads * (mla.key - mla.rope + mla.value) * options.cells
    while block > build.scores:
        block //= 2
    quantized = cache_type(options.key_type).quantized
    latent = F16 * mla.cache_rank * options.cells if quantized else 0
    queries = F32 * options.ubatch * heads * mla.key
    visitors = sizes.experts.used if contents.visitors and sizes.experts else 0
    # The mask is in memory in 16 bits, and for a part of the time in 32. Behind uploads it has
    # both copies twice, and the queries lie in the place of the uploads.
    mask = options.ubatch * options.cells
    beside = queries + 3 * mask + _stream(sizes, options) * (1 + visitors)
    if contents.gate:
        beside = max(beside, 8 * mask)
    return _decompressed(sizes, options) + block + latent + beside


def _experts(
    sizes: Hyperparameters, options: CacheOptions, contents: Contents, build: Build
) -> int:
    e = sizes.experts
    if e is None:
        return 0
    streams = 2 * e.used + (1 if sizes.latent is not None and contents.down else 2)
    outputs = streams * _stream(sizes, options)
    mask = F16 * options.ubatch * options.cells if contents.attention and contents.down else 0
    if contents.down and build.engine == "ik_llama.cpp" and sizes.latent is None:
        hidden = F32 * e.used * e.width * options.ubatch
        outputs += hidden + _converted(sizes, options)
    return outputs + contents.down + mask


def _dense(sizes: Hyperparameters, options: CacheOptions) -> int:
    return F32 * options.ubatch * 2 * max(sizes.hidden) + 2 * _stream(sizes, options)
