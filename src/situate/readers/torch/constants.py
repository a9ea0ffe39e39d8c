"""Values of fake tensors that a program makes of numbers of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from situate.readers.torch.patched import replaced

LARGEST = 2**24
"""Numbers of a tensor whose values are kept: those of a mask of 4,096 by 4,096 tokens."""

FILLING = frozenset(
    f"{name}{suffix}"
    for name in ("arange", "eye", "full", "linspace", "ones", "scalar_tensor", "zeros")
    for suffix in ("", "_like")
) | {"new_full", "new_ones", "new_zeros"}
"""Operators whose result depends neither on values of tensors nor on chance."""


@contextlib.contextmanager
def constants_known() -> Iterator[None]:
    """Let a program on fake tensors look at what it fills itself, such as a causal mask. PyTorch
    knows the value of `torch.tensor(2)` and of what is made of such numbers; within, it does of
    whatever operators of `FILLING` make.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    dispatch = FakeTensorMode.dispatch

    def filled(
        mode: Any,
        func: Any,
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> Any:
        made: Any = dispatch(mode, func, types, args, kwargs or {})
        fills = getattr(func, "_opname", None) in FILLING and _worth_keeping(mode, made)
        return _with_values(mode, made, func, args, kwargs or {}) if fills else made

    with (
        replaced(FakeTensorMode, "dispatch", filled),
        replaced(FakeTensorMode, "may_turn_const", _worth_keeping),
    ):
        yield


def _worth_keeping(_: Any, tensor: Any) -> bool:
    import torch

    dense = tensor.layout == torch.strided and tensor.device.type == "cpu"
    return bool(dense and tensor.numel() <= LARGEST)


def _with_values(
    mode: Any, made: Any, func: Any, args: Sequence[object], kwargs: Mapping[str, object]
) -> Any:
    """`made`, and what is really in it. Of a tensor that is given only its kind, or where it is of
    the same size its strides, matter."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.utils._mode_utils import no_dispatch
    from torch.utils._pytree import tree_map_only

    def like(given: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided(made.shape, made.stride(), dtype=given.dtype)

    with no_dispatch():
        given, named = tree_map_only(FakeTensor, like, (tuple(args), dict(kwargs)))
        real = func(*given, **named)
    return mode.fake_tensor_converter.from_real_tensor(mode, real, make_constant=True)
