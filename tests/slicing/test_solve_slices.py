"""The best plan of a model, its batch whole or in slices."""

from __future__ import annotations

import pytest

import situate
from situate.data.slices import AutoSlices
from situate.errors import SituateError
from situate.slicing import solve_slices

CLUSTER = situate.Cluster.preset("k80-2")


# The public function, from a model to a choice.
@pytest.mark.parametrize("by_name", [True, False])
def test_a_model_is_planned_whole_and_in_slices(by_name, monkeypatch, tmp_path):
    pytest.importorskip("torch")
    from tests.branches import build

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    model = "tests.branches:build" if by_name else build
    choice = solve_slices(model, CLUSTER, evaluations=200)
    results = {trial.samples: trial.result for trial in choice.tried}
    assert {(), (8, 8)} <= results.keys()
    assert choice.result.value == min(result.value for result in results.values() if result)
    choice.result.schedule.verify(choice.result.problem)


def test_a_step_in_slices_is_that_of_a_capture_of_its_own(monkeypatch, tmp_path):
    pytest.importorskip("torch")
    from situate.data.slices import Slices
    from situate.torch_capture import Captures
    from tests.branches import build

    captures = Captures()
    for optimizer in ("sgd", "adam:clip=1.0"):
        for slices in (Slices((1, 1)), None, Slices((3, 1)), Slices((1,) * 4)):
            shared = captures.capture(build, optimizer=optimizer, slices=slices)
            alone = situate.capture(build, optimizer=optimizer, slices=slices)
            assert shared == alone


def test_modules_run_again_in_every_cut(monkeypatch, tmp_path):
    pytest.importorskip("torch")
    from tests.torch_capture.recompute.models import blocks

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for model in ("tests.torch_capture.recompute.models:blocks", blocks):
        choice = solve_slices(model, CLUSTER, "heft", recompute=["layers.*"])
        graphs = [trial.result.problem.graph for trial in choice.tried if trial.result]
        assert any(graph.slices for graph in graphs)
        assert {len(graph.recompute) for graph in graphs} == {3}


def test_inference_is_planned_whole_and_says_why():
    choice = solve_slices("resnet50:inference", CLUSTER, "single")
    assert choice.uncut.startswith("resnet50:inference: slices are of a step that trains")
    assert [trial.samples for trial in choice.tried] == [()]


def test_what_no_input_fits_is_refused():
    pytest.importorskip("torch")
    options = AutoSlices({"mask": 1})
    with pytest.raises(SituateError, match="no input is called 'mask'"):
        solve_slices("cifar_cnn", CLUSTER, "single", slices=options)


def test_a_method_that_learns_is_refused():
    with pytest.raises(SituateError, match="'post' learns from measurements of one step"):
        solve_slices("cifar_cnn", CLUSTER, "post")


def test_a_misspelt_option_is_refused_before_the_capture() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'time_limits'"):
        solve_slices("no such model", CLUSTER, time_limits=1.0)  # type: ignore[call-arg]
