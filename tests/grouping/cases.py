"""Problems that grouping has to get right, small and of every kind."""

from __future__ import annotations

from functools import cache

import numpy as np

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import BYTES_LIMIT, Graph, Op, Tensor
from situate.data.problem import Problem
from tests.solvers import families

TWO_KINDS = Cluster(
    "two kinds",
    (Device("cpu", kind="cpu"), Device("x1", kind="x1"), Device("x2", kind="x1")),
    (Link("*", "*", 1.0),),
)


def pinned() -> Problem:
    """Every third op of a chain is pinned to the CPU, every fifth to one accelerator."""
    chain = families.chain(16)
    pins = ["cpu" if j % 3 == 0 else "x2" if j % 5 == 0 else None for j in range(16)]
    ops = tuple(
        Op(op.name, seconds=op.seconds, device=pin) for op, pin in zip(chain.ops, pins, strict=True)
    )
    return Problem(Graph("pinned", ops, chain.tensors), TWO_KINDS)


def colocated() -> Problem:
    """Ops j and j + 6 of a chain of twelve share a device."""
    chain = families.chain(12)
    ops = tuple(
        Op(op.name, seconds=op.seconds, group=f"g{j % 6}") for j, op in enumerate(chain.ops)
    )
    return Problem(Graph("colocated", ops, chain.tensors), families.devices(1, 1))


def huge() -> Problem:
    """Sixteen pairs of ops; each pair exchanges 2^57 bytes, by tensors of the largest size."""
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(32))
    tensors = tuple(
        Tensor(f"t{j}.{i}", 2 * j, BYTES_LIMIT, (2 * j + 1,)) for j in range(16) for i in range(16)
    )
    return Problem(Graph("huge", ops, tensors), families.devices(1, 1))


def weightless() -> Problem:
    """Layers that hand over nothing but signals."""
    return Problem(families.layered(6, 5, 7, size=0), families.devices(1, 1))


def controlled() -> Problem:
    """No tensors, control edges alone."""
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(9))
    edges = tuple((j, j + 1) for j in range(8))
    return Problem(Graph("controlled", ops, control=edges), families.devices(1, 1))


@cache
def problems() -> dict[str, Problem]:
    """By name."""
    return {
        **{name: families.problem(name) for name in families.families()},
        "pinned": pinned(),
        "colocated": colocated(),
        "huge": huge(),
        "weightless": weightless(),
        "controlled": controlled(),
    }


def flows(problem: Problem) -> dict[tuple[int, int], int]:
    """Bytes between units, the slow and obvious way."""
    result: dict[tuple[int, int], int] = {}
    for tensor in range(len(problem.size)):
        consumers = problem.consumers[slice(*problem.consumer_start[tensor : tensor + 2])]
        source = int(problem.unit[problem.producer[tensor]])
        for target in {int(problem.unit[op]) for op in consumers} - {source}:
            for pair in ((source, target), (target, source)):
                result[pair] = result.get(pair, 0) + int(problem.size[tensor])
    return result


def random_placement(allowed: np.ndarray, seed: int) -> np.ndarray:
    """Devices (1, groups), each drawn from those allowed."""
    rng = np.random.default_rng(seed)
    draws = [rng.choice(np.flatnonzero(row)) for row in allowed]
    return np.array([draws], np.int32)
