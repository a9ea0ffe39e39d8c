"""Steps on several nodes by hand: tensor parallelism within a node, and a pipeline over nodes.

    .venv/bin/python -m benchmarks.cuts.nodes

Plans are those of `tensor_parallel`, without a search, so they do not depend on the machine.
"""

from __future__ import annotations

import argparse

from benchmarks.cuts.models import LARGE, Build, llama
from benchmarks.cuts.scale import cluster
from benchmarks.lib.record import Row, Target, record
from situate import Graph, Problem, solve
from situate.data.cuts import parse_cuts
from situate.data.slices import Slices
from situate.torch_capture import trace_step

CUTS = parse_cuts(["heads=8", "features=8", "vocabulary=8", "sequence=8"])

ONE_NODE = "h100-8"

CASES: dict[str, tuple[Build, int, str]] = {
    "Llama 2 70B, one sequence": (llama({**LARGE, "num_hidden_layers": 80}, 1), 0, "h100-2x8"),
    "Llama 7B, one sequence": (llama({}, 1), 0, "h100-8x8"),
    "8 layers of Llama 7B, 8 sequences in slices": (
        llama({"num_hidden_layers": 8}, 8),
        8,
        "h100-2x8",
    ),
}
"""By name: the model, its slices and the cluster."""


def graph(build: Build, slices: int) -> Graph:
    """The step in parts."""
    cut = Slices((1,) * slices) if slices else None
    return trace_step(build, "adamw", "step", cut, packages=("transformers",)).graph((), CUTS)


def row(name: str) -> Row:
    """The plans of a step on one node and on all of them."""
    build, slices, machine = CASES[name]
    step = graph(build, slices)
    one = solve(Problem(step, cluster(ONE_NODE)), "tensor_parallel")
    every = solve(Problem(step, cluster(machine)), "tensor_parallel")
    nodes = {device.partition("-")[0] for device in every.devices_used}
    measured = {
        "step": name,
        "cluster": machine,
        "ops": every.problem.n,
        "one node, s": one.value,
        "one node fits": one.feasible,
        "all nodes, s": every.value,
        "nodes in use": len(nodes),
    }
    print(measured, flush=True)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options = parser.parse_args()
    rows = [row(name) for name in CASES]
    targets = [
        Target(
            str(one["step"]),
            "less than one node",
            f"{one['all nodes, s']:.4g} s, one node {one['one node, s']:.4g} s",
            one["all nodes, s"] < one["one node, s"],
        )
        for one in rows
    ]
    record("cuts_nodes", {"steps": rows}, targets, options=options)


if __name__ == "__main__":
    main()
