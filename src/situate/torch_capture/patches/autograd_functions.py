"""Custom autograd functions (`torch.autograd.Function`), whose gradients export would lose. While
it traces, each call is an operator that has the function's gradient."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from situate.torch_capture.patches.patched import code_replaced, replaced
from situate.torch_capture.refusals.libraries import function_remedy
from situate.torch_capture.refusals.remedies import Unsupported
from situate.torch_capture.trees import flatten, split_tensors

if TYPE_CHECKING:
    import torch

NAMESPACE = "situate_functions"
"""Namespace of the operators. The traced step contains the ops of the functions instead."""

FunctionsCalled = Callable[[], contextlib.AbstractContextManager[None]]


@contextlib.contextmanager
def functions_whole(training: bool) -> Iterator[FunctionsCalled]:
    """A block in which operators that stand for functions can run.

    It yields another block, in which each call of a function makes an operator. Without a backward
    pass nothing is lost, so no operator is made.
    """
    import torch

    # The operators end with the block: their functions may not live on.
    with torch.library._scoped_library(NAMESPACE, "FRAGMENT") as library:
        yield partial(_functions_are_operators, library) if training else contextlib.nullcontext


@contextlib.contextmanager
def _functions_are_operators(library: torch.library.Library) -> Iterator[None]:
    import torch

    context = torch.autograd.function.FunctionCtx
    # Most programs call `apply` by a name of their own, so the code object is replaced.
    apply: Any = torch.autograd.Function.apply
    operator = partial(_operator, library, count())
    with code_replaced(apply.__func__, operator), replaced(context, "mark_dirty", _refuse_writing):
        yield


def _operator(
    library: torch.library.Library,
    numbers: Iterator[int],
    apply: Callable[..., Any],
    kind: type,
    *args: Any,
    **options: Any,
) -> Any:
    """Call a function as an operator on the tensors among its arguments."""
    import torch

    if kind.__name__ == "CheckpointFunction":
        raise Unsupported("torch.utils.checkpoint: call it with use_reentrant=False")
    function = partial(apply, kind, **options)
    # PyTorch's own functions are traced by their parts, which export understands.
    if kind.__module__.partition(".")[0] == "torch":
        return function(*args)
    call = _Call(function, kind, args)
    if not call.tensors:
        return function(*args)
    # A name per call: each call returns another structure, and operators have one schema.
    name = f"f{next(numbers)}"
    arguments = ", ".join(f"Tensor t{k}" for k in range(len(call.tensors)))
    library.define(f"{name}({arguments}) -> Tensor[]")  # type: ignore[no-untyped-call]
    # Under the key Autograd the operator runs the function as it is, whose own backward pass
    # autograd then records; without it export would trace through the forward pass alone.
    library.impl(name, call, "Autograd")  # type: ignore[no-untyped-call]
    return call.returned(getattr(getattr(torch.ops, NAMESPACE), name)(*call.tensors))


class _Call:
    """A function with all arguments that are no tensors."""

    def __init__(self, function: Callable[..., Any], kind: type, args: tuple[Any, ...]) -> None:
        import torch

        self._function = function
        self.tensors, self._fill = split_tensors(args)
        for leaf in flatten(args)[0]:
            if not isinstance(leaf, (torch.Tensor, *_plain())):
                raise Unsupported(
                    f"capture does not see the backward pass of autograd.Function "
                    f"{kind.__name__!r} where an argument is a {type(leaf).__name__}: "
                    f"{function_remedy(kind) or 'give it tensors and numbers alone'}"
                )

    def __call__(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        """The tensors that the function returns."""
        # An operator returns a flat list; `returned` restores the structure of the function's
        # result.
        results, self._fill_results = split_tensors(self._function(*self._fill(tensors)))
        return list(results)

    def returned(self, tensors: Sequence[torch.Tensor]) -> Any:
        """The function's return value, with these tensors in it."""
        return self._fill_results(tuple(tensors))


def _plain() -> tuple[type, ...]:
    """Types of arguments that hold no tensor."""
    import torch

    numbers = (type(None), bool, int, float, complex, str, bytes, slice, enum.Enum)
    return (*numbers, torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size)


def _refuse_writing(*_: Any) -> Any:
    raise Unsupported(
        "capture does not see what an autograd.Function writes over its inputs (ctx.mark_dirty): "
        "return a new tensor instead"
    )
