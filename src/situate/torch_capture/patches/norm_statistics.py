"""Statistics of normalisations as the kernels make them, where PyTorch says otherwise of fake
tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

from situate.torch_capture.patches.patched import dispatched

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
        made = run(func, args, kwargs)
        if getattr(func, "_opname", None) not in NORMALISATIONS:
            return made
        dtype = finest(args)
        with mode:
            statistics = [torch.empty_like(value, dtype=dtype) for value in made[1:3]]
        return (made[0], *statistics, *made[3:])

    with dispatched(corrected):
        yield


def finest(args: Sequence[Any]) -> Any:
    """The type that holds the numbers of all tensors that an operator is given."""
    import torch

    tensors = (given.dtype for given in args if isinstance(given, torch.Tensor))
    return reduce(torch.promote_types, tensors)
