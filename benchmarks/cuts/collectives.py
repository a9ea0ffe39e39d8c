"""Exchanges of parts by transfers and additions, beside NCCL's collectives: alone and in steps.

    .venv/bin/python -m benchmarks.cuts.collectives

Schedules are those of the simulator, and steps those of `tensor_parallel` without a search, so the
figures do not depend on the machine.
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import Any

import numpy as np

from benchmarks.cuts.models import LARGE, llama
from benchmarks.cuts.nodes import graph
from benchmarks.lib.record import Row, Target, record
from situate import Cluster, Problem, solve
from situate.simulation.collectives import in_collectives
from situate.simulation.decoding import decode
from tests.simulation.exchanged import exchanged

KINDS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all")

CLUSTERS = ("h100-8", "a100-sxm-8", "a100-pcie-4")

SIZES = tuple(2**k for k in (16, 20, 22, 24, 26, 28))
"""Bytes of the whole tensor."""

STEPS = {
    "8 layers of Llama 7B": {"num_hidden_layers": 8},
    "8 layers of Llama 2 70B": {**LARGE, "num_hidden_layers": 8},
}
"""By name: sizes of the model; one sequence of 2,048 tokens."""


def exchange_row(kind: str, name: str, parts: int, size: int) -> Row:
    """Seconds of an exchange alone, from its sources to its last result."""
    problem = Problem(exchanged(kind, parts, size), Cluster.find(name))
    placement = np.array([op.part or 0 for op in problem.graph.ops], np.int32)
    schedule = decode(problem, placement, np.arange(problem.n, dtype=np.int32), "eager")
    step = in_collectives(problem, schedule)
    assert step is not None
    ops = problem.graph.ops
    ends = schedule.end[[op.name.startswith("source") for op in ops]]
    starts = schedule.start[[op.name.startswith("reader") for op in ops]]
    transfers, collective = float(starts.max() - ends.max()), step.seconds[0]
    return {
        "exchange": kind,
        "cluster": name,
        "parts": parts,
        "bytes": size,
        "transfers, s": transfers,
        "collective, s": collective,
        "ratio": transfers / collective,
    }


def step_row(title: str) -> Row:
    """The step of a model in eight parts on h100-8, both ways."""
    problem = Problem(graph(llama(STEPS[title], 1), 0), Cluster.find("h100-8"))
    plan = solve(problem, "tensor_parallel")
    assert plan.schedule is not None
    step = in_collectives(problem, plan.schedule)
    assert step is not None
    step.schedule.verify(step.problem, allow_overflow=True)
    row: dict[str, Any] = {
        "step": title,
        "ops": problem.n,
        "transfers, s": plan.value,
        "collectives, s": float(step.schedule.makespan),
        "ratio": plan.value / float(step.schedule.makespan),
        "in collectives, s": sum(step.seconds),
        **dict(sorted(Counter(step.kinds).items())),
    }
    print(row, flush=True)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options = parser.parse_args()
    rows = [
        exchange_row(kind, name, parts, size)
        for name in CLUSTERS
        for parts in (2, 4, 8)
        if parts <= len(Cluster.find(name).devices) - 1
        for kind in KINDS
        for size in SIZES
    ]
    steps = [step_row(title) for title in STEPS]
    targets = [
        Target(
            str(one["step"]),
            "transfers within 15 % of collectives",
            f"{one['transfers, s']:.4g} s, collectives {one['collectives, s']:.4g} s",
            abs(one["ratio"] - 1) < 0.15,
        )
        for one in steps
    ]
    record("cuts_collectives", {"exchanges": rows, "steps": steps}, targets, options=options)


if __name__ == "__main__":
    main()
