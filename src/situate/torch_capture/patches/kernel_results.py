"""Strides and dtypes of results as CPU kernels give them, where PyTorch reports others for fake
tensors. Later kernels add up numbers in the order in which memory holds them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from situate.torch_capture.patches.patched import dispatched

if TYPE_CHECKING:
    import torch

    Strides = tuple[int, ...]

CONTIGUOUS = frozenset(
    {
        *("native_layer_norm", "native_layer_norm_backward"),
        *("_softmax_backward_data", "_log_softmax_backward_data", "log_sigmoid_forward"),
        *("mse_loss_backward", "smooth_l1_loss_backward", "huber_loss_backward"),
        "glu_backward",
    }
)
"""Operators whose results are contiguous for any inputs."""

BATCH_NORMS = frozenset(
    {
        *("native_batch_norm", "_batch_norm_with_update", "_batch_norm_with_update_functional"),
        *("_native_batch_norm_legit", "_native_batch_norm_legit_functional"),
        "_native_batch_norm_legit_no_training",
    }
)
"""Operators whose first result has the memory format of their first argument."""

BATCH_NORM_GRADIENTS = frozenset({"native_batch_norm_backward", "batch_norm_backward"})
"""Operators whose first result has the memory format of their second argument."""

PRODUCTS = {
    "native_dropout_backward": 1,
    "hardswish_backward": 1,
    "hardtanh_backward": 1,
    "softplus_backward": 1,
    "logit_backward": 1,
    "elu_backward": 5,
}
"""Operators whose result is laid out like the product of their first argument and another, with the
number of the other."""

ALIKE = {"binary_cross_entropy_backward": 1}
"""Operators whose result is laid out like an argument, with the number of the argument."""


@contextlib.contextmanager
def layouts_as_computed() -> Iterator[None]:
    """A block that traces results with the strides that kernels give them."""

    def corrected(run: Any, mode: Any, func: Any, args: Sequence[Any], kwargs: Any) -> Any:
        result = run(func, args, kwargs)
        results = result if isinstance(result, tuple) else (result,)
        strides = _strides(run, getattr(func, "_opname", ""), args, results)
        if not strides:
            return result
        with mode:
            laid_out_results = (_laid_out(*pair) for pair in zip(results, strides, strict=False))
            laid_out = (*laid_out_results, *results[len(strides) :])
        return laid_out if isinstance(result, tuple) else laid_out[0]

    with dispatched(corrected):
        yield


def _strides(
    run: Any, name: str, args: Sequence[Any], results: Sequence[torch.Tensor | None]
) -> list[Strides]:
    """The strides of an operator's first results; empty if PyTorch reports them correctly."""
    if name in CONTIGUOUS:
        return [() if result is None else _contiguous(result) for result in results]
    if name in BATCH_NORMS:
        return [_formatted(args[0], _compact(args[0]) or _suggested_format(args[0]))]
    if name in BATCH_NORM_GRADIENTS:
        gradient, x = args[:2]
        # The CPU kernel keeps a compact format only if gradient and input agree on it.
        alike = _compact(gradient) and _suggested_format(gradient) == _suggested_format(x)
        return [_formatted(x, (alike and _compact(x)) or _suggested_format(x))]
    if name in PRODUCTS or name in ALIKE:
        from torch.ops import aten

        # PyTorch derives the strides of these two operators correctly, so they provide the others'.
        if name in PRODUCTS:
            return [run(aten.mul.Tensor, (args[0], args[PRODUCTS[name]]), {}).stride()]
        return [run(aten.empty_like.default, (args[ALIKE[name]],), {}).stride()]
    return []


def _compact(tensor: torch.Tensor) -> torch.memory_format | None:
    """The first memory format in which a tensor has no gaps; None if there is none."""
    import torch

    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(tensor.dim())
    formats = (torch.contiguous_format, *([last] if last else []))
    return next(
        (candidate for candidate in formats if tensor.is_contiguous(memory_format=candidate)), None
    )


def _suggested_format(tensor: torch.Tensor) -> torch.memory_format:
    """The memory format that PyTorch infers from a tensor's strides, with or without gaps."""
    from torch._prims_common import suggest_memory_format

    return suggest_memory_format(tensor)


def _contiguous(tensor: torch.Tensor) -> Strides:
    import torch

    return _formatted(tensor, torch.contiguous_format)


def _formatted(tensor: torch.Tensor, memory_format: torch.memory_format) -> Strides:
    """The strides of a tensor of this shape in a memory format."""
    import torch

    # A tensor on `meta` computes strides without memory.
    return torch.empty(tensor.shape, device="meta", memory_format=memory_format).stride()


def _laid_out(tensor: torch.Tensor | None, strides: Strides) -> torch.Tensor | None:
    """The fake tensor if it has these strides, otherwise a new one that has them."""
    if tensor is None or tensor.stride() == strides:
        return tensor
    return tensor.new_empty_strided(tensor.shape, strides)


NORMALISATIONS = frozenset(
    {
        "native_layer_norm",
        "native_group_norm",
        "native_batch_norm",
        "_native_batch_norm_legit",
        "_native_batch_norm_legit_functional",
        "_native_batch_norm_legit_no_training",
    }
)
"""Operators that return means and reciprocal deviations as their second and third output."""


@contextlib.contextmanager
def statistics_as_computed() -> Iterator[None]:
    """A block that traces means and deviations of normalisations with the dtype that kernels give
    them.

    If the weights are finer than the input, as under autocast, that is the dtype of the weights.
    PyTorch reports another for fake tensors.
    """
    import torch

    def corrected(run: Any, mode: Any, func: Any, args: Sequence[Any], kwargs: Any) -> Any:
        result = run(func, args, kwargs)
        if getattr(func, "_opname", None) not in NORMALISATIONS:
            return result
        dtype = finest(args)
        with mode:
            statistics = [torch.empty_like(value, dtype=dtype) for value in result[1:3]]
        return (result[0], *statistics, *result[3:])

    with dispatched(corrected):
        yield


def finest(args: Sequence[Any]) -> Any:
    """The dtype that holds the numbers of all tensor arguments."""
    import torch

    tensors = (value.dtype for value in args if isinstance(value, torch.Tensor))
    return reduce(torch.promote_types, tensors)
