"""Models and steps that capture would get wrong, and therefore refuses by name."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partialmethod
from typing import TYPE_CHECKING, Any

from situate.errors import SituateError
from situate.torch_capture import names
from situate.torch_capture.patches.patched import dispatched, replaced
from situate.torch_capture.refusals.remedies import GRADIENTS, SCALING, THREADS, Unsupported

if TYPE_CHECKING:
    import torch
    from torch import fx


@contextlib.contextmanager
def backward_is_autograds(training: bool) -> Iterator[None]:
    """Refuse changes of a step's backward pass that capture cannot see.

    Export keeps only the forward pass, whose gradient is traced anew.
    """
    import torch

    if not training:
        yield
        return
    tensor, hooks = torch.Tensor, torch.autograd.graph.saved_tensors_hooks
    # A partial method is given the hooks as `self`, as the method in its place is.
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
    """Hooks of PyTorch itself are accepted, because they return the values that they were given."""
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
"""Methods of a GradScaler that take part in scaling."""


@contextlib.contextmanager
def loss_unscaled() -> Iterator[None]:
    """Refuse a loss that a GradScaler scales. A placed step does not divide the gradients by the
    scale before it updates."""
    import torch

    scaler = torch.amp.GradScaler
    with contextlib.ExitStack() as stack:
        for name in SCALER:
            method = partialmethod(_refuse_scaling, getattr(scaler, name))
            stack.enter_context(replaced(scaler, name, method))
        yield


def _refuse_scaling(scaler: Any, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
    if not scaler.is_enabled():
        return method(scaler, *args, **options)
    raise Unsupported(SCALING)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Refuse non-daemon threads that the step starts, in which nothing is traced. Progress bars use
    daemons."""
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
    """Raises SituateError for a batch norm that averages over all steps so far. The weight of the
    next step would differ in every step."""
    from torch.nn.modules.batchnorm import _BatchNorm

    for path, part in model.named_modules():
        averages = isinstance(part, _BatchNorm) and part.momentum is None
        if averages and part.training and part.track_running_stats:
            raise SituateError(
                f"{path or 'the model'}: {type(part).__name__} with momentum=None averages over "
                "all steps so far, whose count capture does not know: give it a momentum, as 0.1"
            )


def check_dense(graph: fx.Graph) -> None:
    """Raises SituateError for a sparse value, whose memory cannot be planned."""
    import torch

    for node in graph.nodes:
        if getattr(node.meta.get("val"), "layout", torch.strided) != torch.strided:
            where = names.module(node) or "the step"
            raise SituateError(
                f"{where}: makes a sparse tensor, whose memory cannot be planned: leave "
                "sparse=True out, and compute with dense tensors"
            )


FREEZES = (
    "the step freezes a parameter, which capture does not see: freeze it where the model is built; "
    "for a part of the step call its module by torch.func.functional_call on detached parameters"
)


@contextlib.contextmanager
def parameters_stay_trained() -> Iterator[None]:
    """Refuse to unset `requires_grad` of a trained parameter, because export does not record it."""
    import torch

    # The attribute is a C descriptor of the base class; `Tensor` can override it with a property.
    of_base: Any = torch._C.TensorBase.requires_grad

    def assign(tensor: Any, value: bool) -> None:
        if not value and of_base.__get__(tensor) and tensor.is_leaf:
            raise Unsupported(FREEZES)
        of_base.__set__(tensor, value)

    watched = property(of_base.__get__, assign)
    with (
        replaced(torch.Tensor, "requires_grad", watched),
        replaced(torch.Tensor, "requires_grad_", _require),
    ):
        yield


def _require(tensor: Any, requires_grad: bool = True) -> Any:
    tensor.requires_grad = requires_grad
    return tensor


PRODUCTS = frozenset(
    {"addmm", "mm", "bmm", "baddbmm", "addmv", "mv", "dot", "linear", "matmul", "convolution"}
)
MIXED = "a product of {} and {} is asked for here, which PyTorch makes of one dtype only: cast one"


@contextlib.contextmanager
def products_of_one_dtype() -> Iterator[None]:
    """Refuse a product of two dtypes, as eager PyTorch does. PyTorch's tracer accepts it."""

    def checked(
        run: Any, _: Any, func: Any, args: Sequence[object], kwargs: Mapping[str, Any]
    ) -> Any:
        if getattr(func, "_opname", None) in PRODUCTS:
            _check(args)
        return run(func, args, kwargs)

    with dispatched(checked):
        yield


def _check(arguments: Sequence[object]) -> None:
    import torch

    dtypes = [value.dtype for value in arguments if isinstance(value, torch.Tensor)]
    other = next((dtype for dtype in dtypes if dtype != dtypes[0]), None)
    if other is not None:
        raise Unsupported(MIXED.format(_name(dtypes[0]), _name(other)))


def _name(dtype: object) -> str:
    return str(dtype).removeprefix("torch.")


SPREADING = (
    "torch.nn.parallel.distributed",
    *(f"torch.distributed.{part}" for part in ("fsdp", "tensor", "_composable")),
)
"""Modules of PyTorch that define models and parameters spread over processes."""


@contextlib.contextmanager
def no_replicas() -> Iterator[None]:
    """Refuse to wrap a model in DistributedDataParallel, which fails on fake tensors."""
    from torch.nn.parallel import DistributedDataParallel

    def refuse(wrapper: Any, *_: object, **__: object) -> None:
        raise Unsupported(_spread_message("the model", type(wrapper).__name__))

    with replaced(DistributedDataParallel, "__init__", refuse):
        yield


def check_of_one_process(model: torch.nn.Module) -> None:
    """Raises SituateError for a model, or a module of it, that is replicated or sharded."""
    for name, module in model.named_modules():
        parts = (module, *module._parameters.values(), *module._buffers.values())
        if spread := next(filter(None, map(_spread, parts)), ""):
            raise SituateError(_spread_message(f"module {name!r}" if name else "the model", spread))


def _spread(part: object) -> str:
    """The name of the class that spreads a module or parameter over processes; empty if none
    does."""
    classes = (base for base in type(part).__mro__ if base.__module__.startswith(SPREADING))
    return next((base.__name__ for base in classes), "")


def _spread_message(which: str, how: str) -> str:
    return (
        f"{which} is spread over processes by {how}, and what is captured is a model of one "
        "process: return it as it was before"
    )
