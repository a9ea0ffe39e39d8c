"""Training of a linkage: its teachers, the fit, the scale, and the file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

pytest.importorskip("torch")

from situate.bench.families.regal import synthetic
from situate.data import graph_json
from situate.data.cluster import Cluster
from situate.errors import SituateError
from situate.policies.edge_network import EdgeShape
from situate.solvers.evolutionary.regal.linkage import read
from situate.solvers.evolutionary.regal.proposals import anchor
from situate.solvers.evolutionary.regal.training.data_set import Machine
from situate.solvers.evolutionary.regal.training.linkage import (
    Options,
    fit,
    lesson,
    placements,
    train,
)
from situate.solvers.evolutionary.regal.training.scale import PLAIN, SCALES, Lesson

MACHINE = Machine(Cluster.identical(2), "regal", "time")


def options(folder: Path, **changes: Any) -> Options:
    few: dict[str, Any] = {"machine": MACHINE, "epochs": 2, "teachers": 2}
    few |= {"teacher_evaluations": 50, "evaluations": 60}
    return Options(folder, folder / "out", **few | changes)


def set_of_graphs(folder: Path, valid: int = 2) -> Path:
    for first, part, count in ((0, "train", 4), (10, "valid", valid)):
        (folder / part).mkdir()
        for i in range(count):
            graph = synthetic("er", 15, first + i)
            graph_json.write(graph, folder / part / f"{i}.json")
    return folder


def trained(folder: Path, **changes: Any) -> dict[str, Any]:
    lines: list[str] = []
    path = train(options(folder, **changes), lines.append)
    return {"path": path, "model": read(path), "lines": lines}


# A training depends on its seed alone, and its file says what made it.


def test_the_same_training_gives_the_same_file(tmp_path: Path) -> None:
    folder = set_of_graphs(tmp_path)
    first = trained(folder)["path"].read_bytes()
    assert trained(folder)["path"].read_bytes() == first
    assert trained(folder, seed=1)["path"].read_bytes() != first


def test_a_file_says_what_trained_it(tmp_path: Path) -> None:
    origin = trained(set_of_graphs(tmp_path), command="situate train")["model"].origin
    assert (origin.objective, origin.devices, origin.command) == ("time", 2, "situate train")
    assert (origin.teachers, origin.teacher_evaluations) == (2, 50)
    assert [epoch for epoch, _, _ in origin.curve] == [1, 2]
    assert (origin.most, origin.power, origin.concentration) in (PLAIN, *SCALES)
    assert origin.shape.ops
    assert len(origin.data) == 64


def test_graphs_that_are_too_large_teach_nothing(tmp_path: Path) -> None:
    with pytest.raises(SituateError, match="no graph of 5 ops at most"):
        trained(set_of_graphs(tmp_path), largest=5)


def test_a_set_without_graphs_for_validation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SituateError, match="valid"):
        trained(set_of_graphs(tmp_path, valid=0))


def test_a_folder_that_cannot_be_made_is_refused_before_any_training(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(SituateError, match="out: cannot be made"):
        trained(set_of_graphs(tmp_path))


# Teachers agree on an edge, and on an op beside the anchor, as often as their plans do.


def test_shares_are_those_of_the_plans(tmp_path: Path) -> None:
    problem, few = MACHINE.problem(synthetic("er", 15, 3)), options(tmp_path, teachers=4)
    plans, taught = placements(problem, few), lesson(problem, few)
    for i, (source, target) in enumerate(zip(taught.source, taught.target, strict=True)):
        assert taught.together[i] == np.mean(plans[:, source] == plans[:, target])
    first = anchor(problem)
    assert taught.beside is not None
    for op in range(problem.n):
        assert taught.beside[op] == np.mean(plans[:, op] == plans[:, first])
    assert taught.beside[first] == 1


def test_devices_that_differ_teach_edges_alone(tmp_path: Path) -> None:
    one, other = Cluster.identical(2).devices
    smaller = msgspec.structs.replace(other, memory=10**9)
    unequal = Machine(replace(Cluster.identical(2), devices=(one, smaller)), "regal", "time")
    problem = unequal.problem(synthetic("er", 15, 3))
    assert lesson(problem, options(tmp_path)).beside is None
    trained_on = train(options(set_of_graphs(tmp_path), machine=unequal), lambda line: None)
    origin = read(trained_on).origin
    assert not origin.shape.ops
    assert origin.concentration == 0


# The network learns a rule that needs a neighbour's features.


def test_a_rule_about_neighbours_is_learnt(tmp_path: Path) -> None:
    """Edges belong together where the source's own source has the first feature, and ops are beside
    the anchor where their source has it."""
    draw, problem = np.random.default_rng(0), MACHINE.problem(synthetic("er", 15, 3))

    def of_neighbours() -> Lesson:
        n = 40
        nodes = np.zeros((n, 3), np.float32)
        nodes[:, 0] = draw.integers(2, size=n)
        source, target = np.arange(n - 1), np.arange(1, n)
        together = np.concatenate([[0], nodes[: n - 2, 0]]).astype(np.float32)
        beside = np.concatenate([[0], nodes[:-1, 0]]).astype(np.float32)
        features = nodes, np.zeros((n - 1, 2), np.float32), source, target
        return Lesson(problem, *features, together, beside)

    lessons, unseen = [of_neighbours() for _ in range(24)], [of_neighbours() for _ in range(4)]
    shape = EdgeShape((3, 2), width=16, rounds=2, ops=True)
    lines: list[str] = []
    _, curve = fit(lessons, unseen, shape, options(tmp_path, epochs=40), lines.append)
    assert curve[0][2] > 1.2
    assert min(point[2] for point in curve) < 0.4
