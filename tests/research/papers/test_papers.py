"""The papers' experiments: the page follows from the results, and the checks from the claims."""

from __future__ import annotations

import math
from importlib import import_module

import numpy as np
import pytest

from benchmarks.lib.record import read_record
from research import RESULTS
from research.papers import (
    checks,
    markdown,
    page,
    published,
    spotlight_cifar,
)
from research.papers.cases import Case, calibrated
from research.papers.claims import claim
from research.papers.claims import hierarchical as planner_claims
from research.papers.claims import post as post_claims
from research.papers.claims import seeds as seeds_of
from research.papers.experiment import Experiment, parser
from research.papers.pages import hierarchical as page_hierarchical
from research.papers.pages import post as page_post
from research.papers.tables import Results, spread
from situate.solvers import solve
from situate.solvers.learned.learner import Learning

REDUCTIONS = (33.3, 42.3, 24.0, 63.7, 45.2, 39.5, 34.6, 51.7, 47.0, 47.8, 58.9)
"""The last column of Post's Table 1."""


def test_the_page_is_what_the_results_say():
    assert page.PAGE.read_text() == page.page(), "run python -m research.papers.page"


def test_the_experiments_pictures_are_small():
    names = ("post_", "spotlight_", "load_", "copies_", "placements_")
    pictures = [
        picture for name in names for picture in page.PAGE.parent.glob(f"images/{name}*.svg")
    ]
    assert [picture.name for picture in pictures if picture.stat().st_size > 200_000] == []


@pytest.mark.parametrize("name", ["post_table", "hierarchical_table", "spotlight_cifar"])
def test_a_record_names_all_settings_that_its_methods_were_run_in(name):
    for path in sorted(RESULTS.glob(f"{name}*.json")):
        content = read_record(path)
        run: dict[str, set[str]] = {}
        for row in content["tables"]["runs"]:
            run.setdefault(row["method"], set()).add(row["settings"])
        both = [settings for settings in run.values() if len(settings) > 1]
        assert set().union(*both) <= set(content["options"]["settings"]), path.name


def test_a_file_that_grew_over_several_invocations_names_the_settings_and_cases_of_all(tmp_path):
    options = parser(None, "x", ["a", "b"]).parse_args(["--settings", "paper", "--rows", "b"])
    experiment = Experiment(options, (), lambda case, options: ())
    experiment._rules["a"] = {"case": "a"}
    row = {"case": "a", "method": "spotlight", "settings": "tuned", "seed": 0, "mean": 1.0}
    experiment._runs["a", "spotlight", "tuned", 0] = row
    experiment.options.out = tmp_path / "x.json"
    experiment._write()
    result = read_record(tmp_path / "x.json")["options"]
    assert (result["settings"], result["rows"]) == (["tuned", "paper"], ["a", "b"])


def test_the_timelines_show_the_best_runs_of_the_table():
    table = Results.read(RESULTS / "post_table.json")
    placements = read_record(RESULTS / "post_timeline.json")["tables"]["placements"]
    learnt = {row["case"]: row["seconds"] for row in placements if row["placement"] == "post"}
    spreads = {case: table.spread(case, "post", "tuned") for case in learnt}
    best = {case: result.low for case, result in spreads.items() if result is not None}
    assert learnt == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize(("row", "percent"), [*zip(published.POST, REDUCTIONS, strict=True)])
def test_published_reductions_follow_from_the_published_seconds(row, percent):
    assert 100 * (1 - row.post / row.policy_gradient) == pytest.approx(percent, abs=0.06)


def test_a_calibrated_network_takes_its_published_time_on_one_gpu_and_transfers_as_before():
    case = Case("resnet50", 2, "k80")
    before, after = case.problem(), calibrated(case).problem()
    assert after.seconds[:, 0].sum() == pytest.approx(0.86)
    np.testing.assert_allclose(after.seconds, before.seconds * calibrated(case).factor)
    assert after.transfer_time(0, 0, 1) == before.transfer_time(0, 0, 1)


def test_a_network_that_fitted_no_gpu_is_not_calibrated():
    assert calibrated(Case("nmt2", 2, "k80")).factor == 1


def results(**best: float) -> Results:
    """One case on which the methods have these figures, one GPU takes 2 s and the bound is 1 s."""
    rule = {"case": "inception_v3/4", "single": 2.0, "expert": None, "lower_bound": 1.0}
    run = {"case": "inception_v3/4", "seed": 0}
    runs = [
        {**run, "method": method, "settings": settings, "best": value, "mean": value}
        for method, value in best.items()
        for settings in ("tuned", "paper")
    ]
    return Results([rule], runs)


def claimed(**best: float) -> dict[str, str]:
    """The verdict on each claim of Post's that these means bear on, by the condition that confirms
    it."""
    return {item.confirmed: item.verdict for item in post_claims.claims(results(**best))}


GOOD = {"policy_gradient": 2.2, "ppo": 2.1, "cross_entropy": 1.8, "post": 1.4}
FASTER = "Post, `paper`, below one GPU by 27.4 % to 32.0 %"
SHORTER = "Post below the policy gradient by that much, both `paper`"


def test_claims_are_met_where_post_wins_as_in_the_paper():
    result = claimed(**GOOD)
    assert result["Post, `paper`, below one GPU"] == "yes"
    assert result[FASTER] == result[SHORTER] == "yes"
    assert result["Post's mean the least of the four alone, all `paper`"] == "yes"


def test_claims_are_missed_where_post_does_not():
    result = claimed(policy_gradient=1.5, ppo=1.9, cross_entropy=1.8, post=2.1)
    assert {result[FASTER], result[SHORTER], result["Post, `paper`, below one GPU"]} == {"no"}
    assert result["the policy gradient above both, all `paper`"] == "no"


@pytest.mark.parametrize(
    ("post", "met"), [(1.46, "no"), (1.45, "yes"), (1.37, "yes"), (1.35, "no")]
)
def test_a_range_that_the_paper_prints_is_tested_at_both_ends(post, met):
    assert claimed(**{**GOOD, "post": post})[FASTER] == met


def test_what_compares_unlike_runs_or_holds_by_construction_is_not_counted():
    result = post_claims.claims(results(**GOOD))
    apart = [item.verdict for item in result if item.verdict not in ("yes", "no")]
    assert {"by construction", "unlike"} == set(apart)
    assert claim.counted(result).endswith(f" of {len(result) - len(apart)}")


@pytest.mark.parametrize("verdict", ["by construction", "unlike"])
def test_only_what_counts_is_a_target_of_the_record(verdict):
    statements = [claim.Claim("a", "b", "c", verdict), claim.Claim("d", "e", "f", "yes")]
    assert [target.what for target in claim.targets(statements)] == ["d: e"]
    assert claim.counted(statements) == "1 of 1"


@pytest.mark.parametrize("names", [names for _, names, _ in page.SECTIONS if names])
def test_a_section_that_is_not_measured_names_a_command_that_exists(names, tmp_path):
    text = page.page(tmp_path)
    command, *words = page.COMMANDS.get(names[0], names[0]).split()
    assert f"Not measured yet: `python -m research.papers.{' '.join((command, *words))}`" in text
    module = import_module(f"research.papers.{command}")
    with pytest.raises(SystemExit) as ending:
        module.main([*words, "--help"])
    assert ending.value.code == 0


def test_before_all_rows_have_been_run_no_targets_are_recorded():
    assert post_claims.targets(results(**GOOD)) == []


def test_a_range_is_to_hold_on_every_row():
    result = claim.between("s", "c", {"a": 0.3, "b": 0.5}, 0.3, 0.4)
    assert (result.finding, result.verdict) == ("30.0 % to 50.0 %; within on 1 of 2 rows", "no")


def test_the_planners_reduction_is_that_of_the_paper():
    rows = [row for row in published.HIERARCHICAL if row.network in ("nmt2", "nmt4", "nmt8")]
    result = [100 * planner_claims.published_reduction(row) for row in rows]
    assert result == pytest.approx([60.6, 53.7, -4.9], abs=0.15)


def test_a_time_on_one_gpu_that_was_fitted_stands_in_parentheses():
    text = page.PAGE.read_text()
    assert "| `tuned`, measured times and FLOPs | (0.860) | (0.860) | 0.861 |" in text
    assert "| `tuned`, measured times and FLOPs | 2.345 | OOM | OOM |" in text


def test_a_row_says_how_far_below_the_better_post_is_and_the_bound_allows():
    figures = checks.by_case(results(policy_gradient=2.0, post=1.5))["inception_v3/4"]
    assert figures["below_better"] == pytest.approx(0.25)
    assert figures["allowed"] == pytest.approx(0.5)
    assert figures["allowed_below_policy_gradient"] == pytest.approx(0.5)
    assert figures["best_of_four"] == 1


def seeds(**best: list[float]) -> Results:
    """One case, on which the tuned methods have these figures, seed by seed."""
    run = {"case": "resnet101/8", "settings": "tuned", "mean": 1.0}
    rule = {"case": "resnet101/8", "single": 2.0, "expert": None, "lower_bound": 1.0}
    runs = [
        {**run, "method": method, "seed": seed, "best": value}
        for method, values in best.items()
        for seed, value in enumerate(values)
    ]
    return Results([rule], runs)


def test_a_lead_is_chance_as_often_as_the_seconds_dealt_anew_lead_by_as_much():
    assert seeds_of.chance([1.0, 2.0], [3.0, 4.0]) == pytest.approx(1 / 6)
    assert seeds_of.chance([1.0, 1.0], [1.0, 1.0]) == 1


def test_a_method_is_surely_ahead_where_it_is_of_each_other():
    low, high = [1.0, 1.1, 1.2, 1.3, 1.4], [1.5, 1.6, 1.7, 1.8, 1.9]
    cases = {"ResNet-101, 8": "resnet101/8"}
    sure = seeds_of.sure(seeds(post=low, ppo=high, cross=high), cases, "post", ("ppo", "cross"))
    assert sure == "1 of 1 rows"
    near = seeds(post=low, ppo=high, cross=low)
    assert seeds_of.sure(near, cases, "post", ("ppo", "cross")).startswith("0 of 1 rows")


@pytest.mark.parametrize(("cross", "finding"), [(0.0, "1 of 1 rows"), (0.5, "0 of 1 rows")])
def test_a_method_is_surely_behind_where_one_of_the_others_is_ahead_of_it(cross, finding):
    seconds = [1.5, 1.6, 1.7, 1.8, 1.9]
    runs = seeds(post=seconds, ppo=seconds, cross=[s - 0.5 + cross for s in seconds])
    cases = {"ResNet-101, 8": "resnet101/8"}
    assert seeds_of.behind(runs, cases, "post", ("ppo", "cross")).startswith(finding)


def test_the_page_says_what_part_of_what_is_possible_each_of_the_methods_takes():
    rows = [row for row in published.POST if row.network == "resnet101"]
    result = seeds(policy_gradient=[1.9], ppo=[1.8], cross_entropy=[1.7], post=[1.5])
    assert page_post.share_of_bound(result, rows) == "10.0 % to 50.0 %"
    assert page_post.share_of_bound(result, rows, ("post",)) == "50.0 %"


@pytest.mark.parametrize(("mean", "is_mentioned"), [(1.3, True), (1.4, False)])
def test_the_page_says_where_no_placement_is_as_far_below_the_policy_gradient(mean, is_mentioned):
    rows = [row for row in published.POST if (row.network, row.gpus) == ("inception_v3", 4)]
    sentence = page_post.ruled_out(results(policy_gradient=mean, post=1.2), rows)
    assert ("`tuned` one here on 1 of 1 rows." in sentence) == is_mentioned


def test_a_seed_that_found_nothing_that_fits_makes_the_mean_infinite():
    result = spread([1.0, None])
    assert result is not None
    assert (result.low, result.mean) == (1.0, math.inf)


def test_the_page_names_the_rows_in_which_seeds_of_the_planner_failed_often():
    names = ("flops", "uncalibrated_single", "factor", "lower_bound", *page_hierarchical.RULES)
    run = {
        "case": "nmt4/4",
        "method": "hierarchical",
        "settings": "tuned",
        "best": 1.0,
        "mean": 1.0,
    }
    runs = [
        {**run, "seed": 0, "samples": 4, "failures": 3},
        {**run, "seed": 1, "samples": 4, "failures": 0},
    ]
    tables = {"rules": [{"case": "nmt4/4", **dict.fromkeys(names, 1.0)}], "runs": runs}
    result = Results(tables["rules"], tables["runs"])
    rows = [row for row in published.HIERARCHICAL if row.network == "nmt4"]
    text = "\n".join(page_hierarchical.failing(result, rows))
    assert text == "- NMT, 4 layers, 4 GPUs: 1 of 2 (`tuned`): 75.0 % of the samples."


def test_spotlights_curves_are_drawn_in_all_settings_that_were_run():
    case = spotlight_cifar.CASE.name
    run = {"case": case, "method": "spotlight", "seed": 0, "mean": 1.0}
    runs = [{**run, "settings": settings} for settings in ("paper", "tuned")]
    settings = [column[1] for column in spotlight_cifar.columns(Results([], runs))]
    assert settings == ["tuned", "paper"]
    assert len(spotlight_cifar.columns(Results([], runs[:1]))) == 1


@pytest.mark.parametrize("name", ["tuned", "paper"])
def test_the_tables_name_the_kind_that_learners_are_of_in_each_settings(name):
    problem = Case("cifar_cnn", 4, "k80").problem()
    result = solve(problem, "post", evaluations=12, learning=Learning(settings=name))
    assert markdown.settings(name) == f"`{name}`, {result.knows}"


def test_every_network_has_a_title():
    assert {row.network for row in (*published.POST, *published.HIERARCHICAL)} <= set(
        published.TITLES
    )
