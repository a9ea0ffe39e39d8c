"""The options of methods that learn."""

from __future__ import annotations

from pathlib import Path

import pytest

from situate.cli.learning_options import ComparisonLearningOptions, LearningOptions
from situate.cli.search_options import SearchBudget
from situate.errors import SituateError
from situate.solvers.learned.driver import SAMPLES
from situate.solvers.learned.learner import Learning

BOTH = ["single", "random", "auto", "post"]


def budget(time_limit: float | None = None, evaluations: int | None = None) -> SearchBudget:
    return SearchBudget(time_limit, evaluations, seed=0, threads=None)


# Options are refused if no method takes them.
def test_without_options_every_method_will_do():
    LearningOptions().check(["heft"], "memory")


def test_an_option_is_refused_where_no_method_takes_it():
    with pytest.raises(SituateError, match=r"--noise: method 'heft' does not learn.*post"):
        LearningOptions(noise=0.0).check(["heft"], "time")
    with pytest.raises(SituateError, match="--curves: none of the methods learns"):
        LearningOptions(curves="x.svg").check(["single", "random"], "time")


def test_random_takes_a_number_of_samples():
    LearningOptions(samples=5).check(["random"], "time")
    assert LearningOptions(samples=5).budget("random", ["random"], budget()).evaluations == 5


@pytest.mark.parametrize("objective", ["memory", "throughput"])
def test_learning_is_for_step_times(objective):
    with pytest.raises(SituateError, match=f"'post' learns from step times.*{objective}"):
        LearningOptions().check(BOTH, objective)


@pytest.mark.parametrize(("option", "near"), [("settings", "tuned"), ("grouping", "metis")])
def test_names_are_checked(option, near):
    with pytest.raises(SituateError, match=f"unknown {option}.*{near!r}"):
        LearningOptions(**{option: near + "s"}).check(["post"], "time")


# The budget of each method.
def test_all_that_learn_and_random_measure_as_many_placements():
    options = LearningOptions(samples=100)
    assert options.budget("post", BOTH, budget()).evaluations == 100
    assert options.budget("random", BOTH, budget()).evaluations == 100
    assert options.budget("auto", BOTH, budget()).evaluations is None


def test_without_a_number_it_is_that_of_the_paper():
    assert LearningOptions().budget("post", BOTH, budget()).evaluations == SAMPLES
    assert LearningOptions().budget("random", BOTH, budget()).evaluations == SAMPLES
    own = budget()
    assert LearningOptions().budget("random", ["random"], own) is own


@pytest.mark.parametrize(("samples", "most"), [(None, 50), (30, 30), (90, 50)])
def test_evaluations_limit_samples_too(samples, most):
    assert (
        LearningOptions(samples=samples).budget("post", ["post"], budget(None, 50)).evaluations
        == most
    )


def test_a_time_limit_holds_unless_samples_are_what_is_compared():
    assert LearningOptions(samples=9).budget("post", ["post"], budget(1.0)).time_limit == 1.0
    assert LearningOptions().budget("post", BOTH, budget(1.0)).time_limit == 1.0
    assert LearningOptions(samples=9).budget("post", BOTH, budget(1.0)).time_limit is None
    assert LearningOptions(samples=9).budget("auto", BOTH, budget(1.0)).time_limit == 1.0


# Options that depend on one another.
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"evaluator": "hardwear"}, "unknown evaluator.*'hardware'"),
        (
            {"evaluator": "hardware", "noise": 0.1},
            "--noise: applies to simulated measure",
        ),
        ({"workers": "two"}, "workers: must be a number from 1 to 4,096, ray, ray:NUMBER or"),
        ({"timeout": 5.0}, "--timeout: applies with --evaluator hardware only"),
        ({"clock": "wal", "controllers": 2}, "unknown clock 'wal'.*'wall'"),
        ({"clock": "virtual"}, "--clock: applies to several controllers: give --controllers"),
    ],
)
def test_the_options_of_an_evaluator_are_its_own(options, words):
    with pytest.raises(SituateError, match=words):
        LearningOptions(**options).check(["post"], "time")


def test_hardware_has_its_options():
    options = LearningOptions(evaluator="hardware", timeout=5.0)
    options.check(["post"], "time")
    assert options.on_hardware
    assert not LearningOptions(evaluator="simulator").on_hardware


# Options become the settings of a solver.
def test_the_solver_is_told_what_was_typed():
    learning = LearningOptions(settings="paper", grouping="metis", groups=7, noise=0.5).learning(
        Path("x")
    )
    assert (learning.settings, learning.grouping, learning.groups) == ("paper", "metis", 7)
    assert (learning.noise, learning.study) == (0.5, Path("x"))
    assert (LearningOptions().learning().settings, LearningOptions().learning().noise) == (
        "tuned",
        0.0,
    )


def test_every_method_that_learns_has_a_study_of_its_own_in_the_folder(tmp_path):
    options = ComparisonLearningOptions(study=str(tmp_path / "a" / "b"))
    assert options.study_of("post") == tmp_path / "a" / "b" / "post.study"
    assert (tmp_path / "a" / "b").is_dir()
    assert options.study_of("heft") is None
    assert ComparisonLearningOptions().study_of("post") is None


def test_a_search_with_settings_takes_them_and_nothing_else():
    options = LearningOptions(settings="paper")
    options.check(["brkga"], "memory")
    assert options.of_search("brkga").settings == "paper"
    assert options.of_search("auto") == Learning()
    assert LearningOptions().of_search("brkga") == Learning()
    with pytest.raises(SituateError, match="--noise: method 'brkga' does not learn"):
        LearningOptions(noise=0.1).check(["brkga"], "time")
    with pytest.raises(SituateError, match="--settings: method 'heft' does not learn"):
        options.check(["heft"], "time")


def test_workers_are_for_auto_too():
    options = LearningOptions(workers="2")
    options.check(["auto"], "memory")
    assert options.of_search("auto") == Learning(workers="2")
    assert options.of_search("brkga") == Learning()
    with pytest.raises(SituateError, match="--workers: method 'heft' does not learn"):
        options.check(["heft"], "time")


def test_controllers_have_a_clock_and_a_bound():
    options = LearningOptions(controllers=3, workers="2", clock="wall", stalest=1)
    learning = options.learning()
    assert (learning.controllers, learning.clock, learning.stalest) == (3, "wall", 1)
    assert LearningOptions(controllers=3, clock="virtual").learning().clock is None


def test_weights_are_for_methods_that_bring_a_network():
    options = LearningOptions(weights="w.safetensors")
    options.check(["heft", "regal"], "memory")
    assert options.of_search("regal") == Learning(weights="w.safetensors")
    assert options.of_search("heft") == Learning()
    for methods in (["brkga"], ["heft", "post"]):
        with pytest.raises(
            SituateError, match="--weights: none of the methods has a pre-trained network"
        ):
            options.check(methods, "time")
