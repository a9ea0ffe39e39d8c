"""PyTorch's execution traces, alone or with the Kineto trace of the same run.
See docs/formats/execution-trace.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec

from situate.data.graph import Graph, Op
from situate.errors import ReadError
from situate.files.strict_json import Keys
from situate.readers import kineto
from situate.readers.execution_trace import times, work
from situate.readers.execution_trace.calls import Call, calls_of, step_warnings
from situate.readers.execution_trace.memory import Memory, overwritten_storages
from situate.readers.execution_trace.nodes import ALLOCATIONS, Node, Value, nodes


def recognises(data: bytes, keys: Keys) -> bool:
    """True if the content is a JSON object with a schema's version and nodes."""
    return keys.keys() >= {"schema", "pid", "nodes"}


def read(data: bytes, name: str, measured: bytes | None = None) -> Graph:
    """The graph: an op per outermost operator that is no view and no mere allocation.

    Args:
        data: the execution trace.
        name: of the graph.
        measured: the Kineto trace of the same run; without it ops have work and no seconds.

    Raises:
        ReadError: a node that is not as it should be, no operators, or traces of different runs.
        GraphError: the graph breaks its own rules.
    """
    trace_nodes = nodes(data)
    calls = calls_of(trace_nodes)
    if not calls:
        raise ReadError("has no operators: nodes with an op_schema")
    profile = None if measured is None else kineto.profile(measured)
    seconds = {} if profile is None else _seconds(trace_nodes, calls, profile)
    memory = Memory()
    for call in calls:
        _run(memory, call, seconds.get(call.node.id))
    ops, tensors, control = memory.flow.finish()
    odd = profile.warnings if profile else ()
    untimed = _warnings(len(calls) - len(seconds), len(calls))
    warnings = (*step_warnings(trace_nodes, calls), *odd, *untimed)
    return Graph(name, ops, tensors, control, source="execution-trace", warnings=warnings)


def _seconds(
    trace_nodes: Sequence[Node], calls: Sequence[Call], profile: kineto.Profile
) -> dict[int, dict[str, float]]:
    """Seconds by id of the outermost operators in the profile."""
    if not profile.kernels and any(call.is_on_gpu for call in calls):
        raise ReadError(
            "the ops ran on a GPU and the Kineto trace has no kernels: record it with "
            "ProfilerActivity.CUDA too"
        )
    timed = times.calls(trace_nodes, profile)
    return {
        call.node.id: times.seconds(timed[call.node.id], profile, call.is_on_gpu)
        for call in calls
        if call.node.id in timed
    }


def _run(memory: Memory, call: Call, seconds: Mapping[str, float] | None) -> None:
    node = call.node
    overwritten = overwritten_storages(node.schema, node.name, node.inputs)
    if node.name in ALLOCATIONS:
        memory.allocate(node.outputs)
    # An op that launches kernels does work, even if it makes no memory of its own.
    elif not overwritten and _is_view(node) and not (seconds or {}).get("accelerator"):
        memory.touch(node.inputs)
    elif count := _elements(node):
        _run_elements(memory, call, seconds, count)
    else:
        memory.run(_op(call, seconds), node.inputs, node.outputs, overwritten)


def _is_view(node: Node) -> bool:
    """True if the memory of every output is an input's."""
    storages = {value.storage for value in node.inputs}
    return bool(node.outputs) and all(value.storage in storages for value in node.outputs)


def _op(call: Call, seconds: Mapping[str, float] | None) -> Op:
    return Op(
        f"{call.node.name}@{call.node.id}",
        kind=call.node.name.replace("::", "."),
        flops=work.flops(call.node, call.inside),
        traffic=work.traffic(call.values),
        dtype=work.dtype(call.node),
        seconds=None if seconds is None else dict(seconds),
        phase=call.phase,
    )


def _elements(node: Node) -> int:
    """The number of tensors an operator on lists of tensors takes one by one; 0 for all others."""
    if not node.name.startswith(("aten::_foreach_", "aten::_fused_")):
        return 0
    lengths: dict[int, int] = {}
    for value in node.inputs:
        if value.entry is not None:
            lengths[value.argument] = value.entry + 1
    return next(iter(lengths.values())) if len(set(lengths.values())) == 1 else 0


def _run_elements(
    memory: Memory, call: Call, seconds: Mapping[str, float] | None, count: int
) -> None:
    """Run an op for every tensor of the lists, so that it can run on the tensor's device.

    The node's time is divided in proportion to bytes.
    """
    node = call.node
    inputs = _by_place(node.inputs, count)
    outputs = _by_place([replace(v, entry=_place(v)) for v in node.outputs], count)
    total = sum(map(work.traffic, (*inputs, *outputs))) or 1
    shared = tuple(value for value in node.inputs if value.entry is None)
    for place, (element_inputs, element_outputs) in enumerate(zip(inputs, outputs, strict=True)):
        share = work.traffic((*element_inputs, *element_outputs)) / total
        part = replace(node, inputs=(*element_inputs, *shared), outputs=tuple(element_outputs))
        own = None if seconds is None else {key: time * share for key, time in seconds.items()}
        op = _op(replace(call, node=part, inside=[]), own)
        op = msgspec.structs.replace(op, name=f"{op.name}[{place}]")
        memory.run(
            op,
            part.inputs,
            element_outputs,
            overwritten_storages(node.schema, node.name, part.inputs),
        )


def _by_place(values: Iterable[Value], count: int) -> list[list[Value]]:
    """The values by their place in lists of `count` tensors."""
    places: list[list[Value]] = [[] for _ in range(count)]
    for value in values:
        if value.entry is not None and value.entry < count:
            places[value.entry].append(value)
    return places


def _place(value: Value) -> int:
    """A result's place in the list of all, which the file has as one list or as single results."""
    return value.argument if value.entry is None else value.entry


def _warnings(untimed: int, calls: int) -> Iterator[str]:
    if untimed == calls:
        yield (
            "an execution trace has no times, ops take the roofline's: give the Kineto trace of "
            "the same run too, as trace.json+kineto.json"
        )
    elif untimed:
        yield f"{untimed} operators are not in the Kineto trace: they take the roofline's time"
