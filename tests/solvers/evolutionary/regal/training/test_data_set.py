"""Folders of graphs: broken, empty and repeated files are skipped, reported and counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from situate.data import graph_json
from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op, Tensor
from situate.errors import MissingExtra, SituateError
from situate.solvers.evolutionary.regal.training import data_set
from situate.solvers.evolutionary.regal.training.data_set import Machine, copied, read_data

TIME = Machine(Cluster.identical(2), "regal", "time")


def graph(name: str = "g", ops: int = 4, seconds: float = 1.0, **changes: Any) -> Graph:
    """A chain."""
    made = tuple(Op(f"{name}{j}", seconds={"*": seconds}, **changes) for j in range(ops))
    tensors = tuple(Tensor(f"t{j}", j, 100 + j, (j + 1,)) for j in range(ops - 1))
    return Graph(name, made, tensors)


def filled(folder: Path, **graphs: Graph) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, each in graphs.items():
        graph_json.write(each, folder / f"{name}.json")
    return folder


# Useless files are skipped and counted; the order of graphs is that of file names.


def test_graphs_come_by_the_names_of_their_files(tmp_path: Path) -> None:
    filled(tmp_path, b=graph("b"), a=graph("a"))
    result = read_data(tmp_path, TIME, print)
    assert [each.name for each in result.graphs] == ["a", "b"]
    assert result.skipped == {}


def test_what_is_of_no_use_is_skipped_said_and_counted(tmp_path: Path) -> None:
    filled(
        tmp_path,
        a=graph("a"),
        again=graph("a"),
        one=graph("one", ops=1),
        idle=graph("idle", seconds=0.0),
    )
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "empty.pb").write_bytes(b"")
    (tmp_path / "nothing.json").write_text('{"format": "situate-graph", "name": "n", "ops": []}')
    filled(tmp_path, barred=graph("barred", device="elsewhere"))
    (tmp_path / "folder").mkdir()
    said = list[str]()
    result = read_data(tmp_path, TIME, said.append)
    assert [each.name for each in result.graphs] == ["a"]
    assert result.skipped == {
        "broken": 3,
        "that cannot be planned": 1,
        "twice": 1,
        "of a single op": 1,
        "without times": 1,
    }
    assert len(said) == 8
    assert all(line.startswith(f"skipped: {tmp_path}") for line in said[:-1])
    assert said[-1].startswith(f"{tmp_path}: 1 graph; skipped: 1 twice, 1 that cannot be planned")
    assert result.skipped.total() == 7


def test_memory_needs_sizes_and_no_times(tmp_path: Path) -> None:
    memory = replace(TIME, objective="memory")
    bare = Graph("bare", (Op("a", seconds={"*": 1.0}), Op("b", seconds={"*": 1.0})))
    result = read_data(filled(tmp_path, a=graph("a", seconds=0.0), b=bare), memory, print)
    assert [each.name for each in result.graphs] == ["a"]
    assert result.skipped == {"without sizes": 1}


def test_a_package_that_is_missing_is_no_fault_of_the_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: Path) -> Graph:
        raise MissingExtra("tensorboard", "report")

    monkeypatch.setattr(data_set, "read", missing)
    with pytest.raises(MissingExtra):
        read_data(filled(tmp_path, a=graph("a")), TIME, print)


def test_a_graph_that_trains_validates_nothing(tmp_path: Path) -> None:
    """Graphs that are known count as there already."""
    known = set[str]()
    first = read_data(filled(tmp_path / "train", a=graph("a")), TIME, print, known)
    second = read_data(filled(tmp_path / "valid", a=graph("a"), b=graph("b")), TIME, print, known)
    assert [each.name for each in second.graphs] == ["b"]
    assert known == {first.graphs[0].hash, second.graphs[0].hash}


def test_the_hash_is_of_all_graphs(tmp_path: Path) -> None:
    first = read_data(filled(tmp_path, a=graph("a")), TIME, print).hash
    assert first == read_data(tmp_path, TIME, print).hash
    assert first != read_data(filled(tmp_path, b=graph("b")), TIME, print).hash


@pytest.mark.parametrize("folder", ["nothere", "."])
def test_a_folder_without_graphs_is_named(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SituateError, match=rf"^{folder}: "):
        read_data(folder, TIME, print)


# Noisy copies keep the structure of a graph.


def test_a_copy_differs_in_times_and_sizes_by_up_to_a_half() -> None:
    of = graph(ops=500, persistent=10_000, workspace=20_000)
    made = copied(of, 1)
    times = np.array([op.seconds["*"] for op in made.ops if op.seconds])
    sizes = np.array([b.size / a.size for a, b in zip(of.tensors, made.tensors, strict=True)])
    held = np.array([op.persistent / 10_000 for op in made.ops])
    for noise in (times, sizes, held):
        assert ((noise > 0.49) & (noise < 1.51)).all()
        assert abs(noise.mean() - 1) < 0.05
        assert abs(noise.std() - 1 / np.sqrt(12)) < 0.03
    assert list(made.edges()) == list(of.edges())
    assert made != of


def test_a_copy_hangs_on_its_seed_alone() -> None:
    assert copied(graph(), 1).hash == copied(graph(), 1).hash != copied(graph(), 2).hash


def test_what_is_held_stays_as_large_as_its_tensor() -> None:
    op = Op("w", kind="parameter", seconds={"*": 0.0}, persistent=10_000)
    of = Graph(
        "g", (op, Op("r", seconds={"*": 1.0})), (Tensor("t", 0, 10_000, (1,), resident=True),)
    )
    made = copied(of, 3)
    assert made.ops[0].persistent == made.tensors[0].size != 10_000


def test_a_copy_has_its_own_times_of_transfers() -> None:
    ops = (Op("a", seconds={"*": 1.0}), Op("b", seconds={"*": 1.0}))
    of = Graph("g", ops, (Tensor("t", 0, 10_000, (1,), seconds=2.0),))
    [made] = copied(of, 1).tensors
    assert made.seconds == pytest.approx(2 * made.size / 10_000, rel=1e-3)
    assert made.seconds != 2


def test_small_tensors_do_not_vanish_and_signals_stay() -> None:
    ops = (Op("a", seconds={"*": 1.0}), Op("b", seconds={"*": 1.0}))
    of = Graph("g", ops, (Tensor("one", 0, 1, (1,)), Tensor("none", 0, 0, (1,))))
    for seed in range(20):
        one, none = copied(of, seed).tensors
        assert one.size >= 1
        assert none.size == 0
