"""METIS makes parts of the shares asked for, in silence, and gets no graph that is amiss."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from situate.errors import MissingExtra, SituateError
from situate.grouping.bisection import LARGEST_SUM, WeightedGraph, as_integers, partition
from tests.solvers.programs import needs_metis


# Weights as integers.
def test_whole_numbers_keep_proportions_and_their_sum() -> None:
    values = np.array([0.0, 1.0, 2.0, 4.0])
    weights = as_integers(values)
    assert weights[0] == 1
    assert weights[1:] / weights[1] == pytest.approx([1, 2, 4], rel=1e-6)
    assert LARGEST_SUM - 8 < weights.sum() <= LARGEST_SUM
    assert as_integers(np.full(3, 2**62)).sum() <= LARGEST_SUM
    assert as_integers(np.array([1e300, 1e-300])).tolist() == [LARGEST_SUM - 2, 1]
    assert as_integers(np.zeros(3)).tolist() == [1, 1, 1]
    assert as_integers(np.ones(5), most=3).tolist() == [1] * 5


def weighted(n: int, edges: dict[tuple[int, int], int], load: list[int] | None = None) -> Any:
    """A graph of n vertices, from the weight of each edge in one direction."""
    both = sorted([*edges.items(), *(((b, a), w) for (a, b), w in edges.items())])
    ends = np.array([ends for ends, _ in both], np.int64).reshape(-1, 2)
    weight = np.array([w for _, w in both], np.int64)
    return WeightedGraph(ends[:, 0], ends[:, 1], weight, np.array(load or [1] * n, np.int64))


def cliques(count: int, size: int) -> Any:
    """Cliques of heavy edges in a ring of light ones."""
    edges = {}
    for c in range(count):
        members = range(c * size, (c + 1) * size)
        edges |= {(a, b): 100 for a in members for b in members if a < b}
        edges[c * size, (c + 1) * size % (count * size)] = 1
    return weighted(count * size, edges)


# Cuts of small graphs.
@needs_metis
@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_the_lightest_cut_is_found(count: int) -> None:
    part = partition(cliques(count, 6), np.ones(count)).reshape(count, 6)
    assert (part == part[:, :1]).all()
    assert sorted(part[:, 0]) == list(range(count))


@needs_metis
def test_shares_are_kept() -> None:
    chain = weighted(4000, {(j, j + 1): 1 for j in range(3999)})
    for share in ([1, 1, 1], [4, 2, 1, 1], [1, 7], [1e-9, 1, 1]):
        parts = np.bincount(partition(chain, np.array(share)), minlength=len(share))
        assert parts / 4000 == pytest.approx(np.array(share) / sum(share), abs=0.01)


@needs_metis
def test_a_graph_without_edges_is_balanced() -> None:
    part = partition(weighted(9, {}, load=[3, 3, 3, 1, 1, 1, 2, 2, 2]), np.ones(3))
    assert np.bincount(part, [3, 3, 3, 1, 1, 1, 2, 2, 2]).tolist() == [6, 6, 6]


@needs_metis
def test_loads_of_zero_and_one_vertex_are_parted() -> None:
    assert set(partition(weighted(4, {(0, 1): 1}, load=[0] * 4), np.ones(2))) <= {0, 1}
    assert partition(weighted(1, {}), np.array([1.0, 3.0, 2.0])).tolist() == [1]
    assert partition(weighted(3, {}), np.ones(1)).tolist() == [0, 0, 0]


@needs_metis
def test_the_same_graph_gives_the_same_parts() -> None:
    graph = cliques(5, 7)
    assert np.array_equal(partition(graph, np.ones(3)), partition(graph, np.ones(3)))


@needs_metis
def test_nothing_is_printed_when_parts_are_left_empty() -> None:
    """In a process of its own, since C keeps its output until the process ends."""
    program = (
        "import numpy as np\n"
        "from tests.grouping.test_bisection import weighted, partition\n"
        "heavy = weighted(3, {(0, 1): 1, (1, 2): 1}, load=[100, 1, 1])\n"
        "partition(heavy, np.ones(8))\n"
    )
    root = Path(__file__).parents[2]
    process = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, check=True
    )
    assert process.stdout == b""


ROWS, NEIGHBOUR, WEIGHT, LOAD = [0, 1, 1, 2], [1, 0, 2, 1], [5, 5, 7, 7], [1, 1, 1]


# Errors, and parts of parts.
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"neighbour": [1, 0, 2]}, "no end or no weight"),
        ({"weight": [5, 5, 7]}, "no end or no weight"),
        ({"weight": [0, 0, 7, 7]}, "too small"),
        ({"load": [1, -1, 1]}, "too small"),
        ({"neighbour": [1, 0, 3, 1]}, "leads nowhere"),
        ({"neighbour": [1, 0, -1, 1]}, "leads nowhere"),
        ({"neighbour": [0, 0, 2, 1]}, "leads nowhere"),
        ({"neighbour": [2, 0, 2, 1]}, "both directions"),
        ({"weight": [5, 5, 7, 8]}, "both directions"),
        ({"rows": [0, 1, 2, 1], "neighbour": [1, 0, 1, 2]}, "both directions"),
    ],
)
def test_what_is_no_graph_is_refused(changes: dict[str, list[int]], message: str) -> None:
    arrays = {"rows": ROWS, "neighbour": NEIGHBOUR, "weight": WEIGHT, "load": LOAD} | changes
    graph = WeightedGraph(**{name: np.array(a, np.int64) for name, a in arrays.items()})
    with pytest.raises(SituateError, match=message):
        partition(graph, np.ones(2))


def test_a_missing_metis_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(MissingExtra, match=r"pip install 'situate\[baselines\]'"):
        partition(weighted(2, {(0, 1): 1}), np.ones(2))


def test_a_part_of_a_graph_keeps_the_edges_within() -> None:
    inside = weighted(4, {(0, 1): 5, (1, 3): 6, (2, 3): 7}, [1, 2, 3, 4]).within(
        np.array([False, True, True, True])
    )
    assert {name: array.tolist() for name, array in dataclasses.asdict(inside).items()} == {
        "rows": [0, 1, 2, 2],
        "neighbour": [2, 2, 0, 1],
        "weight": [6, 7, 6, 7],
        "load": [2, 3, 4],
    }
