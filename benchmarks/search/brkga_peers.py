"""BRKGA beside other implementations of it: at equal evaluations, in the same run.

The peers are pymoo (J. Blank and K. Deb, IEEE Access 8, 2020) and brkga-mp-ipr (C. E. Andrade et
al., EJOR 289, 2021), both in Python, with the same settings and a serial decoder in Python, which
is checked against the core's. To have them:

    python -m pip install --target FOLDER pymoo brkga-mp-ipr
    PYTHONPATH=FOLDER python -m benchmarks.search.brkga_peers
"""

from __future__ import annotations

import argparse
import heapq
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np

from benchmarks.lib.record import Row, Target, record
from situate.bench.families.regal import MODELS, synthetic
from situate.bench.peers import brkga
from situate.bench.peers.brkga import Keys
from situate.bounds.lower_bound import lower_bound
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.host.machine import usable_cpus
from situate.simulation.simulator import Simulator
from situate.solvers.evolutionary.brkga import BRKGA, evolution

SETTINGS = BRKGA["paper"]
SECONDS_WANTED = 0.025
FASTER_WANTED = 50

Decode = Callable[[Keys], float]
Search = Callable[[Decode, int, int, int], float]
"""From a decoder, the number of keys, the evaluations and a seed to the best value."""


def main(arguments: list[str] | None = None) -> None:
    """Breed with every implementation on every graph, print and record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ops", type=int, default=150)
    parser.add_argument("--evaluations", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=15, help="of situate's, the least counts")
    options = parser.parse_args(arguments)
    runs = [
        row
        for model in MODELS
        for seed in range(options.seeds)
        for row in _runs(model, seed, options)
    ]
    summary = _summary(runs)
    record(
        "brkga_peers", {"means": summary, "runs": runs}, list(_targets(summary)), options=options
    )


def _runs(model: str, seed: int, options: argparse.Namespace) -> Iterator[Row]:
    evaluations = options.evaluations
    problem = Problem(synthetic(model, options.ops, seed), Cluster.identical(2))
    simulator, decode, bound = Simulator(problem), SerialDecoder(problem), lower_bound(problem)
    for threads in sorted({1, 2, usable_cpus()}):
        again = [
            _timed(_core, simulator, evaluations, seed, threads) for _ in range(options.repeats)
        ]
        wall, cpu, value = np.min(again, axis=0)
        yield _row(f"situate, {threads} threads", model, seed, wall, cpu, value / bound - 1)
    _check(simulator, decode, evaluations, seed)
    for name, search in _peers().items():
        keys = problem.n * 3 + len(problem.producer) * 2
        wall, cpu, value = _timed(search, decode, keys, evaluations, seed)
        yield _row(name, model, seed, wall, cpu, value / bound - 1)


def _row(who: str, model: str, seed: int, wall: float, cpu: float, gap: float) -> Row:
    return {
        "implementation": who,
        "graph": f"{model} {seed}",
        "wall_seconds": wall,
        "cpu_seconds": cpu,
        "gap_to_the_bound_%": 100 * gap,
    }


def _timed(search: Callable[..., float], *arguments: Any) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds, value."""
    begin, cpu = time.perf_counter(), time.process_time()
    value = search(*arguments)
    return time.perf_counter() - begin, time.process_time() - cpu, value


def _core(simulator: Simulator, evaluations: int, seed: int, threads: int) -> float:
    population = evolution(simulator, SETTINGS, goal="time", seed=seed)
    population.run(evaluations, inf, threads)
    return population.best()[1]


def _check(simulator: Simulator, decode: SerialDecoder, evaluations: int, seed: int) -> None:
    """Stop unless the Python decoder and the core decode chromosomes alike."""
    population = evolution(simulator, SETTINGS, goal="time", seed=seed)
    population.run(evaluations, inf, usable_cpus())
    keys, _, values = population.population()
    for chromosome, value in zip(keys, values, strict=True):
        if decode(chromosome) != value:
            raise RuntimeError("the Python decoder and the core's differ")


class SerialDecoder:
    """From a chromosome to a makespan on two devices with blocking transfers (REGAL, A.5).

    Args:
        problem: of n ops; t tensors, those of control edges among them, are sent.
    """

    def __init__(self, problem: Problem) -> None:
        self.n = problem.n
        self.seconds = problem.seconds.tolist()
        # The links of equal devices take no time: control edges have none of their own.
        self.transfer = np.nan_to_num(problem.transfer_seconds, nan=0.0).tolist()
        start, consumers = problem.consumer_start.tolist(), problem.consumers.tolist()
        self.readers = [consumers[a:b] for a, b in pairwise(start)]
        self.outputs: list[list[int]] = [[] for _ in range(self.n)]
        self.needs = [0] * self.n
        for tensor, producer in enumerate(problem.producer.tolist()):
            self.outputs[producer].append(tensor)
            for reader in self.readers[tensor]:
                self.needs[reader] += 1

    def __call__(self, keys: Keys) -> float:
        n, values = self.n, keys.tolist()
        device = [int(values[2 * op + 1] > values[2 * op]) for op in range(n)]
        urgent, of_transfers = values[2 * n : 3 * n], values[3 * n :]
        waits, arrival, free = self.needs.copy(), [0.0] * n, [0.0, 0.0]
        # Of one priority ops go before transfers, then the lower index: items are numbered so.
        queue = [(-urgent[op], op) for op in range(n) if waits[op] == 0]
        heapq.heapify(queue)

        def arrive(reader: int, at: float) -> None:
            arrival[reader] = max(arrival[reader], at)
            waits[reader] -= 1
            if waits[reader] == 0:
                heapq.heappush(queue, (-urgent[reader], reader))

        while queue:
            item = heapq.heappop(queue)[1]
            if item >= n:
                tensor, target = divmod(item - n, 2)
                free[0] = free[1] = max(free) + self.transfer[tensor]
                for reader in self.readers[tensor]:
                    if device[reader] == target:
                        arrive(reader, free[0])
                continue
            here = device[item]
            end = free[here] = max(free[here], arrival[item]) + self.seconds[item][here]
            for tensor in self.outputs[item]:
                away = False
                for reader in self.readers[tensor]:
                    if device[reader] == here:
                        arrive(reader, end)
                    else:
                        away = True
                if away:
                    there = 2 * tensor + 1 - here
                    heapq.heappush(queue, (-of_transfers[there], n + there))
        return max(free)


def _peers() -> dict[str, Search]:
    """Those that are installed."""
    peers = {"pymoo": ("pymoo", _pymoo), "brkga-mp-ipr": ("brkga_mp_ipr", _brkga_mp_ipr)}
    missing = [name for name, (module, _) in peers.items() if find_spec(module) is None]
    if missing:
        print(
            f"left out: {', '.join(missing)}; python -m pip install --target FOLDER "
            f"{' '.join(missing)}, and PYTHONPATH=FOLDER"
        )
    return {name: search for name, (_, search) in peers.items() if name not in missing}


def _pymoo(decode: Decode, keys: int, evaluations: int, seed: int) -> float:
    """As pymoo is by default."""

    def values(chromosomes: Keys) -> Keys:
        return np.array([decode(keys) for keys in chromosomes])

    termination = ("n_evals", evaluations)
    return brkga.breed(values, keys, seed, termination, eliminate_duplicates=True)


def _brkga_mp_ipr(decode: Decode, keys: int, evaluations: int, seed: int) -> float:
    members, elites, _ = SETTINGS.sizes
    breeding = brkga.algorithm(decode, keys, seed)
    breeding.initialize()
    breeding.evolve(round((evaluations - members) / (members - elites)))
    return float(breeding.get_best_fitness())


def _summary(runs: list[Row]) -> list[Row]:
    """The means of each implementation, beside those of pymoo."""
    names = list(dict.fromkeys(run["implementation"] for run in runs))
    means = {name: _means([run for run in runs if run["implementation"] == name]) for name in names}
    pymoo = means.get("pymoo")
    return [
        {"implementation": name}
        | of
        | {
            "times_as_fast_as_pymoo": pymoo["wall_seconds"] / of["wall_seconds"] if pymoo else None,
            "and_by_cpu_seconds": pymoo["cpu_seconds"] / of["cpu_seconds"] if pymoo else None,
        }
        for name, of in means.items()
    ]


def _means(runs: list[Row]) -> dict[str, float]:
    columns = [column for column in runs[0] if column not in ("implementation", "graph")]
    of_all = {column: [float(run[column]) for run in runs] for column in columns}
    return {column: float(np.mean(values)) for column, values in of_all.items()} | {
        "least_wall_seconds": min(of_all["wall_seconds"])
    }


def _targets(summary: list[Row]) -> Iterator[Target]:
    ours = next(row for row in summary if row["implementation"] == "situate, 2 threads")
    least, times = ours["least_wall_seconds"], ours["times_as_fast_as_pymoo"]
    yield Target(
        "situate, 2 threads",
        f"at most {1e3 * SECONDS_WANTED:g} ms",
        f"{1e3 * least:.1f} ms, the fastest of all graphs",
        least <= SECONDS_WANTED,
    )
    if times:
        yield Target(
            "situate, 2 threads",
            f"{FASTER_WANTED} times pymoo's",
            f"{times:.0f} times",
            times >= FASTER_WANTED,
        )


if __name__ == "__main__":
    main()
