"""A linkage by a network: its features, its file, and its place in `regal`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from situate import Learning, Problem, solve
from situate.data.rules import RULES
from situate.errors import ReadError, SituateError
from situate.files import safetensors
from situate.policies.edge_network import EdgeShape
from situate.solvers.evolutionary.regal.linkage import (
    ConstantLinkage,
    LinkageModel,
    Origin,
    holds_linkage,
    linkage_of,
    raw_features,
    read,
    write,
)
from situate.solvers.evolutionary.regal.regal import WEIGHTS
from tests.solvers.families import devices as machines
from tests.solvers.families import fork, layered

GRAPH = layered(5, 4, 0)


def problem(devices: int = 2, objective: Any = "time") -> Problem:
    return Problem(GRAPH, machines(*[1] * devices), objective, RULES["regal"])


def model(objective: Any = "time", most: float = 0.9, **changes: Any) -> LinkageModel:
    nodes, edges, *_ = raw_features(problem(objective=objective))
    shape = EdgeShape((nodes.shape[1], edges.shape[1]), width=4, rounds=2)
    draw = np.random.default_rng(0)
    arrays = {
        name: draw.normal(size=size).astype(np.float32) / 4
        for name, size in shape.parameters().items()
    }
    arrays |= {"mean": nodes.mean(axis=0), "scale": np.ones(nodes.shape[1], np.float32)}
    origin = Origin(
        objective=objective,
        shape=shape,
        most=most,
        power=1.5,
        data="",
        command="",
        situate="",
        teachers=1,
        teacher_evaluations=1,
        devices=2,
    )
    return LinkageModel(arrays, msgspec.structs.replace(origin, **changes))


def arrays_of(path: Path) -> dict[str, np.ndarray]:
    return safetensors.read(path, 2**24)[0]


# Features and probabilities are those of the graph, whatever the devices.


def test_features_are_the_same_on_any_number_of_devices() -> None:
    for two, eight in zip(raw_features(problem(2)), raw_features(problem(8)), strict=True):
        assert np.array_equal(two, eight)


@pytest.mark.parametrize("objective", ["time", "memory"])
def test_probabilities_are_from_0_to_the_most(objective: Any) -> None:
    of = problem(objective=objective)
    probabilities = model(objective, most=0.6).probabilities(of)
    assert probabilities.shape == (len(of.consumers),)
    assert ((probabilities > 0) & (probabilities < 0.6)).all()
    assert len(set(probabilities.tolist())) > 1


def test_a_linkage_has_the_edges_of_the_graph() -> None:
    of = problem()
    linkage = linkage_of(of, ConstantLinkage(0.3).probabilities(of))
    pairs = sorted(zip(linkage.source.tolist(), linkage.target.tolist(), strict=True))
    assert pairs == sorted(of.graph.edges())
    assert (linkage.together == np.float32(0.3)).all()


# A file of weights gives the model that was written, or says what is wrong.


def test_a_file_gives_the_model_that_was_written(tmp_path: Path) -> None:
    written = model()
    path = tmp_path / "a.safetensors"
    write(path, written._arrays, written.origin)
    again = read(path)
    assert again.origin == written.origin
    assert np.array_equal(again.probabilities(problem()), written.probabilities(problem()))
    assert holds_linkage(path)


def test_a_policy_holds_no_linkage() -> None:
    path = next(WEIGHTS.glob("*tuned*.safetensors"))
    assert not holds_linkage(path)
    with pytest.raises(ReadError, match="holds no linkage"):
        read(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": EdgeShape((7, 3), width=10**6)}, "width: must be between 1 and 1024"),
        ({"shape": EdgeShape((7, 3), rounds=10**6)}, "rounds: must be between"),
        ({"shape": EdgeShape((0, 3))}, "features of an op"),
        ({"shape": EdgeShape((13, 3), width=4, rounds=3)}, "lacks tensor 'against.2.0'"),
        ({"shape": EdgeShape((13, 3), width=4, rounds=1)}, "has an unknown tensor 'against.1.0'"),
        ({"most": 2.0}, "most: must be between 0 and 1"),
        ({"power": -1.0}, "power"),
        ({"version": 2}, "version"),
    ],
)
def test_files_that_lie_are_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    liar = model(**changes)
    path = tmp_path / "a.safetensors"
    write(path, liar._arrays, liar.origin)
    with pytest.raises(ReadError, match=message):
        read(path)


def test_an_array_of_another_shape_is_refused(tmp_path: Path) -> None:
    written = model()
    path = tmp_path / "a.safetensors"
    write(path, dict(written._arrays) | {"mean": np.zeros(3, np.float32)}, written.origin)
    with pytest.raises(ReadError, match="tensor 'mean' is"):
        read(path)


# `regal` takes a linkage by the name of a file, and by the name of the package's own.


def test_regal_plans_with_the_linkage_of_a_file(tmp_path: Path) -> None:
    written = model()
    path = tmp_path / "a.safetensors"
    write(path, written._arrays, written.origin)
    learning = Learning(weights=str(path), settings="tuned")
    result = solve(problem(4), "regal", evaluations=300, threads=1, learning=learning)
    result.schedule.verify(result.problem)
    assert result.evaluations == 300


def test_the_linkage_decides(tmp_path: Path) -> None:
    """Where all edges join their ends for certain, all ops are on one device."""
    certain = model(most=1.0, power=0.0)
    path = tmp_path / "a.safetensors"
    write(path, certain._arrays, certain.origin)
    of = Problem(fork(12), machines(1, 1), "time", RULES["regal"])
    learning = Learning(weights=str(path), settings="tuned")
    result = solve(of, "regal", evaluations=100, threads=1, learning=learning)
    assert len(set(result.placement.tolist())) == 1


def test_weights_of_another_objective_are_refused(tmp_path: Path) -> None:
    written = model("time")
    path = tmp_path / "a.safetensors"
    write(path, written._arrays, written.origin)
    learning = Learning(weights=str(path), settings="tuned")
    with pytest.raises(SituateError, match="trained for time, not for memory"):
        solve(problem(objective="memory"), "regal", evaluations=10, learning=learning)


def test_other_methods_take_no_linkage(tmp_path: Path) -> None:
    written = model()
    path = tmp_path / "a.safetensors"
    write(path, written._arrays, written.origin)
    with pytest.raises(SituateError, match="idrs: takes no linkage"):
        solve(problem(), "idrs", evaluations=10, learning=Learning(weights=str(path)))


# Two linkages come with situate.


@pytest.mark.parametrize("objective", ["time", "memory"])
def test_linkages_of_the_package_are_what_their_names_say(objective: Any) -> None:
    path = WEIGHTS / f"{objective}-linkage.safetensors"
    origin = read(path).origin
    assert origin.objective == objective
    assert path.stat().st_size < 2**18
    assert len(origin.data) == 64
    assert origin.command.startswith("situate train regal --settings linked ")
    learning = Learning(weights="linked", settings="tuned")
    result = solve(problem(3, objective), "regal", evaluations=60, threads=1, learning=learning)
    result.schedule.verify(result.problem)
