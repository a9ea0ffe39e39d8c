"""Problems of least memory, and the properties of every bound on the order of one device."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from msgspec import structs

from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from tests.solvers.exhaustive import best_values
from tests.solvers.families import chain, devices

Bytes = Callable[[Problem], int]


def on(small: Graph, count: int, rules: str = "situate") -> Problem:
    return Problem(small, devices(*[1] * count), "memory", rules)  # type: ignore[arg-type]


def two_parts() -> Graph:
    """Two chains that meet, each of which holds one byte between ten and five."""
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(7))
    sizes, readers = (10, 1, 5, 10, 1, 5), (1, 2, 6, 4, 5, 6)
    tensors = (Tensor(f"t{j}", j, s, (readers[j],)) for j, s in enumerate(sizes))
    return Graph("two parts", ops, tuple(tensors))


def assert_devices_hold_no_less(bytes_of: Bytes, small: Graph, seed: int, brief: float) -> None:
    """Between them, one device to three hold the bounded bytes in every plan. Ops take from half a
    second to two, and none at all with probability `brief`."""
    draw, shares = np.random.default_rng(seed), [brief, *[(1 - brief) / 3] * 3]
    ops = tuple(
        structs.replace(op, seconds={"*": float(draw.choice([0.0, 0.5, 1.0, 2.0], p=shares))})
        for op in small.ops
    )
    for rules in ("situate", "regal", "doppler"):
        problem = on(dataclasses.replace(small, ops=ops), 1 + seed % 3, rules)
        best = best_values(problem)
        assert best is not None
        assert bytes_of(problem) + problem.persistent.sum() <= problem.d * best["memory"]


def assert_brief_ops_are_not_counted(bytes_of: Bytes) -> None:
    """All three ops may run at one instant, of which no interval sees the tensors."""
    brief = chain(3, size=9, seconds=[0.0, 0.0, 1.0])
    assert bytes_of(on(brief, 1)) == 0
    assert bytes_of(on(brief, 1, "regal")) == 18
