"""Strides and dtypes of results as CPU kernels give them, where PyTorch reports others for fake
tensors."""

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
"""Operators whose results are contiguous, whatever they are given."""

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
"""Operators whose result is laid out as the product of their first argument and another, and the
number of that."""

ALIKE = {"binary_cross_entropy_backward": 1}
"""Operators whose result is laid out as an argument, and the number of that."""


@contextlib.contextmanager
def layouts_as_computed() -> Iterator[None]:
    """Trace results with the strides that kernels give them."""

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
    """The strides of the first results of an operator; none where PyTorch is believed."""
    import torch
    from torch.ops import aten

    plain = torch.contiguous_format
    if name in CONTIGUOUS:
        return [() if result is None else _formatted(result, plain) for result in results]
    if name in BATCH_NORMS:
        return [_formatted(args[0], _compact(args[0]) or _suggested_format(args[0]))]
    if name in BATCH_NORM_GRADIENTS:
        gradient, input_ = args[:2]
        alike = _compact(gradient) and _suggested_format(gradient) == _suggested_format(input_)
        return [_formatted(input_, (alike and _compact(input_)) or _suggested_format(input_))]
    if name in PRODUCTS:
        return [run(aten.mul.Tensor, (args[0], args[PRODUCTS[name]]), {}).stride()]
    if name in ALIKE:
        return [run(aten.empty_like.default, (args[ALIKE[name]],), {}).stride()]
    return []


def _compact(tensor: torch.Tensor) -> torch.memory_format | None:
    """The first memory format in which a tensor lies without gaps, if there is one."""
    import torch

    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(tensor.dim())
    formats = (torch.contiguous_format, *([last] if last else []))
    return next(
        (candidate for candidate in formats if tensor.is_contiguous(memory_format=candidate)), None
    )


def _suggested_format(tensor: torch.Tensor) -> torch.memory_format:
    """The memory format that PyTorch sees in the strides of a tensor, with gaps or without."""
    from torch._prims_common import suggest_memory_format

    return suggest_memory_format(tensor)


def _formatted(tensor: torch.Tensor, memory_format: torch.memory_format) -> Strides:
    """The strides of a tensor of this shape in a memory format."""
    import torch

    return torch.empty(tensor.shape, device="meta", memory_format=memory_format).stride()


def _laid_out(tensor: torch.Tensor | None, strides: Strides) -> torch.Tensor | None:
    """A fake tensor if it has these strides, else one that does."""
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
    """Trace the means and deviations of what is normalised with the type that the kernels give
    them, which is that of weights where these are finer than the input, as under autocast: those
    that PyTorch gives to fake tensors are of another type."""
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
    """The type that holds the numbers of all tensors that an operator is given."""
    import torch

    tensors = (value.dtype for value in args if isinstance(value, torch.Tensor))
    return reduce(torch.promote_types, tensors)
