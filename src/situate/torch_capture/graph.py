"""The graph of a captured step: its ops in order, and the tensors and control edges between
them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from situate.data.graph import Graph, Op, Tensor
from situate.data.update_rule import WHOLE, UpdateRule, update_rule
from situate.errors import SituateError
from situate.readers.dataflow import unique
from situate.torch_capture import buffers, cost
from situate.torch_capture.flow import Storage, flow, keep_apart
from situate.torch_capture.garbage import without_collection
from situate.torch_capture.names import AFTER
from situate.torch_capture.ops import (
    AT,
    Draft,
    Step,
    WorkTable,
    buffer_updates,
    computations,
    sources,
    updates,
)
from situate.torch_capture.tracing import Trace
from situate.torch_capture.updates.gradient_clipping import clip_gradients
from situate.torch_capture.updates.recipes import hold_masters


@without_collection()
def to_graph(trace: Trace, name: str, optimizer: str, work_table: WorkTable | None = None) -> Graph:
    """The graph of a step. A step without gradients has no updates.

    Args:
        work_table: of earlier graphs of the same step.
    """
    step = to_step(trace, optimizer)
    return assemble(name, drafts(step, work_table), step, optimizer)


def to_step(trace: Trace, optimizer: str) -> Step:
    """A trace with its data flow. The trace changes: masters and clipping add nodes, and copies
    that must stay copies are marked.

    Raises:
        SituateError: the optimizer updates no parts of parameters, and the trace has some.
    """
    rule = update_rule(optimizer)
    if trace.parts and rule.kind in WHOLE:
        raise SituateError(
            f"optimizer {rule.kind}: its states are of whole parameters, and cuts divide them: "
            "leave --cuts out, or plan for adamw"
        )
    hold_masters(trace)
    if rule.clip is not None:
        clip_gradients(trace, rule.clip)
    # A returned clone of a buffer must not alias the buffer's next value.
    keep_apart(trace)
    number = {node: i for i, node in enumerate(trace.graph.nodes)}
    return Step(trace, buffers.fold(flow(trace)), number, rule.kind)


def drafts(step: Step, work_table: WorkTable | None = None) -> list[Draft]:
    """The drafts of the step's ops, in order of execution."""
    computed = computations(step, work_table or WorkTable())
    unsorted = [*sources(step), *computed, *buffer_updates(step), *updates(step)]
    return sorted(unsorted, key=lambda draft: draft.place)


def assemble(name: str, drafts: list[Draft], step: Step, optimizer: str) -> Graph:
    """The graph whose ops are the drafts. Each draft is joined to the readers of its outputs."""
    op_names = unique([draft.op.name for draft in drafts])
    consumers: dict[Storage, list[int]] = {}
    for i, draft in enumerate(drafts):
        for storage in draft.reads:
            consumers.setdefault(storage, []).append(i)
    ops = [msgspec.structs.replace(d.op, name=n) for d, n in zip(drafts, op_names, strict=True)]
    results = set(step.flow.results)
    tensors = []
    for i, draft in enumerate(drafts):
        for storage, size in draft.writes.items():
            tensor = Tensor(
                f"{op_names[i]}:{storage[1]}",
                i,
                size,
                tuple(consumers.get(storage, ())),
                output=storage in results,
                resident=draft.op.kind in ("parameter", "buffer"),
            )
            tensors.append(tensor)
    control = (*_control(drafts, consumers), *_late(drafts))
    warnings = cost.operator_warnings(step.flow.ops)
    return Graph(
        name,
        tuple(ops),
        tuple(tensors),
        control,
        source="pytorch",
        warnings=warnings,
        optimizer=_applied(update_rule(optimizer), ops),
        slices=step.trace.slices,
        recompute=step.trace.recompute,
        cuts=step.trace.cuts,
        cut_parameters=step.trace.cut_parameters,
    )


def _applied(rule: UpdateRule, ops: list[Op]) -> str:
    """The rule by which the ops update parameters; empty if none of them updates one."""
    return str(rule) if any(op.kind == f"update.{rule.kind}" for op in ops) else ""


def _control(drafts: list[Draft], consumers: dict[Storage, list[int]]) -> Iterator[tuple[int, int]]:
    """Edges to an op that overwrites a storage, from all other readers of the storage."""
    producer = {storage: i for i, draft in enumerate(drafts) for storage in draft.writes}
    producers = [[producer[storage] for storage in draft.reads] for draft in drafts]
    for i, draft in enumerate(drafts):
        if draft.overwrites is not None:
            readers = (j for j in consumers.get(draft.overwrites, ()) if j < i)
            yield from ((reader, i) for reader in readers_without_path(i, readers, producers))


def _late(drafts: list[Draft]) -> Iterator[tuple[int, int]]:
    """Edges that delay ops of a recomputed module until the module's backward pass is due."""
    index_of = {draft.node: i for i, draft in enumerate(drafts) if draft.place[1] == AT}
    for node, i in index_of.items():
        if AFTER in node.meta:
            yield index_of[node.meta[AFTER]], i


def readers_without_path(
    op: int, readers: Iterable[int], producers: Sequence[Sequence[int]]
) -> list[int]:
    """The readers from which no path of data leads to `op`, so that each needs a control edge.

    Args:
        op: the op that overwrites.
        readers: ops with lower numbers than `op`.
        producers: by op, the ops it reads from, all with lower numbers.
    """
    missing = set(readers)
    lowest = min(missing, default=op)
    visited, pending = {op}, [op]
    while pending and missing:
        # Ops below the lowest missing reader cannot lead to any reader, so the search never visits
        # them.
        if lowest not in missing:
            lowest = min(missing)
        for producer in producers[pending.pop()]:
            if producer >= lowest and producer not in visited:
                visited.add(producer)
                pending.append(producer)
                missing.discard(producer)
    return sorted(missing)
