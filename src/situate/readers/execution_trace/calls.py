"""The outermost operators of an execution trace, which become its ops, and the steps in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from situate.readers.execution_trace.memory import overwritten_storages
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
    # A thread that autograd starts begins with an op of the backward pass.
    usual = {t: "backward" if phase == "backward" else "forward" for t, phase in first.items()}
    return [replace(call, phase=call.phase or usual[call.node.thread]) for call in calls]


def _phase(name: str) -> str:
    return next((phase for start, phase in PHASES.items() if name.startswith(start)), "")


# The number of training steps in an execution trace.
STEP = "ProfilerStep#"
"""Prefix that the profiler gives the name of a step if it has a schedule."""

UPDATE = "Optimizer.step#"
"""Prefix that PyTorch gives the name of an optimiser's step."""


def step_warnings(nodes: Sequence[Node], calls: Sequence[Call]) -> Iterator[str]:
    """A warning about several steps, by the profiler's steps or by repeated optimiser updates."""
    steps = [node.name for node in nodes if node.name.startswith(STEP)]
    if len(steps) > 1:
        yield f"holds {len(steps)} steps, {steps[0]} to {steps[-1]}, which are planned as one"
    elif (count := _updates(nodes, calls)) > 1:
        yield f"an optimizer updates the same tensors {count} times: the steps are planned as one"


def _updates(nodes: Sequence[Node], calls: Sequence[Call]) -> int:
    """The number of times one optimiser ran.

    Two optimisers of one step overwrite different tensors, except for memory that the first freed.
    """
    groups: list[tuple[set[int], int]] = []
    for memory in _overwritten(nodes, calls):
        for place, (group, count) in enumerate(groups):
            # Mostly the same memory means the same optimiser again.
            if 2 * len(group & memory) > len(memory):
                groups[place] = group | memory, count + 1
                break
        else:
            groups.append((memory, 1))
    return max((count for _, count in groups), default=0)


def _overwritten(nodes: Sequence[Node], calls: Sequence[Call]) -> Iterator[set[int]]:
    """The memory that each optimiser's step overwrites."""
    inside: dict[int, int] = {}
    memory: dict[int, set[int]] = {}
    for node in nodes:
        inside[node.id] = node.id if node.name.startswith(UPDATE) else inside.get(node.parent, -1)
    for call in calls:
        if (step := inside[call.node.id]) >= 0:
            storages = overwritten_storages(call.node.schema, call.node.name, call.node.inputs)
            memory.setdefault(step, set()).update(storages)
    yield from filter(None, memory.values())
