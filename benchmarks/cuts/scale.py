"""The choice of cuts for large models on H100s: Llamas and a mixture of 64 experts, with one
sequence and with as many as people train on.

    .venv/bin/python -m benchmarks.cuts.scale [--time-limit 10] [--jobs 1] [llama_7b:h100-8 ...]

The capture does not count. Seconds are of the processor, because others may use the machine too;
`wall, s` is the time that passed. `llama_3_8b@8x4096` trains on eight sequences of 4,096 tokens.
`h100-8x8` is `h100-2x8` with eight nodes.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import msgspec

from benchmarks.cuts.by_hand import best_by_hand
from benchmarks.cuts.models import step_of
from benchmarks.lib.record import Row, Target, record
from situate import Cluster, Problem, solve
from situate.data.cluster import Link
from situate.solvers.cut_choice import CutStep, choose_cuts

CASES = (
    "llama_7b:h100-8",
    "llama_70b:h100-2x8",
    "experts_64:h100-8",
    "llama_7b:h100-8x8",
    "llama_3_8b@8x4096:h100-8",
    "llama_3_8b@16x2048:h100-8",
    "llama_3_8b@16x4096:h100-8x8",
    "llama_70b@8x2048:h100-2x8",
    "llama_70b@16x2048:h100-8x8",
    "experts_64@16x4096:h100-8",
)

MOST_SECONDS, MOST_GIGABYTES = 60, 4


def cluster(name: str) -> Cluster:
    """A preset, or `h100-8x8`."""
    if name != "h100-8x8":
        return Cluster.find(name)
    two = Cluster.find("h100-2x8")
    devices = []
    for node in range(8):
        for device in two.devices:
            if device.name.startswith("node0"):
                own = device.name.replace("node0", f"node{node}")
                devices.append(msgspec.structs.replace(device, name=own))
    # Patterns of node 0 hold in each node; those between nodes 0 and 1 between any two.
    links = [Link("*", "*", bandwidth=45e9, latency=15e-6)]
    for node in range(8):
        other = Link(f"node{node}-*", "*", 45e9, 15e-6, f"node{node} nic", both=False)
        links.append(other)
    for node in range(8):
        links += [
            msgspec.structs.replace(
                link,
                source=link.source.replace("node0", f"node{node}"),
                target=link.target.replace("node0", f"node{node}"),
            )
            for link in two.links
            if link.source.startswith("node0") and link.target.startswith("node0")
        ]
    return replace(two, name=name, devices=tuple(devices), links=tuple(links))


def row(case: str, seconds: float) -> Row:
    """The choice for a model and a cluster, a plan by `auto`, and the best layout by hand."""
    model, _, devices = case.partition(":")
    traced, machine = step_of(model), cluster(devices)
    step = CutStep.of(traced, lambda graph: Problem(graph, machine))
    begin, wall = time.process_time(), time.perf_counter()
    choice = choose_cuts(step)
    chosen = time.process_time() - begin
    result = solve(choice.problem, time_limit=seconds)
    graph = choice.problem.graph
    measured: Row = {
        "model": model,
        "cluster": devices,
        "slices": str(graph.slices) if graph.slices else None,
        "cuts": str(graph.cuts) if graph.cuts else None,
        "ops": choice.problem.n,
        "choice, s": round(chosen, 1),
        "planning, s": round(time.process_time() - begin, 1),
        "wall, s": round(time.perf_counter() - wall, 1),
        "memory, GB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
        "step, s": result.value,
        "fits": result.feasible,
        "gap in these cuts, %": 100 * result.gap if result.gap is not None else None,
        "gap over all cuts, %": 100 * (result.value / choice.least - 1) if choice.least else None,
    }
    best = best_by_hand(step)
    name, plan = best or (None, None)
    measured |= {"best by hand": name, "by hand, s": None if plan is None else plan.value}
    print(measured, flush=True)
    return measured


def _targets(row: Row) -> Iterator[Target]:
    name = f"{row['model']} on {row['cluster']}"
    spent, used = row["planning, s"], row["memory, GB"]
    within = spent <= MOST_SECONDS and used <= MOST_GIGABYTES
    goal = f"{MOST_SECONDS} s and {MOST_GIGABYTES} GB"
    yield Target(name, goal, f"{spent} s and {used} GB", within)
    own, hand = row["step, s"], row["by hand, s"]
    if hand is not None:
        shorter = row["fits"] and own <= hand
        yield Target(name, f"at most {hand:.4g} s, by hand", f"{own:.4g} s", shorter)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--time-limit", type=float, default=10.0)
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time")
    options = parser.parse_args()
    # Each case has a process of its own, so that the memory is of this case alone.
    context = get_context("spawn")
    with ProcessPoolExecutor(options.jobs, context, max_tasks_per_child=1) as pool:
        seconds = [options.time_limit] * len(options.cases)
        rows = list(pool.map(row, options.cases, seconds))
    targets = [target for one in rows for target in _targets(one)]
    record("cuts_scale", {"choices": rows}, targets, options=options)


if __name__ == "__main__":
    main()
