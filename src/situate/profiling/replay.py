"""Distinct ops one by one on synthetic tensors, for devices without placed steps and for long
steps."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Callable
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

from situate.data.cluster import Cluster, Device
from situate.data.costs import Timing
from situate.data.graph import Graph
from situate.data.roofline import op_seconds
from situate.errors import SituateError
from situate.profiling.plain_step import worker_clock
from situate.runtime.hardware import RealDevice
from situate.runtime.memory import extent
from situate.runtime.model_state.optimizers import default_optimizer
from situate.runtime.programs.kernels import kernel, kernel_name
from situate.runtime.programs.program import Program, Roles
from situate.runtime.settings import use_threads

if TYPE_CHECKING:
    import torch


Call = Callable[[], object]
Stopwatch = Callable[[Call, int], list[float]]
"""Returns the seconds of each of a number of calls."""

MAX_CALLS = 9
"""Most timed calls of an op."""

SECONDS_PER_OP = 0.1
"""Seconds of timing per op; one call runs in any case."""


LONG_STEP_SECONDS = 60.0
"""Seconds of a step above which its ops run alone, if that is quicker."""

DISTINCT_OPS_SHARE = 0.4
"""Largest fraction of a step that its distinct ops may take, so that they are quicker alone."""


def replay(program: Program, device: torch.device, stopwatch: Stopwatch) -> dict[str, Timing]:
    """Timings by signature of a program's distinct ops, each run by itself after a warm-up.

    Ops that cannot run on the device, such as PyTorch's CPU-only ops, are left out.
    """
    import torch

    roles, timing_of = Roles(program), dict[str, Timing]()
    with torch.inference_mode():
        for op, graph_op in enumerate(program.graph.ops):
            if graph_op.signature and graph_op.signature not in timing_of:
                with contextlib.suppress(RuntimeError):
                    call = _call(program, roles, op, device)
                    timing_of[graph_op.signature] = _timing(call, stopwatch)
    return timing_of


def _timing(call: Call, stopwatch: Stopwatch) -> Timing:
    (first,) = stopwatch(call, 1)
    # The first call has warmed up caches and tells how many calls fit into the time.
    count = max(1, min(MAX_CALLS, int(SECONDS_PER_OP / max(first, 1e-9))))
    seconds = sorted(stopwatch(call, count))
    quartile = len(seconds) // 4
    return Timing(
        statistics.median_low(seconds), seconds[quartile], seconds[-1 - quartile], len(seconds)
    )


def _call(program: Program, roles: Roles, op: int, device: torch.device) -> Call:
    """A function that runs an op on synthetic tensors."""
    import torch

    node = program.nodes[op]
    value = node.meta["val"]
    match roles.of(op):
        case "update":
            return _update(program.optimizer, value, device)
        case "copy":
            target, source = synthetic_tensor(value, device), synthetic_tensor(value, device)
            return lambda: target.copy_(source)
        case "sum":
            parts = [synthetic_tensor(value, device) for _ in program.gradients[_path(program, op)]]
            return lambda: reduce(add, parts)
    arguments = torch.fx.map_arg(
        (node.args, node.kwargs), lambda n: _synthetic(n.meta["val"], device)
    )
    args, kwargs = _on_device(arguments, device)
    run = kernel(kernel_name(node), device)
    return lambda: run(*args, **kwargs)


def _path(program: Program, op: int) -> str:
    return program.graph.ops[op].name.rpartition("/")[0]


def _update(kind: str, parameter: torch.Tensor, device: torch.device) -> Call:
    import torch

    value = torch.nn.Parameter(synthetic_tensor(parameter, device), requires_grad=False)
    value.grad = synthetic_tensor(parameter, device)
    optimizer = default_optimizer(kind, [value])
    optimizer.param_groups[0] |= {"lr": 0.0, "foreach": False}
    return optimizer.step


def _synthetic(value: Any, device: torch.device) -> Any:
    """Synthetic tensors in place of fake ones."""
    import torch

    if isinstance(value, (list, tuple)):
        return [_synthetic(entry, device) for entry in value]
    return synthetic_tensor(value, device) if isinstance(value, torch.Tensor) else value


def _on_device(arguments: Any, device: torch.device) -> Any:
    """Arguments with this device in place of others."""
    import torch
    from torch.utils._pytree import tree_map

    return tree_map(lambda v: device if isinstance(v, torch.device) else v, arguments)


def synthetic_tensor(fake: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A tensor with the shape, strides and dtype of a fake one.

    Floats lie between 0.1 and 1, which suits every op; other types are zeros, which index any
    table. Elements that overlap in the original, as in an expanded dimension, overlap here.
    """
    import torch

    size, stride = tuple(fake.shape), tuple(fake.stride())
    # An expanded tensor has stride 0: filling its base storage avoids writes to overlapping
    # elements.
    base = torch.zeros(max(1, extent(size, stride)), dtype=fake.dtype, device=device)
    if fake.is_floating_point():
        base.uniform_(0.1, 1.0)
    return base.as_strided(size, stride)


def is_long(graph: Graph, device: Device) -> bool:
    """True if the distinct ops of a step should run alone, by the roofline's estimates."""
    try:
        seconds = op_seconds(graph, Cluster("here", (device,)))[:, 0].tolist()
    except SituateError:
        return False
    distinct = {op.signature: s for op, s in zip(graph.ops, seconds, strict=True)}
    step = float(sum(seconds))
    return step > LONG_STEP_SECONDS and sum(distinct.values()) < DISTINCT_OPS_SHARE * step


def seconds_alone(program: Program, real: RealDevice) -> dict[str, Timing]:
    """Timings by signature, in this process, with the device's number of threads."""
    import torch

    clock = worker_clock(real.threads)
    with use_threads(real.threads):
        return replay(program, torch.device("cpu"), lambda call, n: _call_seconds(call, n, clock))


def _call_seconds(call: Call, count: int, clock: str) -> list[float]:
    now, seconds = getattr(time, clock), []
    for _ in range(count):
        start = now()
        call()
        seconds.append(now() - start)
    return seconds
