"""The ops of a captured step: what it is given, and what it computes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from situate.data.graph import Op
from situate.data.update_rule import OPTIMIZERS
from situate.torch_capture import buffers, cost, names, signature
from situate.torch_capture.step import AT, BEFORE, Draft, Step

if TYPE_CHECKING:
    from torch import fx


def sources(step: Step) -> Iterator[Draft]:
    """Parameters, buffers, inputs and the loss's own gradient, each just before its first use."""
    parameters = set(step.trace.canonical.values())
    for node in step.number:
        kind = _source_kind(node)
        storage = (node, 0)
        is_used = storage in step.flow.used
        path = names.held(node)
        is_parameter = kind == "parameter" and path in parameters
        is_held = is_parameter or path in step.flow.mutations
        if kind and (is_used or is_held):
            readers = step.flow.readers.get(storage, [node])
            writes = {storage: step.nbytes(storage)} if is_used else {}
            place = (step.number[readers[0]], BEFORE)
            yield Draft(_source_op(step, node, kind), node, place, (), writes)


def _source_kind(node: fx.Node) -> str:
    if buffers.is_buffer(node):
        return "buffer"
    kinds = {
        "ParamAOTInput": "parameter",
        "PlainAOTInput": "input",
        "TangentAOTInput": "aten.full",
    }
    return kinds.get(type(node.meta.get("desc")).__name__, "") if node.op == "placeholder" else ""


def _source_op(step: Step, node: fx.Node, kind: str) -> Op:
    path, size = names.held(node), step.nbytes((node, 0))
    name = names.uncompiled(step.trace.parameter(path))
    states = OPTIMIZERS[step.optimizer][0] if path in step.flow.gradients else 0
    changes = path in step.flow.gradients or path in step.flow.mutations
    return Op(
        names.in_part(node, name or _unheld(node, kind)),
        kind,
        dtype=cost.dtype([], node.meta["val"]),
        persistent=size * (1 + states) if path else 0,
        group=names.uncompiled(path) if changes else None,
        module=name.rpartition(".")[0],
        phase="backward" if kind == "aten.full" else "forward",
        slice=node.meta.get(names.SLICE),
        replica=node.meta.get(names.REPLICA),
    )


def _unheld(node: fx.Node, kind: str) -> str:
    """The name of an input, or of the loss's own gradient."""
    return (
        f"input/{node.meta.get(names.INPUT, node.meta['desc'].idx)}"
        if kind == "input"
        else "loss/full"
    )


def computations(step: Step) -> Iterator[Draft]:
    modules: dict[fx.Node, str] = {}
    together = _drawing_again(step)
    for node in step.flow.ops:
        module = names.module(node)
        if module is None:
            computed = [source for source, _ in step.flow.reads[node] if source in modules]
            latest = max(computed, key=step.number.__getitem__, default=None)
            module = modules.get(latest, "") if latest else ""
        modules[node] = module
        written = enumerate(cost.outputs(node.meta["val"]))
        writes = {(node, k): cost.nbytes(value) for k, value in written}
        used = {s: size for s, size in writes.items() if s in step.flow.used}
        unused = sum(writes.values()) - sum(used.values())
        op = _op(node, module, step.folded.held_bytes(node), unused, together.get(node))
        yield Draft(op, node, (step.number[node], AT), step.flow.reads[node], used)


def _drawing_again(step: Step) -> dict[fx.Node, str]:
    """The groups of ops that draw, and of those that run them again: devices of two kinds draw
    other numbers from one seed."""
    import torch

    seeded = torch.Tag.nondeterministic_seeded
    found: dict[fx.Node, str] = {}
    for node in step.flow.ops:
        if names.AGAIN in node.meta and seeded in getattr(node.target, "tags", ()):
            group = f"recompute/draw{len(found) // 2}"
            found |= dict.fromkeys((node, node.meta[names.AGAIN]), group)
    return found


def _op(
    node: fx.Node, module: str, persistent: int, workspace: int, group: str | None = None
) -> Op:
    kind, value = names.kind(node), node.meta["val"]
    args, kwargs = cost.values(node.args), cost.values(node.kwargs)
    inputs = list(cost.tensors((args, kwargs)))
    flops = cost.flops(getattr(node.target, "overloadpacket", None), args, kwargs, value)
    return Op(
        names.in_part(node, node.meta.get(names.NAME) or names.wanted(module, kind)),
        kind,
        flops=flops,
        traffic=cost.traffic(kind, inputs, value),
        dtype=cost.product_dtype(kind, inputs, value) if flops else cost.dtype(inputs, value),
        persistent=persistent,
        workspace=workspace,
        group=group,
        module="" if names.is_outside(module) else module,
        phase="backward" if node.meta.get("partitioner_tag") == "is_backward" else "forward",
        # An op that runs again is measured as the first one.
        signature=signature.of_node(node.meta.get(names.AGAIN, node)),
        slice=node.meta.get(names.SLICE),
        replica=node.meta.get(names.REPLICA),
        recompute=names.AGAIN in node.meta,
    )
