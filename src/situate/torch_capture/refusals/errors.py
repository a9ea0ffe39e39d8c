"""Errors during capture, each as one line that names the source line at fault."""

from __future__ import annotations

import contextlib
import logging
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from situate.errors import SituateError
from situate.torch_capture.refusals.libraries import mask_remedy, not_ours
from situate.torch_capture.refusals.lines import user_frame, user_line
from situate.torch_capture.refusals.remedies import Unsupported, first_line, remedy

CALL = "the step is loss(model, *inputs)"
CRITERION_CALL = "a loss that is a module is called as loss(model(*inputs[:-1]), inputs[-1])"
"""The calls of a user's loss function, and of a loss module."""


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """A block that hides the warnings and log lines of PyTorch and transformers."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def explained(name: str, doing: str, signature: str = CALL, criterion: str = "") -> Iterator[None]:
    """Turn any exception of the block into one line: graph name, activity, source line, reason.

    Args:
        name: of the graph.
        doing: the activity, such as `capturing the step`.
        signature: how the user's function is called, for an error about its arguments.
        criterion: the loss module and its line, for an error in it; empty for a loss function.

    Raises:
        SituateError: in place of any other exception.
    """
    # An error that the caller is handling would otherwise appear as `__context__` of the new one.
    handled = sys.exception()
    try:
        yield
    except SituateError as error:
        # An inner block has already named the graph.
        if type(error) is SituateError and str(error).startswith(f"{name}: "):
            raise
        raise SituateError(f"{name}: {error}") from None
    except (Exception, SystemExit) as error:
        reason = remedy(error, handled) or _message(error) + f" ({signature})" * _is_call(error)
        line = user_line(error) or _criterion_line(error, criterion)
        raise SituateError(f"{name}: {doing}: {line}{reason}") from None


def apply_criterion(loss: Callable[..., Any], results: Any, target: Any) -> Any:
    """The loss of a module; its errors are told apart from those of the model by this function."""
    return loss(results, target)


def _criterion_line(error: BaseException, criterion: str) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    is_inside = any(frame.name == apply_criterion.__name__ for frame in frames)
    return f"{criterion}: " if criterion and is_inside else ""


def _message(error: BaseException) -> str:
    line, frame = first_line(error), user_frame(error)
    if isinstance(error, Unsupported):
        return line + not_ours(frame, line)
    kind = type(error).__name__
    return (f"{kind}: {line}" if line else kind) + mask_remedy(frame)


def _is_call(error: BaseException) -> bool:
    return isinstance(error, TypeError) and "argument" in str(error)
