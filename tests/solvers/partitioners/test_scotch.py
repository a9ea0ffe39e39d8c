"""Static mappings by Scotch: its files, its program, and the plans."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.grouping.bisection import LARGEST_SUM
from situate.solvers import solve
from situate.solvers.partitioners.mapping import Mapping
from situate.solvers.partitioners.scotch import (
    FARTHEST,
    distances,
    find_mapper,
    source_file,
    static_mapping,
    target_file,
)
from situate.zoo import load
from tests.solvers.families import apart, chain, devices, layered
from tests.solvers.partitioners.test_metis import busy
from tests.solvers.programs import needs_scotch


def _onto_all(graph: Graph, cluster: Cluster) -> Mapping:
    return Mapping.onto(Problem(graph, cluster), list(range(len(cluster.devices))))


def _linked(bandwidth: float, latency: float = 0.0) -> Cluster:
    """d0 and d1 a byte a second apart, d2 farther."""
    return Cluster(
        "c",
        tuple(Device(f"d{i}", "x1") for i in range(3)),
        (Link("*", "*", 1.0), Link("*", "d2", bandwidth, latency)),
    )


# Graphs and machines in Scotch's own words.
def test_a_source_file_holds_loads_and_edges() -> None:
    """Vertex loads 1 : 3 : 0, edges of weight 2 : 1; each line is load, degree, weight and end."""
    ops = tuple(Op(f"op{j}", seconds={"*": s}) for j, s in enumerate((1.0, 3.0, 0.0)))
    tensors = (Tensor("a", 0, 20, (1,)), Tensor("b", 1, 10, (2,)))
    header, size, flags, *rows = source_file(
        _onto_all(Graph("g", ops, tensors), devices(1, 1))
    ).splitlines()
    assert (header, size, flags) == ("0", "3 4", "0 011")
    first, second, third = ([int(word) for word in row.split()] for row in rows)
    assert second[0] / first[0] == pytest.approx(3, rel=1e-6)
    assert third[0] == 1
    assert [first[1], second[1], third[1]] == [1, 2, 1]
    assert [first[3], second[3], second[5], third[3]] == [1, 0, 2, 1]
    assert first[2] == second[2] == pytest.approx(2 * third[2], rel=1e-5)
    assert second[4] == third[2]


def test_no_sum_of_a_source_file_overflows() -> None:
    rows = source_file(_onto_all(layered(9, 9, 1, size=2**53), devices(1, 1))).splitlines()[3:]
    numbers = [[int(word) for word in row.split()] for row in rows]
    assert sum(row[0] for row in numbers) <= LARGEST_SUM
    assert sum(sum(row[2::2]) for row in numbers) * FARTHEST <= LARGEST_SUM
    assert min(min(row[2::2], default=1) for row in numbers) >= 1


def test_a_target_file_holds_speeds_a_tree_and_distances() -> None:
    fast = _onto_all(chain(3), devices(1, 2, 1))
    assert target_file(fast).splitlines() == [
        "deco",
        "0 3 5",
        "0 1000 4",
        "1 500 5",
        "2 1000 3",
        "1",
        "1 1",
    ]


@pytest.mark.parametrize("count", [1, 2, 5, 9, 17])
def test_the_tree_has_every_device_as_one_leaf(count: int) -> None:
    _, header, *rows = target_file(_onto_all(chain(3), devices(*[1] * count))).splitlines()
    leaves = {int(row.split()[2]) for row in rows[:count]}
    assert len(leaves) == count
    assert header == f"0 {count} {max(leaves)}"
    inner = {leaf >> up for leaf in leaves for up in range(1, leaf.bit_length())}
    assert not inner & leaves
    assert inner | leaves == {1} | {2 * i + side for i in inner for side in (0, 1)}


def test_distances_are_the_seconds_of_a_mean_tensor_there_and_back() -> None:
    """Ten bytes: 10 s there and 10 s back, or 40 s each way."""
    near = distances(_onto_all(chain(3, size=10), _linked(0.25)))
    assert near.tolist() == [[1, 1, 4], [1, 1, 4], [4, 4, 1]]
    late = distances(_onto_all(chain(3, size=10), _linked(1.0, latency=10.0)))
    assert late.tolist() == [[1, 1, 2], [1, 1, 2], [2, 2, 1]]


def test_distances_end_somewhere() -> None:
    assert distances(_onto_all(chain(3), _linked(1e-9))).max() == FARTHEST
    assert distances(_onto_all(chain(3), _linked(1e-200, latency=1e200))).max() == FARTHEST
    assert distances(_onto_all(chain(3), _linked(np.inf))).tolist() == [[1] * 3] * 3


def test_without_bytes_or_links_all_are_as_near() -> None:
    assert distances(_onto_all(apart(2), devices(1, 1))).tolist() == [[1, 1], [1, 1]]
    alone = Graph("g", (Op("a", seconds={"*": 1.0}),))
    assert distances(_onto_all(alone, Cluster.identical(2))).tolist() == [[1, 1], [1, 1]]


PAIRS = "0\n4 4\n0 011\n1 1 9 1\n1 1 9 0\n1 1 9 3\n1 1 9 2\n"
"""Two pairs of vertices, an edge in each."""
TWO = "deco\n0 2 3\n0 1 2\n1 1 3\n1\n"
"""Two equal processors."""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a shell script on the PATH, the only mapper there."""

    def put(script: str) -> None:
        program = tmp_path / "scotch_gmap"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return put


def _map(longest: float = 60.0) -> list[int]:
    return static_mapping(PAIRS, TWO, vertices=4, processors=2, longest=longest).tolist()


# Scotch's program is run as it is, and not taken at its word.
@needs_scotch
def test_scotch_keeps_pairs_together() -> None:
    a, b, c, d = _map()
    assert a == b != c == d


@needs_scotch
def test_the_same_files_give_the_same_mapping() -> None:
    rng = np.random.default_rng(0)
    edges = {(int(a), int(b)) for a, b in rng.integers(0, 200, (600, 2)) if a != b}
    edges |= {(b, a) for a, b in edges}
    rows = [[b for a, b in sorted(edges) if a == v] for v in range(200)]
    text = "".join(f"1 {len(row)} {' '.join(f'1 {b}' for b in row)}\n" for row in rows)
    graph = f"0\n200 {len(edges)}\n0 011\n{text}"
    first, second = (static_mapping(graph, TWO, 200, 2) for _ in range(2))
    assert np.array_equal(first, second)
    assert np.bincount(first).tolist() == pytest.approx([100, 100], abs=5)


@needs_scotch
def test_what_scotch_says_is_passed_on() -> None:
    """Scotch ends with status 0 or a crash where a file is amiss."""
    with pytest.raises(SituateError, match="gmap says 'gmap: ERROR: ") as error:
        static_mapping(PAIRS, "deco 0 2", 4, 2)
    assert "archDecoArchLoad: bad input" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_program_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SituateError) as error:
        _map()
    assert str(error.value) == (
        "this needs Scotch's program 'scotch_gmap' or 'gmap', and neither is on the PATH: "
        "apt-get install scotch"
    )


def test_scotchs_own_name_is_found_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "gmap"
    program.write_text("")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_mapper() == str(program)


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ("", "gave no mapping: Scotch 7 or newer is needed"),
        ("4 0 0 1", "gave no mapping"),
        ("4 0 zero", "gave no mapping"),
        ("4 0 99999999999999999999", "gave no mapping"),
        ("3 0 0 1 0 2 1", "did not map each of 4 vertices once"),
        ("4 0 0 1 0 2 1 2 1", "did not map each of 4 vertices once"),
        ("5 0 0 1 0 2 1 3 1", "did not map each of 4 vertices once"),
        ("4 0 0 1 0 2 1 3 2", "mapped a vertex to none of 2 processors"),
        ("4 0 0 1 0 2 1 3 -1", "mapped a vertex to none of 2 processors"),
    ],
)
def test_bad_mappings_are_refused(
    stand_in: Callable[[str], None], mapping: str, message: str
) -> None:
    stand_in(f"echo '{mapping}' > graph.map")
    with pytest.raises(SituateError, match=message):
        _map()


def test_vertices_may_come_in_any_order(stand_in: Callable[[str], None]) -> None:
    stand_in("echo '4 3 1 0 0 2 1 1 0' > graph.map")
    assert _map() == [0, 0, 1, 1]


def test_another_program_of_that_name_is_named(stand_in: Callable[[str], None]) -> None:
    stand_in("echo 'Usage: gmap [OPTIONS...] <FASTA files...>' >&2; exit 9")
    with pytest.raises(SituateError, match=r"says 'Usage: gmap .* gave no mapping: Scotch 7"):
        _map()


def test_a_mapping_that_takes_too_long_is_given_up(stand_in: Callable[[str], None]) -> None:
    stand_in("exec sleep 60")
    with pytest.raises(SituateError, match=r"scotch_gmap was stopped after 0\.1 s"):
        _map(longest=0.1)


def test_what_cannot_be_run_is_named(stand_in: Callable[[str], None], tmp_path: Path) -> None:
    stand_in("")
    (tmp_path / "scotch_gmap").write_bytes(b"\x7fELF nothing")
    with pytest.raises(SituateError, match="scotch_gmap cannot be run: "):
        _map()


# `scotch` and the machine: every device its share by its speed, near ones what they exchange.
@needs_scotch
@pytest.mark.parametrize("gpus", [2, 4])
def test_gpus_and_cpu_take_equally_long(gpus: int) -> None:
    """Loads are those of units on their fastest device, so they are only nearly those of the
    CPU."""
    problem = Problem(load("resnet50"), Cluster.preset(f"k80-{gpus}"))
    assert busy(problem, "scotch") == pytest.approx([1 / (gpus + 1)] * (gpus + 1), abs=0.05)


@needs_scotch
def test_a_device_of_half_the_speed_gets_half_the_work() -> None:
    problem = Problem(layered(40, 20, 1), devices(1, 2, 2))
    assert busy(problem, "scotch") == pytest.approx([1 / 3] * 3, abs=0.03)


@needs_scotch
def test_what_exchanges_most_is_on_near_devices() -> None:
    """Four cliques in a row, a little between the first two and the last two, and less between:
    d0 and d2, d1 and d3 are near."""
    near, far = 100.0, 1.0
    links = (Link("*", "*", far), Link("d0", "d1", near), Link("d2", "d3", near))
    cluster = Cluster("c", tuple(Device(f"d{i}", "x1") for i in range(4)), links)
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(24))
    edges = {(a, b): 1000 for a in range(24) for b in range(a + 1, 24) if a // 6 == b // 6}
    edges |= {(5, 6): 100, (17, 18): 100, (11, 12): 1}
    tensors = tuple(Tensor(f"t{a}.{b}", a, size, (b,)) for (a, b), size in edges.items())
    placement = solve(Problem(Graph("g", ops, tensors), cluster), "scotch").placement
    cliques = placement.reshape(4, 6)
    assert (cliques == cliques[:, :1]).all()
    first, second, third, fourth = (int(device) // 2 for device in cliques[:, 0])
    assert first == second != third == fourth
    assert len(set(cliques[:, 0])) == 4


# `mincut` is `scotch` without the CPUs.
@needs_scotch
@pytest.mark.parametrize("gpus", [2, 4])
def test_every_gpu_gets_its_part_and_the_cpu_none(gpus: int) -> None:
    problem = Problem(load("resnet50"), Cluster.preset(f"k80-{gpus}"))
    assert busy(problem, "mincut") == pytest.approx([1 / gpus] * gpus + [0], abs=0.05)


@needs_scotch
def test_an_op_for_the_cpu_alone_goes_there() -> None:
    cluster = Cluster(
        "c", (Device("a0", "acc"), Device("a1", "acc"), Device("c0", "cpu")), (Link("*", "*", 1.0),)
    )
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(6))
    read = Op("read", seconds={"cpu": 1.0})
    placement = solve(Problem(Graph("g", (*ops, read)), cluster), "mincut").placement
    assert placement[6] == 2
    assert np.bincount(placement[:6]).tolist() == [3, 3]


@needs_scotch
def test_on_cpus_alone_it_is_scotch() -> None:
    cluster = Cluster("c", (Device("c0", "cpu"), Device("c1", "cpu")), (Link("*", "*", 1.0),))
    graph = Graph("g", tuple(Op(f"op{j}", seconds={"*": 1.0 + j % 3}) for j in range(30)))
    both = [solve(Problem(graph, cluster), method).placement for method in ("mincut", "scotch")]
    assert np.array_equal(*both)
