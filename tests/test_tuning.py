"""The searches for `tuned` settings: candidates have the settings of their names, scores are
hand-made ones."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest

from benchmarks.lib.record import ROOT, read_record
from research import RESULTS
from research.learning import tune_climbing, tune_sequence, tune_softmax, tuning
from situate.bounds.lower_bound import lower_bound

EASY, HARD = ("vit", "k80-4"), ("gpt2", "k80-4")
FOUND = {
    "post tuned": {EASY: [(1.0, 2.0), (3.0, 4.0)], HARD: [(6.0, 6.0), (6.0, 6.0)]},
    "post groups 64": {EASY: [(3.0, 3.0), (3.0, 3.0)], HARD: [(5.0, 5.0), (5.0, 7.0)]},
}
SCORE = "best, % above"


def recorded(name: str) -> dict[str, dict[str, Any]]:
    """By candidate, the result of a search for settings."""
    result = read_record(RESULTS / f"{name}.json")
    return {row["candidate"]: row for row in result["tables"]["candidates"]}


def page(method: str) -> str:
    """A method's page, on one line but for its tables."""
    text = (ROOT / "docs" / "methods" / f"{method}.md").read_text()
    return re.sub(r"(?<!\|)\n(?!\|)", " ", text)


def learnt(trial: tuning.Trial) -> tuning.Outcome:
    """The outcome of a trial."""
    return tuning.learn({trial.problem: tuning.problem(*trial.problem)}, trial)


def test_a_score_is_the_mean_of_per_cents_above_the_best_mean_of_a_candidates_seeds():
    tuned, groups = tuning.scores(FOUND)
    assert tuned["best, % above"] == pytest.approx((0 + 20) / 2)
    assert tuned["last 60, % above"] == pytest.approx((50 + 20) / 2)
    assert tuned["gpt2 k80-4"] == pytest.approx(20)
    assert groups["best, % above"] == pytest.approx((50 + 0) / 2)


def test_the_standard_error_of_a_score_comes_from_what_differs_between_seeds():
    (row,) = tune_sequence.methods({"post tuned": FOUND["post tuned"]})
    deviation = 100 * 2**0.5 / 2
    assert row["standard error"] == pytest.approx((deviation**2 / 2 / 2**2) ** 0.5)


def test_the_target_names_the_best_candidate_and_is_missed_where_tuned_is_far_above_it():
    (row,) = tune_sequence.methods({**FOUND, "post tuned": {**FOUND["post tuned"], EASY: [(9, 9)]}})
    target = tune_sequence.target(row)
    assert "post groups 64" in target.what
    assert not target.met


def test_a_trial_gives_its_best_time_and_the_mean_of_its_last_60_and_the_same_every_time():
    make = tune_softmax.make(tune_softmax.candidates()["post tuned"])
    trial = tuning.Trial("post tuned", make, ("branching 4", "k80-2"), seed=0, samples=120)
    best, last = learnt(trial)
    assert 0 < best < last
    assert learnt(trial) == (best, last)


def test_a_noisy_trial_is_judged_by_what_its_placements_truly_take():
    make = tune_climbing.candidates()["hill_climbing groups 96"]
    noisy = tuning.Trial("noisy", make, ("branching 4", "k80-2"), 0, 120, noise=0.5)
    on = tuning.problem(*noisy.problem)
    best, _ = learnt(noisy)
    assert best >= lower_bound(on)
    assert best == learnt(noisy)[0]


@pytest.mark.parametrize("name", [*tune_climbing.candidates()])
def test_every_candidate_of_hill_climbing_learns(name):
    trial = tuning.Trial(name, tune_climbing.candidates()[name], ("branching 4", "k80-2"), 0, 120)
    best, last = learnt(trial)
    assert 0 < best < last


def test_groups_that_move_one_by_one_have_one_scale():
    problem = tuning.problem("branching 4", "k80-2")
    alone, blocks = (
        tune_climbing.make(40, blocks=several)(problem, 60, 0) for several in (False, True)
    )
    assert alone.batch == blocks.batch - 2


@pytest.mark.parametrize("name", [*tune_sequence.candidates()])
def test_every_candidate_of_the_sequence_models_differs_from_tuned_as_it_says(name):
    result = tune_sequence.candidates()
    tuned = result[f"{name.split()[0]} tuned"]
    differing = [
        f.name for f in fields(tuned) if getattr(result[name], f.name) != getattr(tuned, f.name)
    ]
    if name.endswith(" tuned"):
        assert differing == []
    elif " paper" in name:
        assert {"learning_rate", "normalise"} <= set(differing)
    else:
        assert len(differing) == 1


def test_softmax_candidates_have_names_of_their_own_and_differ():
    result = tune_softmax.candidates()
    assert len({(name.split()[0], repr(settings)) for name, settings in result.items()}) == len(
        result
    )


def test_candidates_are_told_no_costs_but_for_the_one_that_says_so():
    result = tune_softmax.candidates()
    told = {name for name, settings in result.items() if settings.grouping != "structure"}
    assert told == {name for name in result if name.endswith("grouping heavy-edge")}


def test_methods_that_update_alike_have_the_same_candidates():
    result = tune_softmax.candidates()
    changes = {
        method: {
            name.removeprefix(f"{method} ") for name in result if name.startswith(f"{method} ")
        }
        for method in tune_softmax.TUNED
    }
    own = {name for name in changes["policy_gradient"] if not name.startswith("learning_rate")}
    assert all(own <= others for others in changes.values())
    assert changes["cross_entropy"] <= changes["post"]


@pytest.mark.parametrize("method", ["spotlight", "colocrl", "hierarchical"])
def test_the_page_of_a_sequence_model_has_the_scores_of_all_its_candidates(method):
    columns = (SCORE, *map(" ".join, tune_sequence.PROBLEMS))
    scores = sorted(
        tuple(f"{row[column]:.1f}" for column in columns)
        for name, row in recorded("tune_sequence").items()
        if name.split()[0] == method
    )
    lines = re.findall(r"^\| [^|]+ \|((?: -?\d+\.\d \|){5})$", page(method), re.MULTILINE)
    assert sorted(tuple(re.findall(r"[\d.]+", line)) for line in lines) == scores


def test_the_page_of_post_has_what_minimising_more_often_brings_where_samples_are_few():
    rows = recorded("tune_softmax_240")
    often, seldom = (
        [rows[f"{method} {settings}"][SCORE] for method in ("post", "cross_entropy")]
        for settings in ("tuned", "minimisations 0")
    )
    assert (
        f"{often[0]:.1f} % above the best of {len(rows)} settings in the mean instead of "
        f"{seldom[0]:.1f} %, and cross-entropy alone {often[1]:.1f} % instead of {seldom[1]:.1f} %"
    ) in page("post")


def test_the_page_of_hill_climbing_has_what_noise_does_to_it():
    scores = [
        recorded("tune_climbing_noisy")[name][SCORE]
        for name in ("post tuned", "cross_entropy tuned", "hill_climbing groups 384")
    ]
    assert (
        "Post is {:.1f} % above the best on the same problems in the mean, cross-entropy {:.1f} % "
        "and hill climbing {:.1f} %"
    ).format(*scores) in page("hill_climbing")


def test_the_page_of_hill_climbing_has_the_scores_of_all_its_candidates():
    scores = []
    for row in recorded("tune_climbing").values():
        each = [row[" ".join(problem)] for problem in tune_softmax.PROBLEMS]
        scores.append((f"{row[SCORE]:.1f}", f"{min(each):.1g}", f"{max(each):.1f}"))
    lines = re.findall(r"^\| [^|]+ \|((?: [\d.]+ \|){3})$", page("hill_climbing"), re.MULTILINE)
    result = [tuple(re.findall(r"[\d.]+", line)) for line in lines]
    assert sorted((mean, f"{float(low):.1g}", high) for mean, low, high in result) == sorted(scores)
