"""The number of training steps in an execution trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from situate.readers.execution_trace.memory import overwritten_storages
from situate.readers.execution_trace.nodes import Node
from situate.readers.execution_trace.operator_calls import Call

STEP = "ProfilerStep#"
"""Prefix that the profiler gives the name of a step if it has a schedule."""

UPDATE = "Optimizer.step#"
"""Prefix that PyTorch gives the name of an optimiser's step."""


def warnings(nodes: Sequence[Node], calls: Sequence[Call]) -> Iterator[str]:
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
