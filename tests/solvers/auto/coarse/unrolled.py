"""Unrolled networks of small cells, for tests of coarse problems."""

from __future__ import annotations

from itertools import product

from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from tests.solvers.families import devices

CELL = 6
"""Ops of a cell, one after the other."""


def unrolled(steps: int = 8, layers: int = 4) -> Problem:
    """A cell reads the cells of its layer one step before, and of the layer before at its step.
    Tensors within a cell are larger than those between cells.

    Each layer has a parameter, which its cells read, and an update, which reads its last cell and
    shares the parameter's device.
    """
    cells = list(product(range(steps), range(layers)))
    first = {cell: layers + CELL * number for number, cell in enumerate(cells)}
    end = layers + CELL * len(cells)
    ops = [
        Op(f"w{layer}", seconds={"*": 0.0}, persistent=9, group=f"{layer}")
        for layer in range(layers)
    ]
    tensors = [
        Tensor(
            f"w{layer}", layer, 4, tuple(first[step, layer] for step in range(steps)), resident=True
        )
        for layer in range(layers)
    ]
    for (step, layer), begin in first.items():
        after = (first.get((step + 1, layer), end + layer), first.get((step, layer + 1)))
        for op in range(begin, begin + CELL):
            ops.append(Op(f"{step}/{layer}/{op - begin}", seconds={"*": 1.0}))
            readers = after if op == begin + CELL - 1 else (op + 1,)
            read_by = tuple(reader for reader in readers if reader is not None)
            size = 2 if op == begin + CELL - 1 else 8
            tensors.append(Tensor(f"t{op}", op, size, read_by))
    ops += [Op(f"u{layer}", seconds={"*": 1.0}, group=f"{layer}") for layer in range(layers)]
    return Problem(Graph("unrolled", tuple(ops), tuple(tensors)), devices(1.0, 1.0))
