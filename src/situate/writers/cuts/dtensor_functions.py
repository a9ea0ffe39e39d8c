"""The functions of a file for torch.distributed.tensor. `situate.writers.dtensor` copies the text
below the mark behind constants of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module
from torch.distributed.tensor.experimental import implicit_replication, register_sharding
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    ParallelStyle,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from torch.utils._pytree import tree_map_only

DEVICE_TYPE = "cpu"
MESH = {"tp": 1}
PLAN: dict[str, ParallelStyle] = {
    "up": ColwiseParallel(),
    "down": RowwiseParallel(),
    "norm": SequenceParallel(),
    "query": PrepareModuleOutput(output_layouts=Shard(1), desired_output_layouts=Replicate()),
}
BLOCKS: tuple[str, ...] = ()
HAS_ATTENTION = HAS_PARALLEL_LOSS = LOSS_IS_SUM = False

# Functions.


def device_mesh(device_type: str = DEVICE_TYPE) -> DeviceMesh:
    """The mesh of all processes of the job."""
    return init_device_mesh(device_type, tuple(MESH.values()), mesh_dim_names=tuple(MESH))


def parallelize(model: nn.Module, mesh: DeviceMesh) -> nn.Module:
    """Cut the parameters of a model in place, and return the model.

    All processes hold the same parameters before, on the device of the mesh. Then all parameters
    are DTensors, and so are the results and the loss.
    """
    parts = mesh["tp"]
    config: Any = getattr(model, "config", None)
    if getattr(config, "use_cache", False):
        config.use_cache = False  # a cache begins with plain tensors
    names: dict[nn.Parameter, str] = {}
    ties = {
        name: names.setdefault(parameter, name)
        for name, parameter in model.named_parameters(remove_duplicate=False)
    }
    parallelize_module(model, parts, PLAN)
    distribute_module(model, parts)
    for name, first in ties.items():
        if name != first:
            holder, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(holder), leaf, model.get_parameter(first))
    for module in model.modules():
        if isinstance(module, nn.Embedding):
            module.register_forward_hook(_gradient_as_output)
    model.register_forward_pre_hook(_inputs_on(parts), with_kwargs=True)
    if "dp_shard" in MESH:
        _share_data(model, mesh)
    else:
        for parameter in model.parameters():
            _keep_layout(parameter)
    return model


@contextmanager
def step() -> Iterator[None]:
    """The context of a step: its forward pass, its loss and its backward pass."""
    with ExitStack() as stack:
        stack.enter_context(implicit_replication())
        if HAS_PARALLEL_LOSS:
            stack.enter_context(loss_parallel())
        yield


def _share_data(model: nn.Module, mesh: DeviceMesh) -> None:
    """Give each team its own samples: FSDP, or copies where the mesh has `dp_replicate`."""
    data = mesh["dp_replicate", "dp_shard"] if "dp_replicate" in MESH else mesh["dp_shard"]
    for name in BLOCKS:
        fully_shard(model.get_submodule(name), mesh=data)
    root = fully_shard(model, mesh=data)
    if LOSS_IS_SUM:
        root.set_gradient_divide_factor(1.0)


def _inputs_on(mesh: DeviceMesh) -> Any:
    """A hook that makes a module's plain inputs DTensors, the same in all parts."""

    def distributed(x: torch.Tensor) -> torch.Tensor:
        if isinstance(x, DTensor):
            return x
        return DTensor.from_local(x, mesh, [Replicate()], run_check=False)

    def hook(_: nn.Module, args: Any, kwargs: Any) -> Any:
        return tree_map_only(torch.Tensor, distributed, (args, kwargs))

    return hook


def _gradient_as_output(_module: nn.Module, _inputs: Any, output: DTensor) -> None:
    """A hook that adds up partial gradients, which a table cut by rows does not take."""
    _keep_layout(output)


def _keep_layout(value: Any) -> None:
    """Bring gradients of a DTensor into its own layout."""
    if value.requires_grad:
        layout = value.placements
        value.register_hook(lambda gradient: gradient.redistribute(placements=layout))


def _attention_on_cpus() -> None:
    """Let heads and samples be cut in the attention of CPUs, for which DTensor has no rule."""
    aten, register = torch.ops.aten, cast(Any, register_sharding)

    def layouts(outputs: int, inputs: int, others: int, mask: Any) -> list[Any]:
        result = []
        for layout in (Replicate(), Shard(0), Shard(1)):
            cut = isinstance(layout, Shard) and mask is not None and mask.shape[layout.dim] > 1
            masks = [] if mask is None else [layout if cut else Replicate()]
            arguments = [*[layout] * inputs, *[None] * others, *masks]
            result.append(([layout] * outputs, arguments))
        return result

    def forward(q: Any, k: Any, v: Any, *rest: Any, attn_mask: Any = None, **_: Any) -> Any:
        return layouts(2, 3, len(rest), attn_mask)

    def backward(*args: Any, attn_mask: Any = None, **_: Any) -> Any:
        return layouts(3, 6, len(args) - 6, attn_mask)

    register(aten._scaled_dot_product_flash_attention_for_cpu.default)(forward)
    register(aten._scaled_dot_product_flash_attention_for_cpu_backward.default)(backward)


if HAS_ATTENTION:
    _attention_on_cpus()
