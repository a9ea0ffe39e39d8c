"""A training or inference step of a PyTorch model as one functional graph of ATen ops."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from situate.errors import SituateError
from situate.torch_capture import names
from situate.torch_capture.build import FakeStep, describe_type, set_mode
from situate.torch_capture.garbage import without_collection
from situate.torch_capture.names import path_of
from situate.torch_capture.patches.autocast import cache_as_written
from situate.torch_capture.patches.autograd_functions import FunctionsCalled, functions_whole
from situate.torch_capture.patches.constant_values import constants_known
from situate.torch_capture.patches.data_dependent_sizes import fold_sized
from situate.torch_capture.patches.devices import devices_here, devices_stand, lie_here
from situate.torch_capture.patches.eager_kernels import (
    ctc_of_known_lengths,
    interpolation_whole,
    layers_step_by_step,
    margins_whole,
)
from situate.torch_capture.patches.export import compiled_modules_called, lifted_apart, loss_lines
from situate.torch_capture.patches.kernel_results import layouts_as_computed, statistics_as_computed
from situate.torch_capture.patches.module_conversion import modules_stay_as_built
from situate.torch_capture.patches.named_devices import NamedDevices
from situate.torch_capture.patches.regions import (
    Regions,
    inference_without_gradients,
    regions_in_line,
)
from situate.torch_capture.patches.transformers_attention import heads_share, masks_as_run
from situate.torch_capture.patches.value_checks import arguments_unchecked, tensors_unchecked
from situate.torch_capture.refusals.errors import explained
from situate.torch_capture.refusals.libraries import mask_remedy
from situate.torch_capture.refusals.lines import user_frame
from situate.torch_capture.refusals.remedies import OUTSIDE, SHAPES
from situate.torch_capture.refusals.unsupported import (
    backward_is_autograds,
    check_averages,
    check_dense,
    check_hooks,
    loss_unscaled,
    one_thread,
    products_of_one_dtype,
)
from situate.torch_capture.side_effects.effects import check_effects, environment_kept
from situate.torch_capture.side_effects.environment import Environment
from situate.torch_capture.side_effects.replaced_buffers import Assigned, AssignedBuffers
from situate.torch_capture.trees import Structure, flatten
from situate.torch_capture.values.input_values import InputValues
from situate.torch_capture.values.required import RequiredValues

if TYPE_CHECKING:
    import torch
    from torch import fx
    from torch.export import ExportedProgram

    from situate.data.cuts import CutParameter, Cuts
    from situate.data.slices import Slices
    from situate.torch_capture.cuts.state import StatePart

Joint = tuple["fx.Graph", "dict[str, torch.Tensor]"]

STEP = "the step is loss(model, *inputs), which"


@dataclass(frozen=True)
class Trace:
    """A step: forward ops, then backward ops if it trains.

    Attributes:
        graph: placeholders and outputs carry PyTorch's descriptors in `meta`.
        canonical: for every name of a parameter, its first name (tied weights have several).
        trainable: names of parameters that take a gradient.
        constants: by name, the tensors that are neither parameters nor buffers of the model.
        restore: from the tensors that the step returns to the return value of the loss or the
            model.
        devices: that the model and the step name.
        required: the inputs whose values the step depends on.
        slices: of the batch; None if the step takes it whole.
        notes: warnings about the slices, one line each.
        copies: by name of a further copy of a parameter, the parameter. The same gradients
            update both.
        recompute: paths of the modules that run their forward pass again before their backward.
        cuts: of the ops; None if all of them are whole.
        parts: by name of a part of a parameter, its place there.
        cut_parameters: the division of each parameter that is cut.
        masters: names of the parameters and buffers that are held in float32 for passes in
            bfloat16.
    """

    graph: fx.Graph
    canonical: dict[str, str]
    trainable: frozenset[str]
    constants: dict[str, torch.Tensor]
    restore: Callable[[list[torch.Tensor]], Any]
    devices: NamedDevices
    required: tuple[RequiredValues, ...] = ()
    slices: Slices | None = None
    notes: tuple[str, ...] = ()
    copies: Mapping[str, str] = field(default_factory=dict)
    recompute: tuple[str, ...] = ()
    cuts: Cuts | None = None
    parts: Mapping[str, StatePart] = field(default_factory=dict)
    cut_parameters: tuple[CutParameter, ...] = ()
    masters: frozenset[str] = frozenset()

    def parameter(self, path: str) -> str:
        """The name of the parameter that `path` is a copy or a part of; other names are returned
        as they are."""
        path = self.parts[path].of if path in self.parts else path
        return self.copies.get(path, path)


def copied(trace: Trace) -> Trace:
    """The same trace with its own graph, which may be changed."""
    from torch import fx

    graph, nodes = fx.Graph(), dict[fx.Node, fx.Node]()
    for node in trace.graph.nodes:
        nodes[node] = graph.node_copy(node, nodes.__getitem__)
    return replace(trace, graph=graph)


def joint(fake: FakeStep, training: bool, name: str) -> Trace:
    """The trace of a step on fake tensors.

    Raises:
        SituateError: the step depends on the values of a tensor.
    """
    set_mode(fake.model, training)
    with (
        without_collection(),
        explained(name, "capturing the step", fake.signature, fake.criterion),
    ):
        if training and fake.loss_parameters:
            raise SituateError(
                f"the loss has parameters of its own, such as {fake.loss_parameters[0]!r}: make it "
                "a part of the model, whose parameters the step updates"
            )
        check_averages(fake.model)
        if training:
            check_hooks(fake.model)
        values = InputValues(fake.examples)
        step = _step(fake, training, values)
        with (
            _devices(fake),
            functions_whole(training) as function_operators,
            environment_kept(fake.model, fake.call) as environment,
        ):
            traced = partial(_joint, step, fake, values, environment, training, function_operators)
            graph, constants = _captured(traced, values)
        for node in graph.nodes:
            if fake.criterion and names.module(node) == "loss":
                node.meta[names.CRITERION] = fake.criterion
    parameters = list(fake.model.named_parameters(remove_duplicate=False))
    first: dict[int, str] = {}
    for path, parameter in parameters:
        first.setdefault(id(parameter), path)
    canonical = {path: first[id(parameter)] for path, parameter in parameters}
    trainable = frozenset(path for path, parameter in parameters if parameter.requires_grad)
    real_constants = {
        name: fake.originals.get(id(value), value) for name, value in constants.items()
    }
    return Trace(
        graph,
        canonical,
        trainable,
        real_constants,
        step.restore,
        fake.devices,
        values.required,
        masters=fake.masters,
    )


def _captured(trace: Callable[[], Joint], values: InputValues) -> Joint:
    """The result of `trace`, with a second and third attempt.

    If a library's code for a mask fails, the second attempt may read the values of masks. If that
    fails too, the error is that of a step that may read no values.
    """
    try:
        return trace()
    except Exception as error:
        if values and mask_remedy(user_frame(error)):
            values.begin_with_masks()
            with contextlib.suppress(Exception):
                return trace()
        if not values.looked:
            raise
    values.forget()
    return trace()


def _devices(fake: FakeStep) -> contextlib.AbstractContextManager[None]:
    """A block in which named devices stand for the plan's, unless the model is on one of them."""
    state = (*fake.model.parameters(), *fake.model.buffers(), *fake.tensors)
    return devices_stand(fake.devices) if lie_here(state) else contextlib.nullcontext()


def _step(fake: FakeStep, training: bool, values: InputValues) -> Any:
    import torch

    # Not attributes of the module: export sets those back.
    outputs: list[tuple[list[Any], Structure]] = []
    assigned = AssignedBuffers(fake.model)

    class Step(torch.nn.Module):
        """The module to be captured: the loss of a training step, else the model's result."""

        def __init__(self) -> None:
            super().__init__()
            self.model = fake.model

        def forward(self, *tensors: torch.Tensor) -> Any:
            returned: list[Any] = []
            values.begin(tensors)
            # Inference returns the model's result, whatever the user's function makes of it.
            hook = self.model.register_forward_hook(lambda *call: returned.append(call[-1]))
            try:
                with assigned.write_back(), values.model_called(self.model):
                    value = fake.call(self.model, *tensors)
            finally:
                hook.remove()
            if training:
                return _scalar(value)
            outputs[:] = [flatten(returned[-1] if returned else value)]
            return _tensors(returned[-1] if returned else value)

        def restore(self, tensors: list[torch.Tensor]) -> Any:
            if not outputs:
                return tensors[0]
            [(leaves, structure)] = outputs
            rest = iter(tensors)
            is_tensor = (isinstance(leaf, torch.Tensor) for leaf in leaves)
            filled = [next(rest) if t else leaf for leaf, t in zip(leaves, is_tensor, strict=True)]
            return structure.unflatten(filled)

    return Step()


def _scalar(value: object) -> torch.Tensor:
    import torch

    got = describe_type(value)
    if isinstance(value, torch.Tensor):
        if value.numel() == 1 and value.is_floating_point():
            return value.reshape(()) if value.dim() else value
        got = f"a {str(value.dtype).removeprefix('torch.')} tensor of shape {tuple(value.shape)}"
    if isinstance(getattr(value, "loss", None), torch.Tensor):
        got += ": give a loss that returns its .loss, as lambda model, **batch: model(**batch).loss"
    raise SituateError(f"{STEP} must return one floating-point number, got {got}")


def _tensors(value: object) -> tuple[torch.Tensor, ...]:
    import torch

    tensors = tuple(leaf for leaf in flatten(value)[0] if isinstance(leaf, torch.Tensor))
    if not tensors:
        raise SituateError("the model returns no tensor")
    return tensors


@interpolation_whole()
@margins_whole()
@ctc_of_known_lengths()
@arguments_unchecked()
@tensors_unchecked()
@statistics_as_computed()
@layouts_as_computed()
@devices_here()
@inference_without_gradients()
def _joint(
    step: torch.nn.Module,
    fake: FakeStep,
    values: InputValues,
    environment: Environment,
    training: bool,
    function_operators: FunctionsCalled,
) -> Joint:
    """Export, then trace the exported step together with its gradient (or without one)."""
    import torch
    from torch._functorch.aot_autograd import aot_export_joint_with_descriptors
    from torch.fx._lazy_graph_module import _use_lazy_graph_module
    from torch.fx.traceback import preserve_node_meta

    if training and not any(p.requires_grad for p in step.parameters()):
        raise SituateError("no parameter takes a gradient, so there is no training step")
    tensors, mode = fake.tensors, fake.mode
    with contextlib.ExitStack() as stack:
        stack.enter_context(mode)
        stack.enter_context(_use_lazy_graph_module(True))
        stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        stack.enter_context(constants_known())
        stack.enter_context(values.looked_at())
        stack.enter_context(products_of_one_dtype())
        stack.enter_context(backward_is_autograds(training))
        stack.enter_context(modules_stay_as_built())
        stack.enter_context(one_thread())
        stack.enter_context(loss_unscaled())
        masks = stack.enter_context(masks_as_run(values.is_known))
        stack.enter_context(heads_share(masks))
        stack.enter_context(lifted_apart())
        stack.enter_context(loss_lines(fake.loss))
        stack.enter_context(regions_in_line())
        stack.enter_context(compiled_modules_called())
        stack.enter_context(cache_as_written())
        # These runs call custom functions as they are; only export needs them as operators.
        check_effects(step, tensors, environment, training, mode)
        stack.enter_context(function_operators())
        exported = _exported(step, tensors)
    if not _is_static(exported):
        with mode, constants_known():
            step(*tensors)  # raises where a value is asked for, so that the line can be named
        raise SituateError(SHAPES)
    module = _with_buffers(exported)
    # Autocast and no-grad regions stay in line; AOTAutograd then sees the modules of their ops.
    regions = Regions(module, training)
    _erase_looks(module)
    sized = fold_sized(module, exported.constants, values.in_graph(module.graph))
    module.recompile()
    with contextlib.ExitStack() as stack:
        stack.enter_context(mode)
        # Nothing runs the traced module, so PyTorch need not compile its code.
        stack.enter_context(_use_lazy_graph_module(True))
        stack.enter_context(constants_known())
        stack.enter_context(values.looked_at())
        values.begin_again(tensors)
        # Without it, AOTAutograd drops `nn_module_stack`, from which the names of ops come.
        stack.enter_context(preserve_node_meta())
        stack.enter_context(regions.traced())
        # AOTAutograd traces a backward pass if gradients are on, whatever the caller wants.
        stack.enter_context(torch.set_grad_enabled(training))
        if training:
            stack.enter_context(layers_step_by_step())
        traced = aot_export_joint_with_descriptors(stack, module, tensors).graph_module
    check_dense(traced.graph)
    constants = {path_of(name): value for name, value in exported.constants.items()}
    return traced.graph, constants | sized | _literals(traced)


def _literals(traced: fx.GraphModule) -> dict[str, torch.Tensor]:
    """By name, the tensors that custom autograd functions contain as constants."""
    names = (str(node.target) for node in traced.graph.find_nodes(op="get_attr"))
    return {name: getattr(traced, name) for name in names}


def _exported(step: Any, tensors: tuple[torch.Tensor, ...]) -> ExportedProgram:
    import torch

    try:
        # Non-strict export runs the program in Python; Dynamo would analyse its bytecode and refuse
        # more.
        exported = torch.export.export(step, tensors, strict=False)
    except Assigned:
        return _exported(step, tensors)
    except RuntimeError as error:
        if "constant's list" not in str(error):
            raise
        raise SituateError(OUTSIDE) from None
    for value in exported.constants.values():
        if isinstance(value, torch.Tensor) and value.is_leaf and value.requires_grad:
            raise SituateError(
                f"it reads a tensor of shape {tuple(value.shape)} that takes a gradient and is no "
                "parameter of the model: make what holds it a part of the model"
            )
    return exported


def _is_static(exported: ExportedProgram) -> bool:
    """True if no size or number depends on the values of a tensor."""
    from situate.torch_capture.cost import outputs

    values = (value for node in exported.graph.nodes for value in outputs(node.meta.get("val")))
    sizes = (size for value in values for size in getattr(value, "shape", (value,)))
    return not any(type(size).__name__.startswith("Sym") for size in sizes)


def _with_buffers(exported: ExportedProgram) -> fx.GraphModule:
    """The exported step with its constant tensors as buffers, because PyTorch refuses to trace fake
    tensors in plain attributes."""
    import torch

    module: fx.GraphModule = exported.module()
    for name, value in exported.constants.items():
        path, _, attribute = name.rpartition(".")
        owner = module.get_submodule(path)
        if isinstance(value, torch.Tensor) and attribute not in owner._buffers:
            delattr(owner, attribute)
            owner.register_buffer(attribute, value)
    return module


def _erase_looks(module: fx.GraphModule) -> None:
    """Erase reads of known values: their outcome is already decided."""
    from torch.ops import aten

    for look in module.graph.find_nodes(op="call_function", target=aten.item.default):
        if not look.users:
            module.graph.erase_node(look)
