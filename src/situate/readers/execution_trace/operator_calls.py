"""The outermost operators of an execution trace, which become its ops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from situate.readers.execution_trace.nodes import Node, Value

PHASES = {"Optimizer.": "update", "autograd::engine::evaluate_function": "backward"}
"""Phases by the prefix of the name of a node around an op."""

NO_GPU = frozenset({"cpu", "meta", ""})
"""Types of devices that launch no kernels."""


@dataclass(frozen=True)
class Call:
    """An outermost operator, and all nodes inside it."""

    node: Node
    phase: str
    inside: list[Node]

    @property
    def values(self) -> tuple[Value, ...]:
        return *self.node.inputs, *self.node.outputs

    @property
    def is_on_gpu(self) -> bool:
        return any(value.device.partition(":")[0] not in NO_GPU for value in self.values)


def calls_of(nodes: Sequence[Node]) -> list[Call]:
    """The outermost operators, in the order of their beginnings."""
    calls: dict[int, Call] = {}
    outermost: dict[int, int] = {}
    phases: dict[int, str] = {}
    for node in nodes:
        phase = phases[node.id] = _phase(node.name) or phases.get(node.parent, "")
        if (outer := outermost.get(node.parent)) is not None:
            outermost[node.id] = outer
            calls[outer].inside.append(node)
        elif node.is_operator:
            outermost[node.id] = node.id
            calls[node.id] = Call(node, phase, [])
    return _with_phases(list(calls.values()))


def _with_phases(calls: Sequence[Call]) -> list[Call]:
    """Calls with a phase where no node states one.

    It is forward, or backward on the thread that autograd starts; unknown without a backward pass.
    """
    if not any(call.phase == "backward" for call in calls):
        return list(calls)
    first: dict[int, str] = {}
    for call in calls:
        first.setdefault(call.node.thread, call.phase)
    usual = {t: "backward" if phase == "backward" else "forward" for t, phase in first.items()}
    return [replace(call, phase=call.phase or usual[call.node.thread]) for call in calls]


def _phase(name: str) -> str:
    return next((phase for start, phase in PHASES.items() if name.startswith(start)), "")
