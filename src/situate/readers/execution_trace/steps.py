"""The number of training steps in an execution trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from situate.readers.execution_trace.memory import written
from situate.readers.execution_trace.nodes import Node
from situate.readers.execution_trace.operator_calls import Call

STEP = "ProfilerStep#"
"""Prefix that the profiler gives the name of a step if it has a schedule."""

UPDATE = "Optimizer.step#"
"""Prefix that PyTorch gives the name of an optimiser's step."""


def warnings(found: Sequence[Node], calls: Sequence[Call]) -> Iterator[str]:
    """That there are several: by the profiler's word, else by what optimisers update again."""
    steps = [node.name for node in found if node.name.startswith(STEP)]
    if len(steps) > 1:
        yield f"holds {len(steps)} steps, {steps[0]} to {steps[-1]}, which are planned as one"
    elif (count := _updates(found, calls)) > 1:
        yield f"an optimizer updates the same tensors {count} times: the steps are planned as one"


def _updates(found: Sequence[Node], calls: Sequence[Call]) -> int:
    """The number of times one optimiser ran. Two of one step overwrite different tensors, but for
    memory that the first let go of."""
    groups: list[tuple[set[int], int]] = []
    for memory in _overwritten(found, calls):
        for place, (known, count) in enumerate(groups):
            if 2 * len(known & memory) > len(memory):
                groups[place] = known | memory, count + 1
                break
        else:
            groups.append((memory, 1))
    return max((count for _, count in groups), default=0)


def _overwritten(found: Sequence[Node], calls: Sequence[Call]) -> Iterator[set[int]]:
    """The memory that each optimiser's step overwrites."""
    inside: dict[int, int] = {}
    memory: dict[int, set[int]] = {}
    for node in found:
        inside[node.id] = node.id if node.name.startswith(UPDATE) else inside.get(node.parent, -1)
    for call in calls:
        if (step := inside[call.node.id]) >= 0:
            storages = written(call.node.schema, call.node.name, call.node.inputs)
            memory.setdefault(step, set()).update(storages)
    yield from filter(None, memory.values())
