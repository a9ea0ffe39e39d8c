"""`scotch` and `mincut`: Scotch's static mapping onto all devices, or onto the accelerators."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from situate.data.arrays import Placement
from situate.data.topology import accelerators
from situate.errors import SituateError
from situate.grouping.bisection import LARGEST_SUM, as_integers
from situate.solvers.partitioners.mapping import Mapping
from situate.solvers.search import Search

FARTHEST = 100
"""Largest ratio between two distances of an architecture."""

FASTEST_LOAD = 1000
"""The load of an architecture's fastest device; Scotch counts in whole numbers."""


PROGRAMS = ("scotch_gmap", "gmap")
"""Names of the static mapper: Debian's, whose `gmap` is another program, and Scotch's own."""

LONGEST = 600.0
"""Default limit on the wall seconds of a mapping."""


def source_file(mapping: Mapping) -> str:
    """The units as a `.grf` file: seconds are the loads of vertices, bytes those of edges.

    An edge weighs at least 1. Scotch multiplies edge loads by distances, so their sum must stay
    below `LARGEST_SUM / FARTHEST`.
    """
    graph = mapping.graph
    load = as_integers(mapping.load).tolist()
    weight = as_integers(graph.bytes, LARGEST_SUM // FARTHEST).tolist()
    neighbour, start = graph.neighbour.tolist(), graph.start.tolist()
    # Format version 0; numbers of vertices and arcs; indices from 0, and the flags 011: no labels,
    # but loads of edges and of vertices.
    lines = ["0", f"{len(load)} {len(weight)}", "0 011"]
    for vertex, (first, last) in enumerate(pairwise(start)):
        edges = " ".join(f"{weight[e]} {neighbour[e]}" for e in range(first, last))
        lines.append(f"{load[vertex]} {last - first} {edges}")
    return "\n".join(lines) + "\n"


def target_file(mapping: Mapping) -> str:
    """The devices as a `.tgt` file, a decomposition-defined architecture.

    Each device has its speed as load and its place in a tree of halves. The distances of each
    device to those before it follow.
    """
    count = len(mapping.devices)
    domain = dict(_domains(0, count, 1))
    load = np.maximum(1, np.rint(mapping.speed / mapping.speed.max() * FASTEST_LOAD)).astype(int)
    lines = ["deco", f"0 {count} {max(domain.values())}"]
    lines += [f"{device} {load[device]} {domain[device]}" for device in range(count)]
    distance = distances(mapping).tolist()
    lines += [" ".join(map(str, distance[i][:i])) for i in range(1, count)]
    return "\n".join(lines) + "\n"


def distances(mapping: Mapping) -> NDArray[np.int64]:
    """(k, k) round-trip seconds of a tensor of mean size between devices, relative to the nearest
    pair; from 1 to `FARTHEST`."""
    bytes_moved = mapping.graph.bytes
    mean = float(bytes_moved[bytes_moved > 0].mean()) if bytes_moved.any() else 0.0
    problem, devices = mapping.problem, np.ix_(mapping.devices, mapping.devices)
    one_way = problem.latency[devices] + mean / problem.bandwidth[devices]
    away = ~np.eye(len(mapping.devices), dtype=bool)
    round_trip = one_way + one_way.T
    nearest = round_trip[away & (round_trip > 0)].min(initial=np.inf)
    with np.errstate(over="ignore"):
        # If no link takes time, `nearest` is infinite and all ratios are 0, which clip to 1.
        ratio = np.rint(round_trip / nearest)
    return np.asarray(np.clip(ratio, 1, FARTHEST), np.int64)


def _domains(first: int, last: int, domain: int) -> Iterator[tuple[int, int]]:
    """(device, domain number) in the tree of halves: domain i has the halves 2 i and 2 i + 1."""
    if last - first == 1:
        yield first, domain
        return
    middle = (first + last + 1) // 2
    yield from _domains(first, middle, 2 * domain)
    yield from _domains(middle, last, 2 * domain + 1)


def find_mapper() -> str:
    """Path of the static mapper.

    Raises:
        SituateError: it is not on the PATH; the message says how to install it.
    """
    for name in PROGRAMS:
        if path := shutil.which(name):
            return os.path.abspath(path)
    raise SituateError(
        f"this needs Scotch's program {PROGRAMS[0]!r} or {PROGRAMS[1]!r}, and neither is on the "
        "PATH: apt-get install scotch"
    )


def static_mapping(
    source: str, target: str, vertices: int, processors: int, longest: float = LONGEST
) -> NDArray[np.int64]:
    """The processor (vertices,) that Scotch maps each vertex of a graph to.

    Scotch's random seed is fixed and it uses one thread, so equal input gives equal output.

    Args:
        source: the graph, as the text of a `.grf` file.
        target: the machine, as the text of a `.tgt` file.
        vertices, processors: numbers in the graph and in the machine.
        longest: limit on the wall seconds.

    Raises:
        SituateError: the program is missing, fails, takes too long or writes no valid mapping.
    """
    mapper = find_mapper()
    try:
        with TemporaryDirectory(prefix="situate-scotch-") as folder:
            Path(folder, "graph.grf").write_text(source, "ascii")
            Path(folder, "machine.tgt").write_text(target, "ascii")
            message = _call(mapper, folder, longest)
            mapping = Path(folder, "graph.map")
            text = mapping.read_text("ascii", "replace") if mapping.exists() else ""
    except OSError as error:
        raise SituateError(f"{mapper} cannot be run: {error}") from error
    return _checked(text, vertices, processors, f"{mapper}{message}")


def _call(mapper: str, folder: str, longest: float) -> str:
    """Run the mapper and return the first line of its errors; its exit status is always zero."""
    command = [mapper, "-Cd", "graph.grf", "machine.tgt", "graph.map"]
    environment = os.environ | {"SCOTCH_PTHREAD_NUMBER": "1"}
    try:
        process = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=longest,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SituateError(f"{mapper} was stopped after {longest:g} s") from error
    lines = process.stderr.decode("ascii", "replace").strip().splitlines()
    return f" says {lines[0][:200]!r} and" if lines else ""


def _checked(text: str, vertices: int, processors: int, mapper: str) -> NDArray[np.int64]:
    """(vertices,) processors of a `.map` file: a count, then a vertex and processor per line."""
    try:
        count, *rest = map(int, text.split())
        pairs = np.array(rest, np.int64).reshape(-1, 2)
    except (ValueError, OverflowError):
        raise SituateError(f"{mapper} gave no mapping: Scotch 7 or newer is needed") from None
    vertex, processor = pairs[np.argsort(pairs[:, 0], kind="stable")].T
    if count != vertices or not np.array_equal(vertex, np.arange(vertices)):
        raise SituateError(f"{mapper} did not map each of {vertices} vertices once")
    if ((processor < 0) | (processor >= processors)).any():
        raise SituateError(f"{mapper} mapped a vertex to none of {processors} processors")
    return np.asarray(processor)


def scotch(search: Search) -> None:
    """Offer one plan: Scotch's static mapping of the graph onto all devices.

    Raises:
        SituateError: Scotch is not installed, or its program fails.
    """
    problem = search.problem
    placement = _map_onto(Mapping.onto(problem, list(range(problem.d))))
    search.offer(placement, np.array(problem.graph.order, np.int32))


def _map_onto(mapping: Mapping) -> Placement:
    """Placement (n,) of the ops on the devices of the mapping."""
    processor = static_mapping(
        source_file(mapping),
        target_file(mapping),
        vertices=len(mapping.load),
        processors=len(mapping.devices),
    )
    return mapping.placement(processor)


def mincut(search: Search) -> None:
    """Offer one plan: as `scotch`, without the CPUs.

    Raises:
        SituateError: Scotch is not installed, or its program fails.
    """
    problem = search.problem
    placement = _map_onto(Mapping.onto(problem, accelerators(problem)))
    search.offer(placement, np.array(problem.graph.order, np.int32))
