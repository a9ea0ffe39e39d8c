"""The placement that accelerate makes of a model, and situate's, by situate's simulator.

accelerate knows the bytes of modules and nothing of time or activations: that is what people use
today, not a rival scheduler. Needs torch, transformers and accelerate.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import situate
from benchmarks.lib.record import Row, Target, record
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
    devices = _device_map(model.partition(":")[0], problem)
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


def _device_map(network: str, problem: situate.Problem) -> dict[str, int | str]:
    """As `from_pretrained(device_map="auto")` makes it: balanced by memory."""
    logging.getLogger("accelerate").setLevel(logging.ERROR)  # it misses the cluster's GPUs here
    import torch
    from accelerate import infer_auto_device_map
    from accelerate.utils import get_balanced_memory

    with torch.device("meta"):
        model = situate.zoo.build(network)[0]
    whole: dict[str, Any] = {"no_split_module_classes": model._no_split_modules}
    limits = get_balanced_memory(model, _memory(problem), **whole)
    answer: dict[str, int | str] = infer_auto_device_map(model, limits, **whole)
    return answer


def _memory(problem: situate.Problem) -> dict[int | str, int]:
    """Bytes by what accelerate calls a device; the problem's accelerators count from 0."""
    capacity = problem.capacity.tolist()
    return {name: capacity[device] for name, device in _names(problem).items()}


def _names(problem: situate.Problem) -> dict[int | str, int]:
    """Index of every accelerator, and of the first CPU, by accelerate's name for it."""
    kinds = [device.kind for device in problem.cluster.devices]
    names: dict[int | str, int] = dict(
        enumerate(d for d, kind in enumerate(kinds) if kind != "cpu")
    )
    return names | ({"cpu": kinds.index("cpu")} if "cpu" in kinds else {})


def _schedule(problem: situate.Problem, devices: dict[str, int | str]) -> Schedule:
    """Ops run where their module is, those of no module in the map where an input comes from."""
    graph, names = problem.graph, _names(problem)
    source = {consumer: producer for producer, consumer in graph.edges()}
    wanted: dict[int, int] = {}
    for op in graph.order:
        place = _place(graph.ops[op].module, devices)
        wanted[op] = names[place] if place in names else wanted.get(source.get(op, -1), 0)
    of_unit = problem.allowed.argmax(axis=1)
    for op in reversed(graph.order):
        if problem.allowed[problem.unit[op], wanted[op]]:
            of_unit[problem.unit[op]] = wanted[op]
    placement: NDArray[np.int32] = of_unit[problem.unit].astype(np.int32)
    return decode(problem, placement, np.array(graph.order, np.int32), "eager")


def _place(module: str, devices: dict[str, int | str]) -> int | str | None:
    """The place of the module, or of the nearest one around it."""
    while module not in devices and module:
        module = module.rpartition(".")[0]
    return devices.get(module)


if __name__ == "__main__":
    main()
