"""Recipes of mixed precision in a captured step.

The step is that of the model in bfloat16. If it has masters, parameters and buffers are float32.
The step casts them where the passes begin to read them, and casts gradients and new buffers back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from situate.data.update_rule import Recipe
from situate.errors import SituateError
from situate.torch_capture import names
from situate.torch_capture.build import FakeStep
from situate.torch_capture.flow import described_outputs
from situate.torch_capture.nodes import add_call, module_of
from situate.torch_capture.refusals.unsupported import check_hooks
from situate.torch_capture.tracing import Trace
from situate.torch_capture.updates.gradient_nodes import gradient_nodes, replace_gradients

if TYPE_CHECKING:
    import torch
    from torch import fx


def under_recipe(fake: FakeStep, recipe: Recipe | None) -> FakeStep:
    """The step under a recipe; its model changes.

    Raises:
        SituateError: a parameter has a type for which the recipe has no master.
    """
    if recipe is None:
        return fake
    if recipe.is_autocast:
        return dataclasses.replace(fake, call=autocast(fake.call), call_with=_autocast_with(fake))
    check_hooks(fake.model)
    masters = frozenset(_float32_names(fake.model, recipe)) if recipe.has_masters else frozenset()
    cast_model(fake.model)
    return dataclasses.replace(fake, recipe=recipe, masters=masters)


def autocast(call: Callable[..., Any]) -> Callable[..., Any]:
    """The call under autocast to bfloat16."""
    import torch

    def under_autocast(*arguments: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return call(*arguments)

    return under_autocast


def _autocast_with(fake: FakeStep) -> Callable[..., Any] | None:
    call_with = fake.call_with
    return None if call_with is None else lambda changes: autocast(call_with(changes))


def _float32_names(model: torch.nn.Module, recipe: Recipe) -> Iterator[str]:
    """The names of parameters and buffers that a step holds in float32."""
    import torch

    for name, parameter in model.named_parameters(remove_duplicate=False):
        if parameter.dtype is torch.float32:
            yield name
        elif parameter.requires_grad:
            dtype = str(parameter.dtype).removeprefix("torch.")
            raise SituateError(
                f"recipe {recipe.name}: parameter {name!r} is {dtype}, and masters are float32: "
                "build the model in float32, or use recipe=pure"
            )
    for name, buffer in model.named_buffers(remove_duplicate=False):
        if buffer.dtype is torch.float32:
            yield name


def cast_model(model: torch.nn.Module) -> None:
    """Cast the float32 parameters and buffers of a model to bfloat16, as `model.to` does, and let
    it cast its floating-point inputs."""
    import torch

    for module in model.modules():
        for parameter in module._parameters.values():
            if parameter is not None and parameter.dtype is torch.float32:
                # The same object stays, for optimisers and tied names that hold it.
                parameter.data = parameter.data.to(torch.bfloat16)
        for name, buffer in module._buffers.items():
            if buffer is not None and buffer.dtype is torch.float32:
                module._buffers[name] = buffer.to(torch.bfloat16)
    model.register_forward_pre_hook(_cast_inputs, with_kwargs=True)


def check_cast(model: torch.nn.Module, recipe: Recipe | None) -> None:
    """Refuse a float32 model under a recipe whose model is in bfloat16.

    Raises:
        SituateError: a parameter is float32.
    """
    import torch

    if recipe is not None and recipe.casts_model:
        for name, parameter in model.named_parameters():
            if parameter.dtype is torch.float32:
                raise SituateError(
                    f"recipe {recipe.name}: parameter {name!r} is float32: cast the model, "
                    "model.to(torch.bfloat16)"
                )


def _cast_inputs(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    """The inputs of a module, with float32 tensors in the type of its parameters."""
    import torch
    from torch.utils._pytree import tree_map_only

    dtype = next((p.dtype for p in module.parameters() if p.is_floating_point()), torch.bfloat16)

    def cast(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.to(dtype) if tensor.dtype is torch.float32 else tensor

    cast_args, cast_kwargs = tree_map_only(torch.Tensor, cast, (args, kwargs))
    return cast_args, cast_kwargs


def sum_in_float32(trace: Trace) -> None:
    """Let a trace return its gradients in float32."""
    import torch
    from torch import fx

    with trace.graph.inserting_before(trace.graph.output_node()):
        gradients = gradient_nodes(trace)
    cast = dict[str, fx.Node]()
    for name, gradient in gradients.items():
        with trace.graph.inserting_after(gradient):
            cast[name] = _cast(trace, name, gradient, torch.float32, "gradient")
    replace_gradients(trace, cast)


def hold_masters(trace: Trace) -> None:
    """Let a trace read float32 masters and return gradients and new buffers in float32."""
    if not trace.masters:
        return
    for name, nodes in _held(trace).items():
        _read_master(trace, name, nodes)
    sum_in_float32(trace)
    _return_float32(trace)


def _held(trace: Trace) -> Mapping[str, list[fx.Node]]:
    """By canonical name, the placeholders of parameters and buffers with masters."""
    held: dict[str, list[fx.Node]] = {}
    for node in trace.graph.find_nodes(op="placeholder"):
        path = names.state_name(node)
        if path and trace.parameter(path) in trace.masters:
            held.setdefault(trace.canonical.get(path, path), []).append(node)
    return held


def _read_master(trace: Trace, name: str, nodes: list[fx.Node]) -> None:
    """Put one cast of a master before the first op that reads the weight, under any name."""
    import torch

    users = {user for node in nodes for user in node.users}
    for node in nodes:
        weight = node.meta["val"]
        # The placeholder is the master, and its readers get the cast.
        node.meta["val"] = weight.to(torch.float32)
    if not users:
        return
    first = next(node for node in trace.graph.nodes if node in users)
    with trace.graph.inserting_before(first):
        cast = _cast(trace, name, nodes[0], torch.bfloat16, "weight")
    cast.meta["partitioner_tag"] = "is_forward"
    for key in (names.REPLICA, names.PART):
        if key in nodes[0].meta:
            cast.meta[key] = nodes[0].meta[key]
    for user in users:
        for node in nodes:
            user.replace_input_with(node, cast)


def _return_float32(trace: Trace) -> None:
    """Cast the new values of buffers with masters."""
    import torch

    output = trace.graph.output_node()
    returned = []
    with trace.graph.inserting_before(output):
        for node, descriptor in described_outputs(trace.graph):
            path = names.path(getattr(descriptor, "mutated_input", None))
            is_held = path and trace.parameter(path) in trace.masters
            cast = _cast(trace, path, node, torch.float32, "buffer") if is_held else node
            returned.append(cast)
    descriptors = [descriptor for _, descriptor in described_outputs(trace.graph)]
    output.args = (tuple(returned),)
    output.meta["desc"] = descriptors


def _cast(trace: Trace, name: str, node: fx.Node, dtype: torch.dtype, role: str) -> fx.Node:
    """A node in another type, named by its role; the node itself if it has this type."""
    if node.meta["val"].dtype is dtype:
        return node
    owner = trace.parameter(name)
    cast = add_call(trace.graph, module_of(owner), "_to_copy.default", node, dtype=dtype)
    cast.meta[names.NAME] = f"{names.uncompiled(owner)}/{role}"
    return cast
