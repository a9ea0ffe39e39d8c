"""The ablation of the planner's settings: candidates have the settings of their names, verdicts are
hand-made."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

pytest.importorskip("torch")

from research.papers.cases import Case
from research.papers.pages import planner as page
from research.papers.planner import candidates, planner_ablation, planner_presets
from research.papers.planner.candidates import CANDIDATES, MIXED, PUBLISHED, Candidate, Trial


@pytest.mark.parametrize("candidate", CANDIDATES, ids=candidates.NAMES)
def test_a_candidate_differs_from_the_published_settings_in_what_it_says(candidate):
    changed = replace(MIXED, **candidate.changes)
    differing = {
        f.name for f in fields(MIXED) if getattr(changed, f.name) != getattr(MIXED, f.name)
    }
    assert differing == candidate.changes.keys()
    assert bool(differing) == (candidate.name != PUBLISHED)


def test_a_trial_says_what_it_measured_and_the_same_every_time():
    small = Candidate("small", "", "", {"hidden": 8, "groups": 4})
    trial = Trial(small, Case("cifar_cnn", 2, "k40"), seed=0, samples=126)
    result = dict(candidates.row(trial))
    assert len(result["mean_curve"]) == len(result["best_curve"]) == 3
    assert result["first_mean"] == result["mean_curve"][0]
    assert 0 <= result["last_entropy"] <= np.log(3)
    assert 1 <= result["last_groups"] <= 4
    assert 0 < result["best"] <= result["first_best"]
    assert {**result, "seconds": 0} == {**candidates.row(trial), "seconds": 0}


def run(candidate, first, last, case="rnnlm/2", best=1.0):
    return {
        "case": case,
        "candidate": candidate,
        "seed": 0,
        "start_mean": 4.0,
        "first_mean": first,
        "last_mean": last,
        "best": best,
        **{f"{when}_entropy": 0.5 for when in page.WHEN},
        **{f"{when}_groups": 7 for when in page.WHEN},
    }


RUNS = [run(PUBLISHED, 2.0, 3.0), run("no noise", 2.0, 1.5), run("C = 1", 2.0, 2.0, best=None)]
SETTINGS = [
    {"candidate": PUBLISHED, "published": "–", "source": "–"},
    {"candidate": "no noise", "published": "p", "source": "s"},
    {"candidate": "C = 1", "published": "p", "source": "s"},
]


def test_the_target_is_missed_where_the_mean_does_not_fall():
    (target,) = planner_ablation.targets(RUNS)
    assert (target.measured, target.met) == ("0 of 1", False)


def test_the_page_says_with_which_changes_the_mean_falls():
    names = page.ablation({"tables": {"settings": SETTINGS, "runs": RUNS}})
    assert (names["published"], names["learns"]) == ("0 of 1", "no noise")
    lines = names["table"].splitlines()
    assert (
        lines[-2]
        == "|  | no noise | p | s | 4.000 | 2.000 | **1.500** | 1.000 | 0.50, 0.50 | 7, 7 |"
    )
    assert lines[-1] == "|  | C = 1 | p | s | 4.000 | 2.000 | 2.000 | OOM | 0.50, 0.50 | 7, 7 |"


# The presets: each is a row, and a record says which cases are left.


def test_every_preset_has_settings_of_its_own():
    settings = list(candidates.PRESETS.values())
    assert all(a != b for i, a in enumerate(settings) for b in settings[:i])


def test_a_trial_of_a_preset_is_a_row_of_its_record():
    trial = planner_presets.Trial("tuned", Case("cifar_cnn", 2, "k40"), 0, 60)
    row = planner_presets.row(trial)
    assert (row["case"], row["settings"], row["seed"], row["samples"]) == (*trial.key, 60)
    assert row["best"] > 0


def test_the_page_has_a_line_for_each_preset_and_names_the_cases_left():
    runs = [{**run("", 2.0, 1.5), "settings": name} for name in ("paper", "text and release mixed")]
    names = page.presets({"tables": {"runs": runs}})
    lines = names["table"].splitlines()[2:]
    assert [line.split("|")[2].strip() for line in lines] == ["`paper`", "text and release mixed"]
    assert "`nmt8/8`" in names["left"]
    assert "`rnnlm/2`" not in names["left"]
