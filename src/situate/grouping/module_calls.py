"""The module call of each op, in graphs that call a module repeatedly.

The cell of an unrolled LSTM has the same path at every step. Counting distinguishes its calls: if
every op type of a module occurs a multiple of T times in the forward pass, the module has T calls.
Of c ops of one type, the i-th belongs to call i * T // c. The backward pass goes through the calls
from the last to the first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from math import gcd

from situate.data.graph import Graph, Op

Call = tuple[str, int]
"""Path of a module, and the number of the call from 0."""

HELD_KINDS = ("parameter", "buffer", "input")
"""Kinds of ops whose outputs exist before the step."""

SHARED = -1
"""Call number of ops shared by all calls of a module: its parameters and their updates."""


def calls(graph: Graph) -> list[Call | None]:
    """The call of every op, of the outermost repeated module; None outside of such modules. A
    container without ops of its own has no calls."""
    result: list[Call | None] = [None] * len(graph.ops)
    times = _times(graph.ops)
    if times:
        reads = _reads(graph)
        for path, members in _members(graph.ops, times).items():
            for op, number in _numbers(graph.ops, members, times[path], reads).items():
                result[op] = (path, number)
    return result


def _times(ops: Sequence[Op]) -> dict[str, int]:
    """The number of calls of each module with ops and several calls."""
    counts = Counter((op.module, op.kind) for op in ops if op.module and runs_forward(op))
    times: dict[str, int] = {}
    for (module, _), count in counts.items():
        for path in _paths(module):
            # A call may run several ops of one type, so the number of calls divides each count.
            times[path] = gcd(times.get(path, 0), count)
    running = {module for module, _ in counts}
    return {path: count for path, count in times.items() if count > 1 and path in running}


def _members(ops: Sequence[Op], times: dict[str, int]) -> dict[str, list[int]]:
    """By module that is called again and again, its ops; of nested ones the outermost."""
    members: dict[str, list[int]] = defaultdict(list)
    for j, op in enumerate(ops):
        path = next((path for path in _paths(op.module) if path in times), None)
        if path is not None:
            members[path].append(j)
    return members


def _numbers(
    ops: Sequence[Op], members: Sequence[int], times: int, reads: Sequence[Sequence[int]]
) -> dict[int, int]:
    """The call number of every member."""
    numbers = dict.fromkeys(members, SHARED)
    forward = [j for j in members if runs_forward(ops[j])]
    backward = [j for j in members if ops[j].phase == "backward"]
    # Each call has as many of these ops, in turn; the backward passes come in reverse.
    numbers.update((j, i * times // count) for j, i, count in _occurrences(ops, forward))
    call_numbers = {
        j: times - 1 - i * times // count
        for j, i, count in _occurrences(ops, backward)
        if count % times == 0
    }
    for j, last, following in _between(backward, call_numbers):
        begins = any(numbers.get(p) == following for p in reads[j] if ops[p].phase != "backward")
        numbers[j] = following if begins else last
    return numbers


def _between(
    backward: Sequence[int], call_numbers: dict[int, int]
) -> Iterator[tuple[int, int, int]]:
    """Every op with the range of its possible calls: from the nearest numbered op before it to the
    nearest one after it. Op types with more ops in one call than in others have none."""
    numbers = [call_numbers.get(j) for j in backward]
    last = list(accumulate(numbers, _latest))
    # From the end: the nearest number after each op.
    following = list(accumulate(reversed(numbers), _latest))[::-1]
    for j, a, b in zip(backward, last, following, strict=True):
        first, second = (a if a is not None else b), (b if b is not None else a)
        yield j, SHARED if first is None else first, SHARED if second is None else second


def _latest(last: int | None, now: int | None) -> int | None:
    return last if now is None else now


def _occurrences(ops: Sequence[Op], members: Iterable[int]) -> Iterator[tuple[int, int, int]]:
    """Every op, its number among the ops of its module and type, and their count."""
    keys = {j: (ops[j].module, ops[j].kind) for j in members}
    counts, so_far = Counter(keys.values()), Counter[tuple[str, str]]()
    for j, key in keys.items():
        yield j, so_far[key], counts[key]
        so_far[key] += 1


def _paths(module: str) -> Iterator[str]:
    """The module's path and the paths of the modules around it, the outermost first."""
    return accumulate(module.split("."), "{}.{}".format) if module else iter(())


def runs_forward(op: Op) -> bool:
    """True if the op computes in the forward pass, or if the graph has no phases."""
    return op.phase not in ("backward", "update") and op.kind not in HELD_KINDS


def _reads(graph: Graph) -> list[list[int]]:
    """By op, the producers of its inputs."""
    reads: list[list[int]] = [[] for _ in graph.ops]
    for tensor in graph.tensors:
        for consumer in tensor.consumers:
            reads[consumer].append(tensor.producer)
    return reads
