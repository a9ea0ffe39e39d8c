"""Models and steps that capture would get wrong, and therefore refuses by name."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from functools import partialmethod
from typing import TYPE_CHECKING, Any

from situate.errors import SituateError
from situate.torch_capture.names import module
from situate.torch_capture.patches.patched import replaced
from situate.torch_capture.refusals.remedies import GRADIENTS, SCALING, THREADS, Unsupported
from situate.torch_capture.side_effects.freezing import parameters_stay_trained

if TYPE_CHECKING:
    import torch
    from torch import fx


@contextlib.contextmanager
def backward_is_autograds(training: bool) -> Iterator[None]:
    """Refuse what changes the backward pass of a step behind PyTorch's back: export keeps only the
    forward pass, and its gradient is made anew."""
    import torch

    if not training:
        yield
        return
    tensor, hooks = torch.Tensor, torch.autograd.graph.saved_tensors_hooks
    enter = partialmethod(_refuse_packing, hooks.__enter__)
    gradients = replaced(torch.autograd, "grad", _refuse_gradients)
    with gradients, contextlib.ExitStack() as stack:
        stack.enter_context(replaced(tensor, "register_hook", _refuse_hook))
        stack.enter_context(replaced(hooks, "__enter__", enter))
        stack.enter_context(replaced(torch.autograd, "backward", _refuse_backward))
        stack.enter_context(parameters_stay_trained())
        yield


def _refuse_hook(*_: Any) -> Any:
    raise Unsupported(
        "capture does not see a hook on a tensor's gradient: change the gradient by an op instead"
    )


def _refuse_packing(hooks: Any, enter: Callable[[Any], None]) -> None:
    """PyTorch's own give back what they were given."""
    import torch

    own = type(hooks) is not torch.autograd.graph.saved_tensors_hooks
    if own and type(hooks).__module__.partition(".")[0] == "torch":
        return enter(hooks)
    raise Unsupported(
        "capture does not see hooks on what is kept for the backward pass "
        "(torch.autograd.graph.saved_tensors_hooks): leave them out"
    )


def _refuse_backward(*_: Any, **__: Any) -> Any:
    raise Unsupported("the step calls backward() itself: return the loss, which is differentiated")


def _refuse_gradients(*_: Any, **__: Any) -> Any:
    raise Unsupported(GRADIENTS)


SCALER = ("scale", "unscale_", "step", "update", "get_scale")
"""Methods of a GradScaler that have a part in scaling."""


@contextlib.contextmanager
def loss_unscaled() -> Iterator[None]:
    """Refuse a loss that a GradScaler scales: a placed step does not divide the gradients by the
    scale before it updates."""
    import torch

    scaler = torch.amp.GradScaler
    with contextlib.ExitStack() as stack:
        for name in SCALER:
            method = partialmethod(_refuse_scaling, getattr(scaler, name))
            stack.enter_context(replaced(scaler, name, method))
        yield


def _refuse_scaling(scaler: Any, method: Callable[..., Any], *given: Any, **named: Any) -> Any:
    if not scaler.is_enabled():
        return method(scaler, *given, **named)
    raise Unsupported(SCALING)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Refuse what the step begins in another thread, where nothing is traced. A daemon is none that
    it waits for: progress bars have one."""
    own, start = threading.get_ident(), threading.Thread.start

    def begin(thread: threading.Thread) -> None:
        if threading.get_ident() == own and not thread.daemon:
            raise Unsupported(THREADS)
        start(thread)

    with replaced(threading.Thread, "start", begin):
        yield


def check_hooks(model: torch.nn.Module) -> None:
    """Refuse hooks on the gradients of parameters.

    Raises:
        Unsupported: a parameter has one.
    """
    for name, parameter in model.named_parameters():
        own: Any = parameter
        if own._backward_hooks or getattr(own, "_post_accumulate_grad_hooks", None):
            raise Unsupported(
                f"parameter {name!r} has a hook on its gradient, which capture does not see: "
                "change the gradient by an op of the model, or in the optimizer"
            )


def check_averages(model: torch.nn.Module) -> None:
    """Raises SituateError for a batch-norm that averages over all steps so far: how much the next
    one counts is another number in every step."""
    from torch.nn.modules.batchnorm import _BatchNorm

    for path, part in model.named_modules():
        averages = isinstance(part, _BatchNorm) and part.momentum is None
        if averages and part.training and part.track_running_stats:
            raise SituateError(
                f"{path or 'the model'}: {type(part).__name__} with momentum=None averages over "
                "all steps so far, whose count capture does not know: give it a momentum, as 0.1"
            )


def check_dense(graph: fx.Graph) -> None:
    """Raises SituateError for a sparse value: memory for it cannot be planned."""
    import torch

    for node in graph.nodes:
        if getattr(node.meta.get("val"), "layout", torch.strided) != torch.strided:
            where = module(node) or "the step"
            raise SituateError(
                f"{where}: makes a sparse tensor, whose memory cannot be planned: leave "
                "sparse=True out, and compute with dense tensors"
            )
