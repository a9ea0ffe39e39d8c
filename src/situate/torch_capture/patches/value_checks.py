"""Checks of tensors that read values, which fake tensors do not have."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

from situate.torch_capture.patches.patched import replaced
from situate.torch_capture.refusals.lines import inside_package, is_users

ASKS = {"isfinite": True, "isinf": False, "isnan": False}
"""Questions about every number of a tensor, and the answer if all numbers are finite."""

ANSWER = "_situate_answer"
"""The attribute of a result tensor that holds its answer."""


@contextlib.contextmanager
def tensors_unchecked() -> Iterator[None]:
    """A block in which checks of a tensor's values pass. PyTorch would read the values, which fake
    tensors lack, and raise an error.

    `torch._check_tensor_all` is one such check; transformers uses it to compare placeholders in a
    text with features of images. Other libraries test for finite numbers, to clamp them. PyTorch's
    Gaussian loss asks whether a variance is negative.
    """
    import torch

    tensor: Any = torch.Tensor
    truth = tensor.__bool__

    def holds(question: Any) -> bool:
        # The loss itself writes `if torch.any(var < 0)`, so it is the calling frame.
        if _checks_variance(sys._getframe(1).f_code):
            return False
        answer = getattr(question, ANSWER, None)
        return bool(truth(question) if answer is None else answer)

    with contextlib.ExitStack() as stack:
        # `torch._check_tensor_all` calls this and reads the result with `item()`.
        stack.enter_context(replaced(tensor, "_is_all_true", lambda _: _Holds()))
        stack.enter_context(replaced(tensor, "__bool__", holds))
        for name, answer in ASKS.items():
            # `torch.isfinite(x)` and `x.isfinite()` are two functions, and a library may call
            # either.
            for owner in (torch, tensor):
                question = _answered(getattr(owner, name), answer)
                stack.enter_context(replaced(owner, name, question))
        for name in ("all", "any"):
            stack.enter_context(replaced(tensor, name, _passed_on(getattr(tensor, name))))
        yield


def _answered(ask: Callable[..., Any], answer: bool) -> Callable[..., Any]:
    """The same function. If a library calls it, its result carries the answer."""

    def call(*args: Any, **options: Any) -> Any:
        result = ask(*args, **options)
        # Only a library's check is answered. A user's own check would hide a real dependence on
        # values.
        filename = sys._getframe(1).f_code.co_filename
        if inside_package(filename) and is_users(filename):
            setattr(result, ANSWER, answer)
        return result

    return call


def _passed_on(reduce: Callable[..., Any]) -> Callable[..., Any]:
    """The same function. Its result carries the answer of its argument."""

    def call(tensor: Any, *args: Any, **options: Any) -> Any:
        result = reduce(tensor, *args, **options)
        if (answer := getattr(tensor, ANSWER, None)) is not None:
            setattr(result, ANSWER, answer)
        return result

    return call


def _checks_variance(code: CodeType) -> bool:
    """True for PyTorch's Gaussian loss, which asks whether a variance is negative."""
    return code.co_name == "gaussian_nll_loss" and not is_users(code.co_filename)


class _Holds:
    """Stands for a tensor that says whether all of another is true."""

    @staticmethod
    def item() -> bool:
        """The value of the tensor."""
        return True


@contextlib.contextmanager
def arguments_unchecked() -> Iterator[None]:
    """A block in which distributions do not check parameters and samples, unless a program says
    `validate_args=True`.

    By default PyTorch reads their values, which fake tensors lack.
    """
    from torch.distributions import Distribution

    with replaced(Distribution, "_validate_args", False):
        yield
