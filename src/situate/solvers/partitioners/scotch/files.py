"""A problem as files of Scotch: a source graph and a target architecture."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from situate.grouping.bisection import LARGEST_SUM, as_integers
from situate.solvers.partitioners.mapping import Mapping

FARTHEST = 100
"""Largest ratio between two distances of an architecture."""

FASTEST_LOAD = 1000
"""The load of an architecture's fastest device; Scotch counts in whole numbers."""


def source_file(mapping: Mapping) -> str:
    """The units as a `.grf` file: seconds are the loads of vertices, bytes those of edges.

    An edge weighs at least 1. Scotch multiplies edge loads by distances, so their sum must stay
    below `LARGEST_SUM / FARTHEST`.
    """
    graph = mapping.graph
    load = as_integers(mapping.load).tolist()
    weight = as_integers(graph.bytes, LARGEST_SUM // FARTHEST).tolist()
    neighbour, start = graph.neighbour.tolist(), graph.start.tolist()
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
    there = problem.latency[devices] + mean / problem.bandwidth[devices]
    away = ~np.eye(len(mapping.devices), dtype=bool)
    both = there + there.T
    nearest = both[away & (both > 0)].min(initial=np.inf)
    with np.errstate(over="ignore"):
        ratio = np.rint(both / nearest)
    return np.asarray(np.clip(ratio, 1, FARTHEST), np.int64)


def _domains(first: int, last: int, domain: int) -> Iterator[tuple[int, int]]:
    """(device, domain number) in the tree of halves: domain i has the halves 2 i and 2 i + 1."""
    if last - first == 1:
        yield first, domain
        return
    middle = (first + last + 1) // 2
    yield from _domains(first, middle, 2 * domain)
    yield from _domains(middle, last, 2 * domain + 1)
