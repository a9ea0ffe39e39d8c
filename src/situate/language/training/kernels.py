"""Seconds of the kernels of a layer: matrix products, attention, and passes over memory.

A matrix product takes the longer of its operations and one wave of tiles, and its bytes beside
them. So small and thin products are slower than their operations, as NVIDIA's "Matrix
Multiplication Background User's Guide" describes.
"""

from __future__ import annotations

import numpy as np

from situate.language.training.gpus import Gpu
from situate.language.training.layout import Floats
from situate.language.training.software import Attention

TILE = 128
"""Rows and columns of the result that a multiprocessor computes at once."""

PRODUCT_SHARE = {"float32": 0.85, "tfloat32": 0.7, "float8_e4m3fn": 0.55, "float4_e2m1fn": 0.4}
"""Share of a nominal rate that large products reach; 16-bit ones have the GPU's own."""

MEMORY_SHARE = 0.8
"""Share of the nominal bandwidth that passes over memory reach."""

FLASH_SHARE, SCORES_SHARE = 0.45, 0.35
"""Share of the nominal rate that the products of attention reach: with flash attention
(arXiv:2307.08691, table of forward and backward passes), and with scores in memory."""

SCORE_PASSES, SCORE_BACKWARD = 6.5, 9.5
"""Times that a 2-byte score goes through memory without a kernel of its own. Forwards the product
writes it, softmax and dropout read and write it, the mask has half of it, and the next product
reads it. Backwards four products read or write it, dropout twice, softmax three times, and the mask
is half of it."""

CONVERSION = 3
"""Bytes that find the scale of an element of a product in 8 bits, and convert it."""

ROWWISE = "float8_rowwise"
"""8-bit products with a scale for each row, whose kernels were no faster than those of 16 bits
(torchtitan, `benchmarks/asyncTP_llama3_h100_2025-06_torchtitan.md`)."""


def product_rate(gpu: Gpu, kind: str) -> float:
    """FLOP/s of large products of a type; products without own units run in 16 bits."""
    for name in (kind, "bfloat16", "float16"):
        if rate := gpu.rate(name):
            return rate * PRODUCT_SHARE.get(name, gpu.sustained)
    return gpu.rate("float32") * gpu.sustained or 1e12


def product_seconds(
    gpu: Gpu, kind: str, rows: Floats, columns: Floats | float, depth: Floats | float
) -> Floats:
    """(layouts,) seconds of a product of (rows, depth) by (depth, columns)."""
    rate = product_rate(gpu, kind)
    tiles = np.ceil(rows / TILE) * np.ceil(np.asarray(columns) / TILE)
    # A wave takes as long with idle multiprocessors.
    waves = np.maximum(tiles, gpu.units) * TILE * TILE
    operations = 2.0 * np.maximum(waves, rows * columns) * depth
    width = 1 if kind.startswith("float8") else 2
    # Both factors are read, and the result is written in 16 bits.
    moved = width * (rows * depth + depth * columns) + 2 * rows * columns
    if kind.startswith(("float8", "float4")):
        times = 2 if kind == ROWWISE else 1
        moved = moved + times * CONVERSION * (rows * depth + depth * columns)
    seconds: Floats = operations / rate + moved / (MEMORY_SHARE * gpu.bandwidth)
    return seconds


def attention_seconds(
    gpu: Gpu, pairs: Floats, width: int, kernel: Attention, scores: Floats
) -> tuple[Floats, Floats]:
    """(layouts,) seconds of the forward and the backward pass of attention's core.

    Args:
        gpu: that computes.
        pairs: of queries and keys of all heads, without those that a mask hides.
        width: elements of a key and of a value.
        kernel: of the software.
        scores: bytes of all scores, which go through memory without flash attention.
    """
    rate = gpu.rate("bfloat16") or gpu.rate("float16") or gpu.rate("float32")
    operations = 2.0 * pairs * width
    if kernel != "scores":
        share = FLASH_SHARE * (gpu.flash2 if kernel == "flash2" else 1.0)
        forward = operations / (share * rate)
        # The backward pass computes the scores again: five products for two.
        return forward, 2.5 * forward
    # Without a kernel of its own, attention multiplies what the mask hides too.
    products = 2 * operations / (SCORES_SHARE * rate)
    once = scores / (MEMORY_SHARE * gpu.bandwidth)
    return products + SCORE_PASSES * once, 2 * products + SCORE_BACKWARD * once


def pass_seconds(gpu: Gpu, moved: Floats) -> Floats:
    """(layouts,) seconds in which so many bytes go through the memory of a GPU."""
    seconds: Floats = moved / (MEMORY_SHARE * gpu.bandwidth)
    return seconds
