"""The ops of a captured step: what it is given, and what it computes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from situate.graph import Op
from situate.readers import torch_buffers, torch_cost, torch_names, torch_signature
from situate.readers.torch_step import AT, BEFORE, Draft, Step
from situate.readers.update_rule import OPTIMIZERS

if TYPE_CHECKING:
    from torch import fx


def sources(step: Step) -> Iterator[Draft]:
    """Parameters, buffers, inputs and the loss's own gradient, each just before its first use."""
    for node in step.number:
        kind = _source_kind(node)
        storage = (node, 0)
        is_used = storage in step.flow.used
        is_held = kind == "parameter" and torch_names.held(node) in step.trace.canonical.values()
        if kind and (is_used or is_held):
            readers = step.flow.readers.get(storage, [node])
            writes = {storage: step.nbytes(storage)} if is_used else {}
            place = (step.number[readers[0]], BEFORE)
            yield Draft(_source_op(step, node, kind), node, place, (), writes)


def _source_kind(node: fx.Node) -> str:
    if torch_buffers.is_buffer(node):
        return "buffer"
    kinds = {
        "ParamAOTInput": "parameter",
        "PlainAOTInput": "input",
        "TangentAOTInput": "aten.full",
    }
    return kinds.get(type(node.meta.get("desc")).__name__, "") if node.op == "placeholder" else ""


def _source_op(step: Step, node: fx.Node, kind: str) -> Op:
    path, size = torch_names.held(node), step.nbytes((node, 0))
    states = OPTIMIZERS[step.optimizer][0] if path in step.flow.gradients else 0
    changes = path in step.flow.gradients or path in step.flow.mutations
    unheld = f"input/{node.meta['desc'].idx}" if kind == "input" else "loss/full"
    return Op(
        path or unheld,
        kind,
        dtype=torch_cost.dtype([], node.meta["val"]),
        persistent=size * (1 + states) if path else 0,
        group=path if changes else None,
        module=path.rpartition(".")[0],
        phase="backward" if kind == "aten.full" else "forward",
    )


def computations(step: Step) -> Iterator[Draft]:
    modules: dict[fx.Node, str] = {}
    for node in step.flow.ops:
        module = torch_names.module(node)
        if module is None:
            computed = [source for source, _ in step.flow.reads[node] if source in modules]
            latest = max(computed, key=step.number.__getitem__, default=None)
            module = modules.get(latest, "") if latest else ""
        modules[node] = module
        written = enumerate(torch_cost.outputs(node.meta["val"]))
        writes = {(node, k): torch_cost.nbytes(value) for k, value in written}
        used = {s: size for s, size in writes.items() if s in step.flow.used}
        unused = sum(writes.values()) - sum(used.values())
        op = _op(node, module, step.folded.held_bytes(node), unused)
        yield Draft(op, node, (step.number[node], AT), step.flow.reads[node], used)


def _op(node: fx.Node, module: str, persistent: int, workspace: int) -> Op:
    kind, value = torch_names.kind(node), node.meta["val"]
    args, kwargs = torch_cost.values(node.args), torch_cost.values(node.kwargs)
    inputs = list(torch_cost.tensors((args, kwargs)))
    packet = getattr(node.target, "overloadpacket", None)
    return Op(
        torch_names.wanted(module, kind),
        kind,
        flops=torch_cost.flops(packet, args, kwargs, value),
        traffic=torch_cost.traffic(kind, inputs, value),
        dtype=torch_cost.dtype(inputs, value),
        persistent=persistent,
        workspace=workspace,
        module="" if torch_names.is_outside(module) else module,
        phase="backward" if node.meta.get("partitioner_tag") == "is_backward" else "forward",
        signature=torch_signature.of_node(node),
    )
