"""A linkage by a network: its features, its scores, its file, and its place in `regal`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from situate import Learning, Problem, _core, solve
from situate.data.rules import RULES
from situate.errors import ReadError, SituateError
from situate.files import safetensors
from situate.policies.edge_network import EdgeShape
from situate.simulation.simulator import Simulator
from situate.solvers.evolutionary.regal.linkage import (
    ConstantLinkage,
    LinkageModel,
    Origin,
    Scores,
    holds_linkage,
    linkage_of,
    raw_features,
    read,
    with_scores,
    write,
)
from situate.solvers.evolutionary.regal.proposals import Proposals, anchor, uniform
from situate.solvers.evolutionary.regal.regal import WEIGHTS
from tests.solvers.families import devices as machines
from tests.solvers.families import fork, layered

GRAPH = layered(5, 4, 0)


def problem(devices: int = 2, objective: Any = "time") -> Problem:
    return Problem(GRAPH, machines(*[1] * devices), objective, RULES["regal"])


def model(
    objective: Any = "time", most: float = 0.9, ops: bool = True, **changes: Any
) -> LinkageModel:
    nodes, edges, *_ = raw_features(problem(objective=objective))
    shape = EdgeShape((nodes.shape[1], edges.shape[1]), width=4, rounds=2, ops=ops)
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
        concentration=4.0,
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
    probabilities = model(objective, most=0.6).scores(of).together
    assert probabilities.shape == (len(of.consumers),)
    assert ((probabilities > 0) & (probabilities < 0.6)).all()
    assert len(set(probabilities.tolist())) > 1


def test_a_linkage_has_the_edges_of_the_graph() -> None:
    of = problem()
    linkage = linkage_of(of, ConstantLinkage(0.3).scores(of).together)
    pairs = sorted(zip(linkage.source.tolist(), linkage.target.tolist(), strict=True))
    assert pairs == sorted(of.graph.edges())
    assert (linkage.together == np.float32(0.3)).all()


# Scores of ops move their affinities, if devices have an anchor.


def guide_of(of: Problem) -> Proposals:
    return uniform(of, _core.search.key_count(Simulator(of).core), 0.7)


@pytest.mark.parametrize("devices", [2, 3, 8])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.9])
def test_an_op_is_beside_the_anchor_as_often_as_its_score_says(devices: int, share: float) -> None:
    of = problem(devices)
    scores = Scores(np.zeros(len(of.consumers), np.float32), np.full(of.n, share, np.float32), 4.0)
    guide = with_scores(of, guide_of(of), scores)
    mean = (guide.alpha / (guide.alpha + guide.beta))[: of.n * devices].reshape(of.n, devices)
    others = np.delete(mean, anchor(of), axis=0)
    odds = share / (1 - share) / (devices - 1)
    assert others[:, 0] == pytest.approx(np.full(of.n - 1, odds / (1 + odds)), abs=1e-3)
    assert others.sum(axis=1) == pytest.approx(np.ones(of.n - 1), abs=1e-3)


def test_the_anchor_stays_on_the_first_device() -> None:
    of = problem(2)
    nowhere = Scores(np.zeros(len(of.consumers), np.float32), np.full(of.n, 0.01, np.float32), 4.0)
    before, after = guide_of(of), with_scores(of, guide_of(of), nowhere)
    of_anchor = slice(2 * anchor(of), 2 * anchor(of) + 2)
    assert np.array_equal(after.alpha[of_anchor], before.alpha[of_anchor])


@pytest.mark.parametrize("concentration", [0.0, 4.0])
def test_affinities_stay_uniform_without_an_anchor_or_concentration(concentration: float) -> None:
    speeds = (1, 2) if concentration else (1, 1)
    of = Problem(GRAPH, machines(*speeds), "time", RULES["regal"])
    scores = Scores(
        np.zeros(len(of.consumers), np.float32), np.ones(of.n, np.float32), concentration
    )
    assert np.array_equal(with_scores(of, guide_of(of), scores).alpha, guide_of(of).alpha)


def test_edges_that_guide_alone_join_more_often() -> None:
    unequal = Problem(GRAPH, machines(1, 2), "time", RULES["regal"])
    with_ops, edges_alone = model(most=0.45), model(most=0.45, ops=False, concentration=0.0)
    on_equal, on_unequal = (with_ops.scores(of).together for of in (problem(2), unequal))
    assert on_unequal == pytest.approx(2 * on_equal, rel=1e-5)
    same = [edges_alone.scores(of).together for of in (problem(2), unequal)]
    assert np.array_equal(*same)


# A file of weights gives the model that was written, or says what is wrong.


def test_a_file_gives_the_model_that_was_written(tmp_path: Path) -> None:
    written = model()
    path = tmp_path / "a.safetensors"
    write(path, written._arrays, written.origin)
    again = read(path)
    assert again.origin == written.origin
    mine, theirs = again.scores(problem()), written.scores(problem())
    assert np.array_equal(mine.together, theirs.together)
    assert np.array_equal(mine.beside, theirs.beside)
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
        ({"concentration": -1.0}, "concentration: must be between 0 and 1000"),
        ({"shape": EdgeShape((13, 3), width=4, rounds=2)}, "has an unknown tensor 'op.0'"),
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
