"""What kernels give as they give it, where PyTorch says otherwise of fake tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from situate.readers.torch.patched import replaced

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
    them, which is that of weights where these are finer than the input, as under autocast; and
    the gradient of a dropout with the strides of a product, which it is."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.ops import aten

    dispatch = FakeTensorMode.dispatch

    def corrected(
        mode: Any,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> Any:
        if func is aten.native_dropout_backward.default:
            return dispatch(mode, aten.mul.Tensor, types, tuple(args[:2]), {})
        made: Any = dispatch(mode, func, types, args, kwargs or {})
        if getattr(func, "_opname", None) not in NORMALISATIONS:
            return made
        finest = _finest(args)
        with mode:
            statistics = [torch.empty_like(value, dtype=finest) for value in made[1:3]]
        return (made[0], *statistics, *made[3:])

    with replaced(FakeTensorMode, "dispatch", corrected):
        yield


def _finest(args: Sequence[Any]) -> Any:
    """The type that holds the numbers of all tensors that an operator is given."""
    import torch

    tensors = (given.dtype for given in args if isinstance(given, torch.Tensor))
    return reduce(torch.promote_types, tensors)
