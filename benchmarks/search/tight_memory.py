"""`auto` beside stages and list rules where two unequal GPUs hardly hold a training step.

A large GPU has two thirds of the memory and a small one a third; together they have as many times
the bytes that the step takes on the large one alone as `--room` says. A CPU with much memory is
there too.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from msgspec.structs import replace as changed

import situate
from benchmarks.lib.record import Row, Target, record

NETWORKS = ("resnet50", "resnet200", "inception_v3", "vit", "bert", "gpt2", "rnnlm")
RULES = ("pipeline", "topological", "heft", "etf")
ROOM = (1.05, 1.2, 1.4)
PARTS = 2 / 3, 1 / 3


def main(arguments: list[str] | None = None) -> None:
    """Plan by all, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", nargs="+", default=list(NETWORKS))
    parser.add_argument("--room", nargs="+", type=float, default=list(ROOM))
    parser.add_argument("--evaluations", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rows = [row for network in options.networks for row in _rows(network, options)]
    record("tight_memory", {"two unequal GPUs": rows}, [_target(rows)], options=options)


def _rows(network: str, options: argparse.Namespace) -> Iterator[Row]:
    graph = situate.zoo.load(network)
    preset = situate.Cluster.preset("unequal-24-12")
    roomy = situate.Problem(graph, _with_memory(preset, (2**50, 2**50)))
    alone = situate.evaluate(roomy, np.zeros(roomy.n, np.int32))
    needed = max(alone.peak_memory.values())
    for room in options.room:
        memory = [round(room * needed * part) for part in PARTS]
        problem = situate.Problem(graph, _with_memory(preset, memory))
        yield {"network": network, "room": room} | _row(problem, options)


def _with_memory(cluster: situate.Cluster, memory: tuple[int, ...] | list[int]) -> situate.Cluster:
    """The cluster with GPUs of so many bytes, in its order."""
    gpus = [
        changed(device, memory=size) for device, size in zip(cluster.devices, memory, strict=False)
    ]
    return replace(cluster, devices=(*gpus, *cluster.devices[len(gpus) :]))


def _row(problem: situate.Problem, options: argparse.Namespace) -> Row:
    """Seconds a step of every method, None where its plan does not fit."""
    result = {rule: situate.solve(problem, rule, evaluations=1000) for rule in RULES}
    result["auto"] = situate.solve(
        problem, "auto", evaluations=options.evaluations, seed=options.seed
    )
    seconds = {name: r.makespan if r.feasible else None for name, r in result.items()}
    fitting = [s for name, s in seconds.items() if s is not None and name != "auto"]
    auto = seconds["auto"]
    over = min(fitting) / auto if fitting and auto else None
    return seconds | {"gap": result["auto"].gap if auto else None, "best_of_others_over_auto": over}


def _target(rows: list[Row]) -> Target:
    lost = [f"{row['network']}, {row['room']}" for row in rows if _is_behind(row)]
    measured = "; ".join(lost) or f"none of {len(rows)}"
    return Target("where another fits or is faster, and auto not", "nowhere", measured, not lost)


def _is_behind(row: Row) -> bool:
    if row["auto"] is None:
        return any(row[rule] is not None for rule in RULES)
    return bool((row["best_of_others_over_auto"] or 1.0) < 1)


if __name__ == "__main__":
    main()
