"""The orders among which PyTorch's compiler chooses to lower peak memory, by the rules of
`reorder_for_peak_memory` (torch/_inductor/memory.py, PyTorch 2.13).

Ops are its nodes, and tensors its buffers; a resident tensor is part of a parameter, which the
compiler does not free, and has no bytes.
"""

from __future__ import annotations

import heapq

import numpy as np

from situate.data.arrays import Order
from situate.data.problem import Problem


class Buffers:
    """Ops and the buffers between them, by index of the op in the program.

    Attributes:
        size: (m,) bytes of each tensor.
        allocated: bytes that each op allocates.
        reads, writes: tensors of each op.
        readers: ops that read each tensor.
        before, after: other ops that each op depends on, and that depend on it.
    """

    def __init__(self, problem: Problem) -> None:
        self.n = problem.n
        self.output = problem.output.astype(bool).tolist()
        self.place = np.argsort(np.array(problem.graph.program_order)).tolist()
        self.size: list[int] = np.where(problem.resident == 1, 0, problem.size).tolist()
        self.allocated = [0] * self.n
        self.reads: list[list[int]] = [[] for _ in range(self.n)]
        self.writes: list[list[int]] = [[] for _ in range(self.n)]
        self.readers: list[list[int]] = []
        before: list[dict[int, None]] = [{} for _ in range(self.n)]
        after: list[dict[int, None]] = [{} for _ in range(self.n)]
        starts = problem.consumer_start.tolist()
        for tensor, producer in enumerate(problem.producer.tolist()):
            readers = problem.consumers[starts[tensor] : starts[tensor + 1]].tolist()
            self.readers.append(readers)
            self.writes[producer].append(tensor)
            self.allocated[producer] += self.size[tensor]
            for reader in readers:
                self.reads[reader].append(tensor)
                before[reader][producer] = after[producer][reader] = None
        self.before, self.after = [list(ops) for ops in before], [list(ops) for ops in after]


def least_peak_first(buffers: Buffers) -> Order:
    """`topological_sort_lpmf`: of the ops that would not raise the peak the one after which least
    is live, or else the one that raises it least."""
    users = [len(r) + o for r, o in zip(buffers.readers, buffers.output, strict=True)]
    freed = [_freed_at_first(buffers, users, op) for op in range(buffers.n)]
    waits = [len(ops) for ops in buffers.before]
    ready = _Ready(buffers, freed, [op for op in range(buffers.n) if not waits[op]])
    live, order = 0, list[int]()
    peak = sum(s for s, output in zip(buffers.size, buffers.output, strict=True) if output)
    while len(order) < buffers.n:
        op = ready.pop(peak - live)
        order.append(op)
        live += buffers.allocated[op]
        peak = max(peak, live)
        live -= freed[op]
        for reader in buffers.after[op]:
            waits[reader] -= 1
            if not waits[reader]:
                ready.push(reader)
        for tensor in buffers.reads[op]:
            users[tensor] -= 1
            if users[tensor] == 1:
                # The one that is left frees it; those that ran are past it.
                for reader in buffers.readers[tensor]:
                    freed[reader] += buffers.size[tensor]
                    ready.push_again(reader)
    return np.array(order, np.int32)


def _freed_at_first(buffers: Buffers, users: list[int], op: int) -> int:
    """Bytes that an op frees before any ran: inputs that only it reads, and unread outputs."""
    read = sum(buffers.size[t] for t in buffers.reads[op] if users[t] == 1)
    return read + sum(buffers.size[t] for t in buffers.writes[op] if not users[t])


class _Ready:
    """Ops that may run next; least_peak_first says which does.

    Two heaps: ops that fit below the peak, by the bytes that they add, and those that
    raise it, by the bytes that they allocate. Entries that have been overtaken are passed over.
    """

    def __init__(self, buffers: Buffers, freed: list[int], ops: list[int]) -> None:
        self._buffers, self._freed = buffers, freed
        self._below: list[tuple[int, int, int]] = []
        self._above: list[tuple[int, int, int, int]] = []
        self._open: set[int] = set()
        for op in ops:
            self.push(op)

    def push(self, op: int) -> None:
        self._open.add(op)
        self.push_again(op)

    def push_again(self, op: int) -> None:
        if op in self._open:
            size = self._buffers.allocated[op]
            added = size - self._freed[op]
            heapq.heappush(self._above, (size, added, self._buffers.place[op], op))

    def pop(self, room: int) -> int:
        """The next op, with so many bytes between the live tensors and the peak."""
        while self._above and self._above[0][0] <= room:
            heapq.heappush(self._below, heapq.heappop(self._above)[1:])
        while self._below:
            added, _, op = heapq.heappop(self._below)
            if self._is_known(added, op):
                if self._buffers.allocated[op] <= room:
                    return self._take(op)
                self.push_again(op)
        while True:
            _, added, _, op = heapq.heappop(self._above)
            if self._is_known(added, op):
                return self._take(op)

    def _is_known(self, added: int, op: int) -> bool:
        """False for an entry of an op that ran, or that adds less by now."""
        return op in self._open and added == self._buffers.allocated[op] - self._freed[op]

    def _take(self, op: int) -> int:
        self._open.remove(op)
        return op


def breadth_first(buffers: Buffers) -> Order:
    """`topological_sort_bfs`: the op whose producers ran first, by the turns of all of them."""
    waits = [len(ops) for ops in buffers.before]
    turn = [0] * buffers.n
    ready = [(list[int](), buffers.place[op], op) for op in range(buffers.n) if not waits[op]]
    heapq.heapify(ready)
    order = list[int]()
    while ready:
        *_, op = heapq.heappop(ready)
        turn[op] = len(order)
        order.append(op)
        for reader in buffers.after[op]:
            waits[reader] -= 1
            if not waits[reader]:
                turns = sorted(turn[producer] for producer in buffers.before[reader])
                heapq.heappush(ready, (turns, buffers.place[reader], reader))
    return np.array(order, np.int32)


def depth_first(buffers: Buffers) -> Order:
    """`topological_sort_dfs`: every op after its producers, both visited by the bytes that they
    read and write."""

    def key(op: int) -> tuple[int, int]:
        read = sum(buffers.size[tensor] for tensor in buffers.reads[op])
        return buffers.allocated[op] + read, buffers.place[op]

    visited, order = [False] * buffers.n, list[int]()
    # The last one is visited first.
    stack = [(op, False) for op in sorted(range(buffers.n), key=key, reverse=True)]
    while stack:
        op, complete = stack.pop()
        if complete:
            order.append(op)
        elif not visited[op]:
            visited[op] = True
            stack.append((op, True))
            producers = sorted(buffers.before[op], key=key, reverse=True)
            stack += [(before, False) for before in producers]
    return np.array(order, np.int32)


ORDERS = {"lpmf": least_peak_first, "bfs": breadth_first, "dfs": depth_first}
"""By PyTorch's names."""
