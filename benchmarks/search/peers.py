"""The placement that accelerate makes of a model, and situate's, by situate's simulator.

accelerate knows the bytes of modules and nothing of time or activations: it is the tool
that people use today, not a rival scheduler. Needs torch, transformers and accelerate.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np

import situate
from benchmarks.lib.record import Row, Target, record
from situate.bench.peers.accelerate import DeviceMap, device_map, placement
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import decode

MODELS = ("gpt2:inference", "gpt2", "bert:inference", "bert", "llama_7b:inference", "llama_7b")
CLUSTERS = ("k80-4", "unequal-24-12", "a100-pcie-4")


def main(arguments: list[str] | None = None) -> None:
    """Plan by both, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--clusters", nargs="+", default=list(CLUSTERS))
    parser.add_argument("--time-limit", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rows = [row for model in options.models for row in _rows(model, options)]
    worse = [f"{row['model']} on {row['cluster']}" for row in rows if not row["ours_no_worse"]]
    measured = "; ".join(worse) or f"0 of {len(rows)}"
    target = Target("accelerate's placement", "never better than auto", measured, not worse)
    record("peers", {"accelerate's device map": rows}, [target], options=options)


def _rows(model: str, options: argparse.Namespace) -> Iterator[Row]:
    graph = situate.zoo.load(model)
    for cluster in options.clusters:
        try:
            problem = situate.Problem(graph, situate.Cluster.preset(cluster))
        except situate.SituateError as error:
            print(f"{model} on {cluster}: left out: {error}")
            continue
        yield _row(model, problem, options)


def _row(model: str, problem: situate.Problem, options: argparse.Namespace) -> Row:
    begin = time.perf_counter()
    devices = device_map(problem)
    seconds = time.perf_counter() - begin
    theirs = _schedule(problem, devices)
    fits = theirs.feasible(problem)
    ours = situate.solve(problem, time_limit=options.time_limit, seed=options.seed)
    return {
        "model": model,
        "cluster": problem.cluster.name,
        "accelerate_seconds": seconds,
        "accelerate_makespan": theirs.makespan,
        "accelerate_fits": fits,
        "our_makespan": ours.makespan,
        "our_fits": ours.feasible,
        "accelerate_over_ours": theirs.makespan / ours.makespan if fits else None,
        "ours_no_worse": _score(ours.schedule, problem) <= _score(theirs, problem),
    }


def _score(schedule: Schedule, problem: situate.Problem) -> tuple[int, float]:
    return int(schedule.overflow(problem).sum()), schedule.makespan


def _schedule(problem: situate.Problem, devices: DeviceMap) -> Schedule:
    order = np.array(problem.graph.order, np.int32)
    return decode(problem, placement(problem, devices), order, "eager")


if __name__ == "__main__":
    main()
