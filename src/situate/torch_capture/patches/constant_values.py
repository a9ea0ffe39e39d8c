"""Values of fake tensors that a program makes of numbers of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from situate.torch_capture.patches.patched import dispatched, replaced

MAX_KEPT_NUMBERS, MAX_KEPT_TOTAL = 2**22, 2**26
"""Numbers of a tensor whose values are kept, those of a mask of 2,048 by 2,048 tokens, and of all
such tensors of a program: they stay in memory until it is traced."""

FILLING = frozenset(
    f"{name}{suffix}"
    for name in ("arange", "eye", "full", "linspace", "ones", "scalar_tensor", "zeros")
    for suffix in ("", "_like")
) | {"new_full", "new_ones", "new_zeros"}
"""Operators whose result depends neither on values of tensors nor on chance."""

EMPTY = frozenset({"empty_like", "new_empty", "new_empty_strided"})
"""Operators whose result holds whatever the memory held. PyTorch describes the results of others by
them, and would know the values of these where it knows those of the tensor that is given."""


@contextlib.contextmanager
def constants_known() -> Iterator[None]:
    """Let a program on fake tensors look at what it fills itself, such as a causal mask. PyTorch
    knows the value of `torch.tensor(2)` and of what is made of such numbers; within, it does of
    whatever operators of `FILLING` make.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    may_keep = _keeping()

    def filled(run: Any, mode: Any, func: Any, args: Sequence[object], kwargs: Any) -> Any:
        result, name = run(func, args, kwargs), getattr(func, "_opname", None)
        if name in EMPTY and result.constant is not None:
            # PyTorch runs operators on fake tensors with known values for real, these too, and
            # would take what the new memory happened to hold for a value.
            mode.fake_tensor_converter.invalidate_constant_aliases(result.constant)
        fills = name in FILLING and may_keep(mode, result)
        return _with_values(mode, result, func, args, kwargs) if fills else result

    forget = FakeTensorMode.invalidate_written_to_constants

    def forget_written(mode: Any, func: Any, tensors: Any, args: Any, kwargs: Any) -> None:
        forget(mode, func, tensors, args, kwargs)
        # PyTorch forgets the values of tensors that an operator writes to only where they are
        # arguments of their own.
        if func._schema.is_mutable:
            _forget_listed(mode, (*args, *kwargs.values()))

    with (
        replaced(torch.Tensor, "data", _data()),
        dispatched(filled),
        replaced(FakeTensorMode, "may_turn_const", may_keep),
        replaced(FakeTensorMode, "invalidate_written_to_constants", forget_written),
    ):
        yield


def _keeping() -> Callable[[Any, Any], bool]:
    """The rule by which a mode keeps a tensor's values; those of a single number always are
    kept."""
    import torch

    budget = MAX_KEPT_TOTAL

    def may_keep(_: Any, tensor: Any) -> bool:
        nonlocal budget
        dense = tensor.layout == torch.strided and tensor.device.type == "cpu"
        if not dense or tensor.numel() > min(MAX_KEPT_NUMBERS, max(budget, 1)):
            return False
        budget -= tensor.numel()
        return True

    return may_keep


def _data() -> property:
    """`Tensor.data`, which when set forgets the values that there were: no operator does it."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    of_base: Any = torch._C.TensorBase.data

    def assign(tensor: Any, value: torch.Tensor) -> None:
        if isinstance(tensor, FakeTensor) and tensor.constant is not None:
            converter = tensor.fake_mode.fake_tensor_converter
            converter.invalidate_constant_aliases(tensor.constant)
        of_base.__set__(tensor, value)

    return property(of_base.__get__, assign)


def _forget_listed(mode: Any, arguments: Sequence[object]) -> None:
    """Forget the values of tensors in lists: PyTorch does so of those that stand alone."""
    lists = (argument for argument in arguments if isinstance(argument, (list, tuple)))
    for constant in [
        getattr(tensor, "constant", None) for argument in lists for tensor in argument
    ]:
        if constant is not None:
            mode.fake_tensor_converter.invalidate_constant_aliases(constant)


def _with_values(
    mode: Any, result: Any, func: Any, args: Sequence[object], kwargs: Mapping[str, object]
) -> Any:
    """`made`, and what is really in it. Of a tensor that is given only its kind, or where it is of
    the same size its strides, matter."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.utils._mode_utils import no_dispatch
    from torch.utils._pytree import tree_map_only

    def like(tensor: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided(result.shape, result.stride(), dtype=tensor.dtype)

    # Outside of the fake mode, so that the operator runs and gives values.
    with no_dispatch():
        real_args, options = tree_map_only(FakeTensor, like, (tuple(args), dict(kwargs)))
        real = func(*real_args, **options)
    return mode.fake_tensor_converter.from_real_tensor(mode, real, make_constant=True)
