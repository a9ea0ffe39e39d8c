"""What goes wrong while a model is captured, in one line that names the line at fault."""

from __future__ import annotations

import contextlib
import logging
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

from situate.errors import SituateError

SITUATE = tuple(str(Path(__file__).parents[2] / folder) for folder in ("readers", "runtime"))

VALUES = (
    "what happens here depends on the values of a tensor, which capture does not know: use "
    "torch.where, or decide it outside the model"
)
SHAPES = (
    "a size or number here depends on the values of a tensor, which capture does not know: use a "
    "mask or a fixed size"
)
MASK = (
    "PyTorch looks here whether a mask is causal, and capture knows only masks that the step makes "
    "itself: say so by is_causal= (tgt_is_causal= of a decoder, src_is_causal= and tgt_is_causal= "
    "of nn.Transformer)"
)
DEVICE = (
    "this asks for what only another device than the CPU has, on which steps are captured, "
    "wherever they are to run: leave it out, or do it only where x.device.type of an input is "
    "that device's"
)
GENERATOR = (
    "this draws from a torch.Generator of another device than the CPU, on which models are built "
    "and steps captured: leave the generator's device out"
)
_REMEDIES = {
    "DataDependentOutputException": VALUES,
    "DynamicOutputShapeException": SHAPES,
    "GuardOnDataDependentSymNode": VALUES,
    "UserError": VALUES,
}
GRADIENTS = (
    "the step asks for gradients itself (torch.autograd.grad or torch.func.grad, as a gradient "
    "penalty does), which is not captured: leave them out of the model and the loss"
)
DATA = (
    "the step reads a tensor's .data or asks for gradients itself (torch.autograd.grad), which is "
    "not captured: for .data write .detach(), with torch.no_grad() around what changes it; leave "
    "gradients out of the model and the loss"
)
_PHRASES = {
    "got FakeTensor": SHAPES,
    "doesn't match mode": DATA,
    "view functorch tensor": GRADIENTS,
    "'Tensor' object has no attribute 'constant'": GRADIENTS,
    "Cannot get CUDA generator": GENERATOR,
    "not linked with support for": DEVICE,
    "Torch not compiled with": DEVICE,
    "accelerator device when none is available": DEVICE,
    "CUDA support": DEVICE,
    "without ATen_cuda library": DEVICE,
    "Tried to instantiate dummy base class": DEVICE,
    "without MPS backend": DEVICE,
    "has no attribute '_cuda_": DEVICE,
    "support the deepcopy protocol": (
        "a module keeps a tensor that is computed from its parameters, so it cannot be copied: use "
        "torch.nn.utils.parametrizations in place of torch.nn.utils.weight_norm and its like"
    ),
}
_BRANCHES = (
    "the step calls an operator that takes functions (torch.cond and its like), which is not "
    "captured: use torch.where, or decide it outside the model"
)


class Unsupported(Exception):
    """What capture cannot do; its text says why, and what to do instead."""


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep PyTorch's and transformers' warnings and log lines off the user's screen."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


@contextlib.contextmanager
def explained(
    name: str, doing: str, called: str = "the step is loss(model, *inputs)"
) -> Iterator[None]:
    """Turn whatever is raised inside into one line: graph name, what was being done, where, why;
    after a call with wrong arguments also what is `called` how.

    Raises:
        SituateError: in place of any other exception.
    """
    try:
        yield
    except SituateError as error:
        if type(error) is SituateError and str(error).startswith(f"{name}: "):
            raise
        raise SituateError(f"{name}: {error}") from None
    except (Exception, SystemExit) as error:
        reason = _remedy(error) or _said(error) + f" ({called})" * _is_call(error)
        raise SituateError(f"{name}: {doing}: {user_line(error)}{reason}") from None


def user_line(error: BaseException) -> str:
    """`file.py:12: ` of the innermost line outside PyTorch, Python and situate; empty if none."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not _is_foreign(frame.filename):
            return f"{_short(frame.filename)}:{frame.lineno}: "
    return ""


def _remedy(error: BaseException) -> str:
    """What is known of such an error, and how to avoid it; empty for any other."""
    if any(f.name == "_detect_is_causal_mask" for f in traceback.extract_tb(error.__traceback__)):
        return MASK
    for kind in type(error).__mro__:
        if kind.__name__ in _REMEDIES:
            return _REMEDIES[kind.__name__]
    if isinstance(error, KeyError) and error.args == ("val",) and not user_line(error):
        return _BRANCHES  # a node of a graph that is called has no value
    return next((remedy for phrase, remedy in _PHRASES.items() if phrase in str(error)), "")


def _said(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    if isinstance(error, Unsupported):
        return lines[0]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _is_call(error: BaseException) -> bool:
    return isinstance(error, TypeError) and "argument" in str(error)


def _is_foreign(filename: str) -> bool:
    torch = str(getattr(sys.modules.get("torch"), "__file__", None) or "torch/__init__.py")
    stdlib = sysconfig.get_paths()["stdlib"]
    inside_stdlib = filename.startswith(stdlib) and "site-packages" not in filename
    return filename.startswith((str(Path(torch).parent), *SITUATE, "<")) or inside_stdlib


def _short(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else filename
