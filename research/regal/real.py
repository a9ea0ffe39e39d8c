"""A set of real graphs as REGAL's (A.1.2): networks of public packages, captured from PyTorch.

Captures all networks of `benchmarks.corpus` for inference and for training into the folder
`captured`, and goes on where it stopped; those that come with situate are added. Of each topology,
told by the sequence of in-degrees, one graph of 50 to 5,000 ops is taken. Of five that are
neighbours by size three are for training, one is for validation, one for the test. Graphs without
room to improve are left out: those on which BRKGA meets the lower bound at once. The rest is
written to `time` and `memory`, in place of the files of an earlier run, and counts to
`counts.json`. Copies with noise are made when a
policy is trained (`--copies 99`).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import numpy as np
import torch

from benchmarks.corpus import limits, listed
from benchmarks.corpus.measure import Subject
from benchmarks.lib.package_graphs import PACKAGED
from benchmarks.lib.workers import add_workers, jobs
from situate import zoo
from situate.bounds.lower_bound import lower_bound
from situate.data import graph_json
from situate.data.cluster import Cluster, Link
from situate.data.graph import Graph
from situate.data.problem import Objective, Problem
from situate.data.roofline import op_seconds
from situate.data.rules import RULES
from situate.errors import SituateError
from situate.files.atomic import write_bytes
from situate.host.machine import usable_cpus
from situate.readers import read
from situate.simulation.simulator import Simulator
from situate.solvers.evolutionary.brkga import BRKGA, evolution

OPS = (50, 5000)
PARTS = ("train", "train", "train", "valid", "test")
"""The parts that five neighbours by size go to."""

OBJECTIVES: tuple[Objective, ...] = ("time", "memory")
DEVICE = msgspec.structs.replace(Cluster.preset("v100-4").devices[0], launch=0.0)
"""The device that ops are timed on. Launches take no time: they would make nearly all ops of
networks so small equally long."""

EVALUATIONS = 1000
"""Evaluations of the BRKGA that tells whether there is room."""

SECONDS, BYTES = 300.0, 16 * 2**30
"""Limits of a capture."""


def main(arguments: list[str] | None = None) -> None:
    """Capture, choose, write and count."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    add_workers(parser, usable_cpus(), "captures")
    options = parser.parse_args(arguments)
    graphs = options.folder / "captured"
    graphs.mkdir(parents=True, exist_ok=True)
    _capture(graphs, options)
    counts = {"captured": 0, "not captured": 0, "too small or too large": 0, "same topology": 0}
    chosen = list(distinct(_captured(graphs, counts), counts))
    for objective in OBJECTIVES:
        counts |= write_parts(chosen, objective, options.folder)
    write_bytes(options.folder / "counts.json", json.dumps(counts, indent=1).encode())
    print(json.dumps(counts, indent=1))


def _capture(folder: Path, options: argparse.Namespace) -> None:
    """Capture the graphs that are not in the folder yet. Workers need not see the folder."""
    ends = (".json.gz", ".failed")
    names = [name for name in _makers() if not any((folder / f"{name}{e}").exists() for e in ends)]
    with jobs(options, captured) as captures:
        for number, (graph, message) in captures.each((name,) for name in names):
            name = names[number]
            if message:
                write_bytes(folder / f"{name}.failed", message.encode())
            else:
                write_bytes(folder / f"{name}.json.gz", graph)
            print(f"{name}: {message or 'captured'}", flush=True)


def captured(name: str) -> tuple[bytes, str]:
    """A graph's file, captured in a child of its own, or a message that says why there is none."""
    make = _makers()[name]
    with TemporaryDirectory() as folder:
        path = Path(folder, "graph.json.gz")
        message = limits.within(partial(_one, path, make), SECONDS, BYTES).get("message", "")
        return (b"" if message else path.read_bytes()), message


@cache
def _makers() -> dict[str, Callable[[], Graph]]:
    """By name how to capture each graph. Packages are loaded once a process."""
    torch.set_num_threads(1)
    result = listed.configurations()
    absent = listed.missing(result)
    listed.load(result, absent)
    subjects = [
        Subject(configuration, training)
        for configuration in result
        if configuration.package not in absent
        for training in (False, True)
    ]
    makers: dict[str, Callable[[], Graph]] = {
        f"{subject.configuration.name}.{subject.phase}": subject.capture for subject in subjects
    }
    makers |= {f"zoo.{name}".replace(":", "."): partial(zoo.load, name) for name in PACKAGED}
    return makers


def _one(path: Path, make: Callable[[], Graph], tell: Callable[[dict[str, str]], None]) -> None:
    """Write a graph; tell why there is none."""
    try:
        graph_json.write(make(), path)
        tell({"stage": "end"})
    except SituateError as error:
        tell({"stage": "end", "message": str(error)})


def _captured(folder: Path, counts: dict[str, int]) -> Iterator[Graph]:
    """All graphs, by their size and name."""
    graphs = [read(path) for path in sorted(folder.glob("*.json.gz"))]
    counts["captured"] = len(graphs)
    counts["not captured"] = len(list(folder.glob("*.failed")))
    yield from sorted(graphs, key=lambda graph: (len(graph.ops), graph.name))


def distinct(graphs: Iterable[Graph], counts: dict[str, int]) -> Iterator[Graph]:
    """Graphs of a size that is wanted, one of each topology."""
    topologies = set[tuple[int, ...]]()
    for graph in graphs:
        degrees = in_degrees(graph)
        if not OPS[0] <= len(graph.ops) <= OPS[1]:
            counts["too small or too large"] += 1
        elif degrees in topologies:
            counts["same topology"] += 1
        else:
            topologies.add(degrees)
            yield timed(graph)


def in_degrees(graph: Graph) -> tuple[int, ...]:
    """The number of edges that enter each op, in topological order."""
    count = np.zeros(len(graph.ops), np.int64)
    for _, consumer in graph.edges():
        count[consumer] += 1
    return tuple(count[list(graph.order)].tolist())


def timed(graph: Graph) -> Graph:
    """The graph with the seconds that its ops take by the roofline, the same under every device."""
    device = Cluster("one", (DEVICE,), (Link("*", "*", inf),))
    seconds = op_seconds(graph, device)[:, 0].tolist()
    ops = [
        msgspec.structs.replace(op, seconds={"*": duration})
        for op, duration in zip(graph.ops, seconds, strict=True)
    ]
    return replace(graph, ops=tuple(ops), rules="regal")


def write_parts(graphs: list[Graph], objective: Objective, folder: Path) -> dict[str, int]:
    """The parts of the set for an objective, and how many graphs are in each."""
    # A graph more may move its neighbours by size to other parts, and one left where it was would
    # train what it tests.
    for earlier in (folder / objective).glob("*/*.json.gz"):
        earlier.unlink()
    counts = {f"{objective}: no room": 0} | {f"{objective}: {part}": 0 for part in PARTS}
    for i, graph in enumerate(graphs):
        part = PARTS[i % len(PARTS)]
        if not has_room(graph, objective):
            counts[f"{objective}: no room"] += 1
            continue
        (folder / objective / part).mkdir(parents=True, exist_ok=True)
        name = f"{graph.name.replace(':', '.').replace('/', '.')}.json.gz"
        graph_json.write(graph, folder / objective / part / name)
        counts[f"{objective}: {part}"] += 1
    return counts


def has_room(graph: Graph, objective: Objective) -> bool:
    """True where a short search does not meet the lower bound."""
    problem = Problem(graph, Cluster.identical(2), objective, RULES["regal"])
    population = evolution(Simulator(problem), BRKGA["paper"], goal=objective, seed=0)
    population.run(EVALUATIONS, inf, usable_cpus())
    return population.best()[1] > lower_bound(problem) * (1 + 1e-9)


if __name__ == "__main__":
    main()
