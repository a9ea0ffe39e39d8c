"""Values of fake tensors that a program fills with its own numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from situate.torch_capture.patches.patched import dispatched, replaced

MAX_KEPT_NUMBERS, MAX_KEPT_TOTAL = 2**22, 2**26
"""The most numbers of one tensor whose values are kept (a mask of 2,048 by 2,048 tokens), and of
all such tensors of a program. They stay in memory until the trace ends."""

FILLING = frozenset(
    f"{name}{suffix}"
    for name in ("arange", "eye", "full", "linspace", "ones", "scalar_tensor", "zeros")
    for suffix in ("", "_like")
) | {"new_full", "new_ones", "new_zeros"}
"""Operators whose result depends neither on values of tensors nor on random numbers."""

EMPTY = frozenset({"empty_like", "new_empty", "new_empty_strided"})
"""Operators that return uninitialised memory. PyTorch uses them to describe results of other
operators, and would run them for real on tensors with known values."""


@contextlib.contextmanager
def constants_known() -> Iterator[None]:
    """A block in which a program on fake tensors may read values that it filled in itself, such as
    a causal mask.

    PyTorch knows the value of `torch.tensor(2)` and of results computed from such numbers. In the
    block it also knows the results of `FILLING`.
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
        # `arange` and its like have no tensor arguments, so PyTorch's own rule never keeps their
        # values.
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
    """The rule by which a mode keeps a tensor's values. A single number is always kept."""
    import torch

    budget = MAX_KEPT_TOTAL

    def may_keep(_: Any, tensor: Any) -> bool:
        nonlocal budget
        dense = tensor.layout == torch.strided and tensor.device.type == "cpu"
        # Single numbers are always kept: loops and sizes depend on them.
        if not dense or tensor.numel() > min(MAX_KEPT_NUMBERS, max(budget, 1)):
            return False
        budget -= tensor.numel()
        return True

    return may_keep


def _data() -> property:
    """`Tensor.data`, whose assignment forgets the old values, because no operator does."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    # The attribute of the C++ class, which no function of Python wraps.
    of_base: Any = torch._C.TensorBase.data

    def assign(tensor: Any, value: torch.Tensor) -> None:
        if isinstance(tensor, FakeTensor) and tensor.constant is not None:
            converter = tensor.fake_mode.fake_tensor_converter
            converter.invalidate_constant_aliases(tensor.constant)
        of_base.__set__(tensor, value)

    return property(of_base.__get__, assign)


def _forget_listed(mode: Any, arguments: Sequence[object]) -> None:
    """Forget the values of tensors in lists. PyTorch forgets those of tensors that stand alone."""
    lists = (argument for argument in arguments if isinstance(argument, (list, tuple)))
    for constant in [
        getattr(tensor, "constant", None) for argument in lists for tensor in argument
    ]:
        if constant is not None:
            mode.fake_tensor_converter.invalidate_constant_aliases(constant)


def _with_values(
    mode: Any, result: Any, func: Any, args: Sequence[object], kwargs: Mapping[str, object]
) -> Any:
    """The result with its real values.

    Of a tensor argument only the dtype matters, and its strides if it has the result's size.
    """
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
