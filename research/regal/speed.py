"""Seconds of a plan (REGAL, Table 3): methods with as many evaluations each, one after the other in
every repeat; and seconds of the network on a large graph."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

from benchmarks.lib.graphs import TWO_DEVICES
from benchmarks.lib.record import Row, Target, record
from research import RESULTS
from research.regal.data import trained
from research.regal.published import SECONDS
from situate import RULES, Cluster, Learning, Problem, solve
from situate.bench.families.regal import synthetic
from situate.bench.families.unequal import layered
from situate.host.machine import usable_cpus
from situate.solvers.evolutionary.regal.features import encoding
from situate.solvers.evolutionary.regal.regal import WEIGHTS
from situate.solvers.evolutionary.regal.weights import TrainedPolicy

WANTED_SECONDS, WANTED_NETWORK_SECONDS = 0.06, 0.1


def main(arguments: list[str] | None = None) -> None:
    """Plan, print and record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--weights", type=Path, default=WEIGHTS / "time-2-tuned-real.safetensors")
    parser.add_argument("--ops", type=int, default=150)
    parser.add_argument("--network-ops", type=int, default=5000)
    parser.add_argument("--evaluations", type=int, default=5000)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args(arguments)
    plans, network = list(_plans(options)), list(_network(options))
    tables = {
        "plans": plans,
        "network, one thread": network,
        "weights": [trained(options.weights.stem, options.weights)],
    }
    targets = [
        _target(f"regal, {options.ops} ops", WANTED_SECONDS, plans[-1]["seconds"]),
        _target(
            f"network, {options.network_ops} ops", WANTED_NETWORK_SECONDS, network[0]["seconds"]
        ),
    ]
    record("regal_speed", tables, targets, options=options, folder=RESULTS)


def _plans(options: argparse.Namespace) -> Iterator[Row]:
    """Medians of wall seconds, on all threads."""
    problem = Problem(synthetic("er", options.ops, 0), Cluster.identical(2), rules=RULES["regal"])
    learnings = {
        "partition_dfs": None,
        "local_search": None,
        "brkga": Learning(settings="paper"),
        "tuned_brkga": Learning(settings="tuned"),
        "regal": Learning(weights=options.weights),
    }

    def planned(method: str) -> Callable[[], object]:
        learning = learnings[method]
        return lambda: solve(problem, method, evaluations=options.evaluations, learning=learning)

    durations = _durations({method: planned(method) for method in learnings}, options.repeats)
    for method, seconds in durations.items():
        yield {
            "method": method,
            "threads": usable_cpus(),
            "seconds": statistics.median(seconds),
            "least": min(seconds),
            "paper_seconds": SECONDS[method],
        }


def _network(options: argparse.Namespace) -> Iterator[Row]:
    """The median of the policy's wall seconds, features aside."""
    torch.set_num_threads(1)
    graph = layered(options.network_ops, 0)
    problem = Problem(graph, TWO_DEVICES, rules=RULES["regal"])
    policy = TrainedPolicy(options.weights, problem)
    expected = np.full((problem.n, problem.d + 1), 0.5, np.float32)
    read = encoding(problem, expected, policy.settings.places)
    durations = _durations({"network": lambda: policy.actions(read, 0)}, options.repeats)["network"]
    yield {
        "ops": problem.n,
        "edges": len(read.source),
        "seconds": statistics.median(durations),
        "least": min(durations),
    }


def _durations(calls: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Wall seconds of each call, the first of each left out."""
    durations: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats + 1):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            durations[name].append(time.perf_counter() - begin)
    return {name: seconds[1:] for name, seconds in durations.items()}


def _target(what: str, wanted: float, measured: float) -> Target:
    text = f"{1e3 * measured:.0f} ms"
    return Target(what, f"at most {1e3 * wanted:.0f} ms", text, measured <= wanted)


if __name__ == "__main__":
    main()
