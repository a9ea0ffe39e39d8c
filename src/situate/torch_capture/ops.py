"""The ops of a captured step: its sources, computations, sums and updates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from situate.data.graph import Op
from situate.errors import SituateError
from situate.torch_capture import buffers, cost, names, signature
from situate.torch_capture.buffers import Folded
from situate.torch_capture.flow import Flow, Storage
from situate.torch_capture.tracing import Trace
from situate.torch_capture.updates.optimizer_state import state_bytes, update_flops
from situate.torch_capture.value_keys import ValueKeys

if TYPE_CHECKING:
    from torch import fx

BEFORE, AT, SUM, UPDATE = range(4)
"""Order of the ops that belong to one node of the trace."""


@dataclass
class Draft:
    """A future op with the storages that it reads and writes.

    Attributes:
        node: whose value the op computes or holds, or whose gradient it sums or applies.
        place: rank in the order of execution.
        overwrites: a storage whose other readers must end before.
    """

    op: Op
    node: fx.Node
    place: tuple[int, int]
    reads: tuple[Storage, ...] = ()
    writes: dict[Storage, int] = field(default_factory=dict)
    overwrites: Storage | None = None


@dataclass(frozen=True)
class Step:
    """A trace with its data flow and its update rule.

    Attributes:
        number: the nodes in order of execution.
        optimizer: one of `situate.data.update_rule.OPTIMIZERS`.
    """

    trace: Trace
    folded: Folded
    number: dict[fx.Node, int]
    optimizer: str

    @property
    def flow(self) -> Flow:
        """The data flow of the step."""
        return self.folded.flow

    def state_bytes(self, node: fx.Node) -> int:
        """Bytes of the optimiser's state of a parameter."""
        value = node.meta["val"]
        return state_bytes(self.optimizer, tuple(value.shape), value.dtype.itemsize)

    def nbytes(self, storage: Storage) -> int:
        node, index = storage
        return cost.nbytes(cost.outputs(node.meta["val"])[index])


def sources(step: Step) -> Iterator[Draft]:
    """Parameters, buffers, inputs and the loss's own gradient, each just before its first use."""
    parameters = set(step.trace.canonical.values())
    for node in step.number:
        kind = _source_kind(node)
        storage = (node, 0)
        is_used = storage in step.flow.used
        path = names.state_name(node)
        is_parameter = kind == "parameter" and path in parameters
        is_updated = is_parameter or path in step.flow.mutations
        if kind and (is_used or is_updated):
            readers = step.flow.readers.get(storage, [node])
            writes = {storage: step.nbytes(storage)} if is_used else {}
            place = (step.number[readers[0]], BEFORE)
            yield Draft(_source_op(step, node, kind), node, place, (), writes)


def _source_kind(node: fx.Node) -> str:
    if buffers.is_buffer(node):
        return "buffer"
    # The tangent of the loss is its derivative by itself, a constant of ones.
    kinds = {
        "ParamAOTInput": "parameter",
        "PlainAOTInput": "input",
        "TangentAOTInput": "aten.full",
    }
    return kinds.get(type(node.meta.get("desc")).__name__, "") if node.op == "placeholder" else ""


def _source_op(step: Step, node: fx.Node, kind: str) -> Op:
    path, size = names.state_name(node), step.nbytes((node, 0))
    name = names.uncompiled(step.trace.parameter(path))
    state = step.state_bytes(node) if path in step.flow.gradients else 0
    changes = path in step.flow.gradients or path in step.flow.mutations
    return Op(
        names.in_part(node, name or _source_name(node, kind)),
        kind,
        dtype=cost.dtype([], node.meta["val"]),
        persistent=size + state if path else 0,
        group=names.uncompiled(path) if changes else None,
        module=name.rpartition(".")[0],
        phase="backward" if kind == "aten.full" else "forward",
        slice=node.meta.get(names.SLICE),
        replica=node.meta.get(names.REPLICA),
        part=node.meta.get(names.PART),
    )


def _source_name(node: fx.Node, kind: str) -> str:
    """The name of an input, or of the loss's own gradient."""
    return (
        f"input/{node.meta.get(names.INPUT, node.meta['desc'].idx)}"
        if kind == "input"
        else "loss/full"
    )


def computations(step: Step, work_of: WorkTable) -> Iterator[Draft]:
    modules: dict[fx.Node, str] = {}
    draw_groups = _draw_groups(step)
    for node in step.flow.ops:
        module = names.module(node)
        if module is None:
            computed = [source for source, _ in step.flow.reads[node] if source in modules]
            # An op without a module stack, such as a sum of gradients, belongs to the module of its
            # last input.
            latest = max(computed, key=step.number.__getitem__, default=None)
            module = modules.get(latest, "") if latest else ""
        modules[node] = module
        values = enumerate(cost.outputs(node.meta["val"]))
        writes = {(node, k): cost.nbytes(value) for k, value in values}
        used = {s: size for s, size in writes.items() if s in step.flow.used}
        unused = sum(writes.values()) - sum(used.values())
        op = _op(
            node,
            module,
            work_of(node),
            step.folded.buffer_bytes(node),
            unused,
            draw_groups.get(node),
        )
        yield Draft(op, node, (step.number[node], AT), step.flow.reads[node], used)


def _draw_groups(step: Step) -> dict[fx.Node, str]:
    """Groups that each hold an op that draws and its recomputed copy, because devices of two kinds
    draw different numbers from one seed."""
    import torch

    seeded = torch.Tag.nondeterministic_seeded
    groups: dict[fx.Node, str] = {}
    for node in step.flow.ops:
        if names.AGAIN in node.meta and seeded in getattr(node.target, "tags", ()):
            # Each group adds two entries, the first op and its repetition.
            group = f"recompute/draw{len(groups) // 2}"
            groups |= dict.fromkeys((node, node.meta[names.AGAIN]), group)
    return groups


@dataclass(frozen=True)
class Work:
    """The work of an op: `flops`, bytes of `traffic`, the `dtype` that it computes in, and the
    `signature` of all ops with the same work."""

    flops: int
    traffic: int
    dtype: str
    signature: str


class WorkTable:
    """The work of nodes. Calls with equal results, such as equal parts, are analysed once."""

    def __init__(self) -> None:
        self._keys = ValueKeys()
        self._work: dict[Any, Work] = {}

    def __call__(self, node: fx.Node) -> Work:
        try:
            key = self._keys.of_call(node)
            known = self._work.get(key)
        except TypeError:
            # An argument that has no hash.
            return _work(node)
        if known is None:
            known = self._work[key] = _work(node)
        return known


def _work(node: fx.Node) -> Work:
    kind, value = names.kind(node), node.meta["val"]
    args, kwargs = cost.values(node.args), cost.values(node.kwargs)
    inputs = list(cost.tensors((args, kwargs)))
    flops = cost.flops(getattr(node.target, "overloadpacket", None), args, kwargs, value)
    dtype = cost.product_dtype(kind, inputs, value) if flops else cost.dtype(inputs, value)
    traffic = cost.traffic(kind, inputs, value)
    return Work(flops, traffic, dtype, signature.of_node(node))


def _op(
    node: fx.Node, module: str, work: Work, persistent: int, workspace: int, group: str | None
) -> Op:
    kind = names.kind(node)
    # An op that runs again is measured as the first one.
    is_again = names.AGAIN in node.meta
    return Op(
        names.in_part(node, node.meta.get(names.NAME) or names.op_name(module, kind)),
        kind,
        flops=work.flops,
        traffic=work.traffic,
        dtype=work.dtype,
        persistent=persistent,
        workspace=workspace,
        group=group,
        module="" if names.is_outside(module) else module,
        phase="backward" if node.meta.get("partitioner_tag") == "is_backward" else "forward",
        signature=signature.of_node(node.meta[names.AGAIN]) if is_again else work.signature,
        slice=node.meta.get(names.SLICE),
        replica=node.meta.get(names.REPLICA),
        part=node.meta.get(names.PART),
        recompute=is_again,
    )


def buffer_updates(step: Step) -> Iterator[Draft]:
    """In-place updates, at the end, of buffers that several ops touch and of parameters that are
    not trained.

    Raises:
        SituateError: the forward pass changes a parameter that is trained.
    """
    for node in step.number:
        path = names.state_name(node)
        if path in step.flow.gradients and path in step.flow.mutations:
            raise SituateError(
                f"the forward pass changes parameter {path!r}, which is trained: change it after "
                "the step, or freeze it"
            )
        if path in step.flow.mutations:
            new, size = step.flow.mutations[path], step.nbytes((node, 0))
            op = _update_op(step, node, "copy", 0, 2 * size)
            yield Draft(op, node, _last(step, new, (node, 0)), (new,), overwrites=(node, 0))


def updates(step: Step) -> Iterator[Draft]:
    """One in-place update per parameter, after the sum of the gradients of its names."""
    for node in step.number:
        path = names.state_name(node)
        if step.flow.gradients.get(path) and (node, 0) in step.flow.used:
            yield from _update(step, node, path, step.flow.gradients[path])


def _update(
    step: Step, node: fx.Node, path: str, gradients: tuple[Storage, ...]
) -> Iterator[Draft]:
    parameter, size = (node, 0), step.nbytes((node, 0))
    place = _last(step, parameter, *gradients)
    distinct = tuple(dict.fromkeys(gradients))
    if len(gradients) > 1:
        total = (node, 1)
        reads, writes = distinct, {total: size}
        op = _sum_op(path, size, len(gradients), node)
        yield Draft(op, node, (place[0], SUM), reads, writes)
        distinct = (total,)
    flops = update_flops(step.optimizer, tuple(node.meta["val"].shape))
    # Traffic: parameter and gradient are read, the parameter is written, and each state is read and
    # written.
    traffic = 3 * size + 2 * step.state_bytes(node)
    op = _update_op(step, node, step.optimizer, flops, traffic)
    yield Draft(op, node, place, distinct, overwrites=parameter)


def _last(step: Step, *storages: Storage) -> tuple[int, int]:
    nodes = [node for node, _ in storages]
    readers = (reader for storage in storages for reader in step.flow.readers.get(storage, ()))
    return max(step.number[node] for node in (*nodes, *readers)), UPDATE


def _update_op(step: Step, node: fx.Node, how: str, flops: int, traffic: int) -> Op:
    path = names.state_name(node)
    name = names.uncompiled(step.trace.parameter(path))
    return Op(
        names.in_part(node, f"{name}/{how}"),
        f"update.{how}",
        flops=flops,
        traffic=traffic,
        dtype=cost.dtype([], node.meta["val"]),
        group=names.uncompiled(path),
        module=name.rpartition(".")[0],
        phase="update",
        signature=signature.call(f"update.{how}", (node.meta["val"],)),
        replica=node.meta.get(names.REPLICA),
        part=node.meta.get(names.PART),
    )


def _sum_op(path: str, size: int, count: int, node: fx.Node) -> Op:
    name = names.uncompiled(path)
    return Op(
        f"{name}/add",
        "aten.add",
        traffic=size * (count + 1),
        dtype=cost.dtype([], node.meta["val"]),
        module=name.rpartition(".")[0],
        phase="backward",
        signature=signature.call("aten.add", (node.meta["val"],) * count),
    )
