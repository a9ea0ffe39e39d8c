"""Stage: kernels of each op class, against the device's peaks.

Every workload says how many FLOPs and bytes it needs, as the roofline counts them (docs/costs.md).
The `efficiency` of a cluster file is a fraction of these rates. Data is random.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.gpu.hardware import Call, device_seconds, target
from benchmarks.gpu.process import Context
from situate.data.op_classes import op_class
from situate.data.roofline import peak
from situate.runtime.model_state.optimizers import default_optimizer
from situate.runtime.programs.replacements import attention

DTYPES = {
    "float32": torch.float32,
    "tfloat32": torch.float32,
    "bfloat16": torch.bfloat16,
}
"""Names of cluster files; `tfloat32` multiplies float32 on the tensor cores."""

OF_TENSOR_CORES = ("matmul", "convolution")
"""Classes that `tfloat32` makes a difference to."""


@dataclass(frozen=True)
class Workload:
    """A call of one op.

    Attributes:
        kind: the operator, which decides the op class.
        size: of it, in words.
        flops, traffic: arithmetic, and bytes read and written.
    """

    kind: str
    size: str
    flops: float
    traffic: float
    call: Call


def measure(context: Context) -> None:
    """Seconds, rates and fractions of the peaks, a row for each workload and dtype."""
    device, _ = target(context)
    context.take_device()
    peaks: dict[str, Any] = {"flops": device.flops, "bandwidth": device.bandwidth}
    context.note(model=device.model, peaks=peaks)
    rows: list[dict[str, Any]] = []
    for name, dtype in DTYPES.items():
        torch.backends.cuda.matmul.allow_tf32 = name == "tfloat32"
        torch.backends.cudnn.allow_tf32 = name == "tfloat32"
        for workload in workloads(context, dtype):
            if name != "tfloat32" or op_class(workload.kind) in OF_TENSOR_CORES:
                rows.append(_row(context, workload, name, peak(device.flops, name), device))
        context.note(kernels=rows)


def _row(
    context: Context, workload: Workload, dtype: str, flops: float, device: Any
) -> dict[str, Any]:
    row = {
        "class": op_class(workload.kind),
        "op": workload.kind,
        "size": workload.size,
        "dtype": dtype,
    }
    try:
        seconds = device_seconds(context, workload.call)
    except RuntimeError as error:
        return row | {"error": str(error)[:200]}
    return row | {
        "seconds": seconds,
        "flop_rate": workload.flops / seconds,
        "byte_rate": workload.traffic / seconds,
        "of_peak_flops": workload.flops / seconds / flops,
        "of_bandwidth": workload.traffic / seconds / device.bandwidth,
    }


def workloads(context: Context, dtype: torch.dtype) -> Iterator[Workload]:
    """The workloads in one dtype, one after the other, so that one's memory is free for the next;
    in a rehearsal their dimensions are a thirty-second, at least 4."""
    generator = torch.Generator(context.device).manual_seed(context.seed)
    shrink = 32 if context.tiny else 1

    def n(size: int) -> int:
        return max(4, size // shrink)

    def draw(*size: int) -> Tensor:
        numbers = torch.randn(size, generator=generator, device=context.device)
        return numbers.to(dtype)

    for rows, inner, columns in ((8192, 8192, 8192), (8192, 768, 3072), (1024, 1024, 1024)):
        yield _product(draw(n(rows), n(inner)), draw(n(inner), n(columns)))
    for channels, side in ((64, 56), (256, 14)):
        images, filters = (
            draw(n(32), n(channels), side, side),
            draw(n(channels), n(channels), 3, 3),
        )
        yield from _convolutions(images, filters)
    yield from _attentions([draw(n(8), 12, n(1024), 64) for _ in range(3)])
    yield from _streams(draw(n(8192), n(8192)), draw(n(8192), n(8192)))
    yield from _reductions(draw(n(8192), n(8192)), draw(n(32), n(256), 56, 56))
    words = torch.randint(n(50000), (n(8192),), generator=generator, device=context.device)
    yield _lookup(draw(n(50000), 768), words)
    yield from _updates(draw(n(8192), n(4096)))


def _product(a: Tensor, b: Tensor) -> Workload:
    flops = 2.0 * a.shape[0] * a.shape[1] * b.shape[1]
    out = a.shape[0] * b.shape[1] * a.element_size()
    size = " x ".join(map(str, (*a.shape, b.shape[1])))
    return Workload("aten.mm", size, flops, a.nbytes + b.nbytes + out, lambda: torch.mm(a, b))


def _convolutions(images: Tensor, filters: Tensor) -> Iterator[Workload]:
    flops = 2.0 * images.numel() * filters.shape[0] * 9
    size = f"{tuple(images.shape)}, 3 x 3"
    traffic = 2 * images.nbytes + filters.nbytes
    options = (None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    yield Workload(
        "aten.convolution", size, flops, traffic, lambda: F.conv2d(images, filters, padding=1)
    )
    gradient = torch.ones_like(images) * images.flatten()[0]
    yield Workload(
        "aten.convolution_backward",
        size,
        2 * flops,
        3 * images.nbytes + 2 * filters.nbytes,
        lambda: torch.ops.aten.convolution_backward(
            gradient, images, filters, *options, [True, True, False]
        ),
    )


def _attentions(parts: list[Tensor]) -> Iterator[Workload]:
    """PyTorch's own kernel, and the ops that stand for it in a placed step."""
    query, key, value = parts
    b, h, length, width = query.shape
    flops, traffic = 4.0 * b * h * length**2 * width, 4 * query.nbytes
    size = str(tuple(query.shape))
    kind = "aten._scaled_dot_product_flash_attention"
    yield Workload(
        kind, size, flops, traffic, lambda: F.scaled_dot_product_attention(query, key, value)
    )
    yield Workload(f"{kind}_for_cpu", size, flops, traffic, lambda: attention(query, key, value))


def _streams(a: Tensor, b: Tensor) -> Iterator[Workload]:
    size = str(tuple(a.shape))
    yield Workload("aten.add", size, a.numel(), 3 * a.nbytes, lambda: torch.add(a, b))
    yield Workload("aten.relu", size, a.numel(), 2 * a.nbytes, lambda: torch.relu(a))
    yield Workload("aten.gelu", size, a.numel(), 2 * a.nbytes, lambda: F.gelu(a))
    yield Workload("aten.copy_", size, 0.0, 2 * a.nbytes, lambda: b.copy_(a))


def _reductions(rows: Tensor, images: Tensor) -> Iterator[Workload]:
    size, width = str(tuple(rows.shape)), rows.shape[-1]
    yield Workload(
        "aten._softmax", size, rows.numel(), 2 * rows.nbytes, lambda: torch.softmax(rows, -1)
    )
    yield Workload(
        "aten.native_layer_norm",
        size,
        rows.numel(),
        2 * rows.nbytes,
        lambda: F.layer_norm(rows, (width,)),
    )
    yield Workload("aten.sum", size, rows.numel(), rows.nbytes, lambda: rows.sum())
    yield Workload(
        "aten.native_batch_norm",
        str(tuple(images.shape)),
        images.numel(),
        2 * images.nbytes,
        lambda: F.batch_norm(images, None, None, training=True),
    )


def _lookup(table: Tensor, words: Tensor) -> Workload:
    traffic = 2 * words.numel() * table.shape[1] * table.element_size()
    size = f"{words.numel()} of {tuple(table.shape)}"
    return Workload("aten.embedding", size, 0.0, traffic, lambda: F.embedding(words, table))


def _updates(weights: Tensor) -> Iterator[Workload]:
    """One parameter at a time, as a placed step updates."""
    for kind, flops, passes in (("sgd", 2, 3), ("adamw", 14, 7)):
        parameter = torch.nn.Parameter(weights.clone())
        parameter.grad = weights
        optimizer = default_optimizer(kind, [parameter])
        optimizer.param_groups[0] |= {"lr": 0.0, "foreach": False}
        yield Workload(
            f"update.{kind}",
            str(tuple(weights.shape)),
            float(flops * weights.numel()),
            passes * weights.nbytes,
            optimizer.step,
        )
