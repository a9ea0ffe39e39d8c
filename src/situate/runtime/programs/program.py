"""A captured step as a program, and the roles of its ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from situate.data.cuts import Cuts
from situate.data.graph import Graph
from situate.data.slices import Slices
from situate.data.update_rule import update_rule
from situate.runtime.programs.custom_ops import check_functional
from situate.torch_capture import check_installed, checked, step_of
from situate.torch_capture.build import from_real
from situate.torch_capture.flow import Storage, described_outputs, storages
from situate.torch_capture.graph import assemble, drafts, to_step
from situate.torch_capture.names import AGAIN, DRAW, path
from situate.torch_capture.ops import Step
from situate.torch_capture.patches.named_devices import NamedDevices
from situate.torch_capture.refusals.errors import explained, quiet
from situate.torch_capture.slices.traces import Traces
from situate.torch_capture.tracing import Trace
from situate.torch_capture.updates.recipes import check_cast, under_recipe

if TYPE_CHECKING:
    import torch
    from torch import fx


Role = Literal["compute", "state", "input", "tangent", "sum", "update", "copy"]

_OF_KIND: dict[str, Role] = {
    "parameter": "state",
    "buffer": "state",
    "input": "input",
    "aten.full": "tangent",
    "aten.add": "sum",
    "update.copy": "copy",
}


@dataclass(frozen=True)
class Program:
    """A step that can be executed op by op.

    Attributes:
        graph: of the step, for planning.
        step: the trace and its data flow.
        nodes: (ops,) the node that an op computes, holds or updates.
        results: the nodes of the loss or the model's results, then those of overwritten inputs.
        overwritten: numbers of those inputs, in that order.
        gradients: by parameter or copy of one, the nodes of its gradients, one for each of its
            names.
        mutations: by buffer, the node of its new value.
        training: it has gradients and updates.
        optimizer: the kind of its parameters' update.
        separate: returns the tensors in inputs, or their slices.
        restore: makes the result of the loss or the model from the result tensors.
        named_devices: the devices that model and step name.
    """

    graph: Graph
    step: Step
    nodes: tuple[fx.Node, ...]
    results: tuple[fx.Node, ...]
    overwritten: tuple[int, ...]
    gradients: dict[str, tuple[fx.Node, ...]]
    mutations: dict[str, fx.Node]
    training: bool
    optimizer: str
    separate: Callable[[object], tuple[torch.Tensor, ...]]
    restore: Callable[[list[torch.Tensor]], Any]
    named_devices: NamedDevices

    @property
    def inputs(self) -> list[fx.Node]:
        """The nodes of the step's input tensors, in order."""
        kinds = {node: type(node.meta.get("desc")).__name__ for node in self.step.number}
        return [node for node, kind in kinds.items() if kind == "PlainAOTInput"]


def capture_program(
    model: torch.nn.Module,
    inputs: object,
    loss: Callable[..., Any] | None,
    *,
    training: bool = True,
    optimizer: str = "sgd",
    name: str = "model",
    named_devices: NamedDevices | None = None,
    slices: Slices | None = None,
    recompute: Sequence[str] = (),
    cuts: Cuts | None = None,
) -> Program:
    """Capture the step of a real model, which stays unchanged.

    Args:
        named_devices: the devices that the building of the model named.

    The other arguments, and errors, are those of `situate.capture`, which returns the program's
    graph.
    """
    rule = update_rule(optimizer)
    check_installed()
    with quiet(), explained(name, "capturing the step"):
        real = from_real(model, inputs, loss, name, named_devices)
        check_cast(model, rule.recipe)
        fake = under_recipe(real, rule.recipe)
        captured, separate = step_of(Traces(fake, name), training, slices, recompute, cuts)
        step = to_step(captured, optimizer)
        check_functional(step.flow.ops)
        op_drafts = drafts(step)
        graph = checked(assemble(name, op_drafts, step, optimizer), training, captured)
    results, overwritten, gradients, mutations = _outputs(captured)
    nodes = tuple(draft.node for draft in op_drafts)
    return Program(
        graph,
        step,
        nodes,
        (*results, *overwritten.values()),
        tuple(overwritten),
        gradients,
        mutations,
        training,
        rule.kind,
        separate,
        captured.restore,
        real.devices,
    )


def _outputs(
    trace: Trace,
) -> tuple[list[fx.Node], dict[int, fx.Node], dict[str, tuple[fx.Node, ...]], dict[str, fx.Node]]:
    """The nodes of results, of new values by input, of gradients by parameter, and of new values by
    buffer."""
    results: list[fx.Node] = []
    overwritten: dict[int, fx.Node] = {}
    gradients: dict[str, tuple[fx.Node, ...]] = {}
    mutations: dict[str, fx.Node] = {}
    for node, descriptor in described_outputs(trace.graph):
        # By name, because the module of AOTAutograd's descriptors is private to PyTorch.
        match type(descriptor).__name__:
            case "PlainAOTOutput":
                results.append(node)
            case "GradAOTOutput" if (name := path(descriptor.grad_of)) in trace.trainable:
                canonical = trace.canonical[name]
                gradients[canonical] = (*gradients.get(canonical, ()), node)
            case "InputMutationAOTOutput" if name := path(descriptor.mutated_input):
                mutations[name] = node
            case "InputMutationAOTOutput":
                overwritten[descriptor.mutated_input.idx] = node
    gradients |= {copy: gradients[name] for copy, name in trace.copies.items() if name in gradients}
    return results, overwritten, gradients, mutations


class Roles:
    """The roles of the ops of a program."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def of(self, op: int) -> Role:
        """The role of op number `op`; `tangent` is the gradient of the loss by itself, 1."""
        if self.program.nodes[op].op == "call_function":
            return "compute"
        return _OF_KIND.get(self.program.graph.ops[op].kind, "update")

    @cached_property
    def storage(self) -> dict[fx.Node, Storage]:
        """The storage of a node's value."""
        return storages(self.program.step.trace)

    @cached_property
    def owner(self) -> dict[Storage, int]:
        """The op that makes or holds a storage."""
        folded = self.program.step.folded
        owners: dict[Storage, int] = {}
        for op, node in enumerate(self.program.nodes):
            role = self.of(op)
            if role == "compute":
                values = node.meta["val"]
                count = len(values) if isinstance(values, (list, tuple)) else 1
                owners |= {(node, k): op for k in range(count)}
                inside = (*folded.buffers.get(node, ()), *folded.counters.get(node, ()))
                owners |= {(inner, 0): op for inner in inside}
            elif role in ("state", "input", "tangent"):
                owners[node, 0] = op
            elif role == "sum":
                # Output 0 of a parameter is its value: the sum of its gradients is numbered 1.
                owners[node, 1] = op
        return owners

    @cached_property
    def used(self) -> frozenset[Storage]:
        """The storages that any op or result reads."""
        program, folded = self.program, self.program.step.folded
        counters = [counter for ops in folded.counters.values() for counter in ops]
        returned = [*program.results, *program.mutations.values()]
        gradients = [node for nodes in program.gradients.values() for node in nodes]
        sources = [source for node in counters for source in node.all_input_nodes]
        nodes = [*returned, *gradients, *sources]
        return frozenset(folded.flow.used | {self.storage[node] for node in nodes})

    @cached_property
    def random(self) -> dict[fx.Node, int]:
        """The rank of each random node among the unplaced step's draws; a recomputed node repeats
        its first draw, and parts of an op share one."""
        import torch

        seeded = torch.Tag.nondeterministic_seeded
        nodes = self.program.step.number
        drawing = [node for node in nodes if seeded in getattr(node.target, "tags", ())]
        # Parts of an op share a draw; a recomputed part has the `meta` of the first one.
        draw = {n: n.meta.get(DRAW, n.meta.get(AGAIN, n)) for n in drawing}
        rank = {of: k for k, of in enumerate(dict.fromkeys(draw.values()))}
        return {node: rank[draw[node]] for node in drawing}
