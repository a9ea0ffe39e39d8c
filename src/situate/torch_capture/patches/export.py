"""Changes to `torch.export`: lines of the loss, compiled modules, and tensors that are no
buffers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from situate.torch_capture.patches.patched import replaced

if TYPE_CHECKING:
    from torch import fx

ANCHORS = "_STACK_TRACE_ANCHORS"
"""The name of PyTorch's set of functions, by file and name, whose source lines a graph keeps."""


@contextlib.contextmanager
def loss_lines(loss: Any) -> Iterator[None]:
    """A block in which a graph keeps the source lines of the loss function. By default it keeps
    those of modules alone."""
    from torch.fx import proxy

    anchors = getattr(proxy, ANCHORS, None)
    code = getattr(_function(loss), "__code__", None)
    if code is None or anchors is None:
        yield
        return
    with replaced(proxy, ANCHORS, anchors | {(code.co_filename, code.co_name)}):
        yield


def _function(loss: Any) -> Any:
    """The function behind a loss that is a partial call, or an object with a call of its own.

    PyTorch keeps the lines of modules itself.
    """
    import torch

    while isinstance(loss, partial):
        loss = loss.func
    own_lines = hasattr(loss, "__code__") or isinstance(loss, torch.nn.Module)
    return loss if own_lines else type(loss).__call__


@contextlib.contextmanager
def compiled_modules_called() -> Iterator[None]:
    """A block in which the wrapper of `torch.compile` calls its module visibly to the tracer.

    The module's ops then belong to the module. By default the wrapper uses the call that it saved
    before the trace.
    """
    from torch._dynamo.eval_frame import OptimizedModule

    call = OptimizedModule.__call__

    def call_module(wrapper: Any, *inputs: Any, **options: Any) -> Any:
        # Hooks on the wrapper run only in its own call.
        if wrapper._forward_hooks or wrapper._forward_pre_hooks:
            return call(wrapper, *inputs, **options)
        return wrapper._orig_mod(*inputs, **options)

    with replaced(OptimizedModule, "__call__", call_module):
        yield


@contextlib.contextmanager
def lifted_apart() -> Iterator[None]:
    """A block in which export accepts tensors of two fake modes.

    Tensors that a model holds without a buffer's name stay in the model's mode. All others are in
    export's.
    """
    from torch.export import exported_program

    before = exported_program._get_shape_env

    def shape_env(module: fx.GraphModule) -> Any:
        # PyTorch's own function raises an error where nodes have tensors of two fake modes; the
        # first mode with an environment of sizes is export's.
        modes = (getattr(n.meta.get("val"), "fake_mode", None) for n in module.graph.nodes)
        environments = (mode.shape_env for mode in modes if mode is not None)
        return next((env for env in environments if env is not None), None) or before(module)  # type: ignore[no-untyped-call]

    with replaced(exported_program, "_get_shape_env", shape_env):
        yield
