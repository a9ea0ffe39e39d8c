"""Benchmarks of layouts: rows of the table as runs, and the fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.layouts.cells import Cell, Unpriced, cell_of
from benchmarks.layouts.choices import (
    Question,
    fastest_by_division,
    place_of_division,
    questions_of,
    searched_row,
)
from benchmarks.layouts.choices import summary as choice_summary
from benchmarks.layouts.megatron_tests import megatron_test
from benchmarks.layouts.memory import is_resumed, margin, margin_row, predicted_gib, summary
from benchmarks.layouts.models import CONFIGS, named_model
from benchmarks.layouts.programs import nemo_software
from benchmarks.layouts.programs import test_workspace as workspace_of_test
from benchmarks.layouts.seconds import (
    PARTS,
    Runs,
    crossed,
    fit,
    ranks_within_models,
    runs_of,
    spearman,
    total,
)
from benchmarks.layouts.steps import formula_seconds, simulated_seconds, with_factors
from benchmarks.layouts.steps import summary as step_summary
from benchmarks.lib.record import RESULTS, ROOT, read_record
from situate.language.training.layout import Layout
from situate.language.training.memory import MARGIN
from situate.language.training.search import search
from situate.language.training.software import SOFTWARE

FIELDS = (
    *("source", "path", "framework", "hardware", "gpus", "model", "params_b", "layers", "hidden"),
    *("heads", "vocab", "seq", "global_batch", "micro_batch", "dp", "shard", "tp", "pp", "vp"),
    *("cp", "ep", "recompute", "offload", "precision", "step_s", "tok_s_gpu", "tflops_gpu"),
    *("peak_gib", "pred_step_s", "pred_gib", "note"),
)

VTRAIN = {
    "source": "VIA-Research/vTrain", "hardware": "A100, 8/host", "gpus": "8", "model": "GPT",
    "layers": "20", "hidden": "2048", "heads": "16", "seq": "1024", "global_batch": "8",
    "micro_batch": "1", "dp": "1", "tp": "2", "pp": "4", "recompute": "full",
    "step_s": "0.221935232",
}  # fmt: skip
TITAN = {
    "source": "pytorch/torchtitan", "hardware": "H100-96GB HBM2e 500W", "gpus": "8",
    "model": "Llama3.1-8B", "layers": "32", "hidden": "4096", "seq": "8192", "micro_batch": "2",
    "dp": "8", "tp": "1", "pp": "1", "cp": "1", "recompute": "selective", "precision": "bf16",
    "tok_s_gpu": "6667", "peak_gib": "77.0", "note": "compile",
}  # fmt: skip
TEST = {
    "source": "NVIDIA/Megatron-LM", "framework": "Megatron-Core functional test",
    "path": "tests/functional_tests/x/golden_values_lts_dgx_a100.json", "hardware": "A100 DGX",
    "gpus": "8", "model": "gpt3_mcore_te_tp1_pp4_vp1_dist_optimizer", "layers": "12",
    "hidden": "512", "heads": "8", "seq": "1024", "global_batch": "32", "micro_batch": "4",
    "shard": "distributed optimizer", "tp": "1", "pp": "4", "vp": "1", "cp": "1", "ep": "1",
    "recompute": "no", "precision": "bf16", "step_s": "0.16588", "peak_gib": "3.644",
}  # fmt: skip


def row(values: dict[str, str]) -> dict[str, str]:
    return dict.fromkeys(FIELDS, "") | values


# Rows as runs.
def test_a_row_is_a_run_with_its_layout():
    cell = cell_of(row(VTRAIN))
    assert (cell.run.layout.count, cell.run.layout.devices) == (8, 8)
    assert cell.seconds == 0.221935232
    assert cell.run.recipe.software.attention == "scores"


def test_bert_has_a_dense_layer_and_a_pooler_before_its_outputs():
    test = megatron_test(row(TEST | {"model": "bert_mcore_tp4_pp1", "tp": "4", "pp": "1"}))
    assert test is not None
    assert test.model.head_weights >= 2 * 512**2


def test_the_second_run_of_a_test_is_a_resumed_one():
    path = TEST["path"].replace("a100.json", "a100_2nd.json")
    assert is_resumed(cell_of(row(TEST | {"path": path})))
    assert not is_resumed(cell_of(row(TEST)))


def test_tokens_become_seconds():
    cell = cell_of(row(TITAN))
    assert cell.seconds == pytest.approx(16 * 8192 / (6667 * 8))
    assert cell.reserved


@pytest.mark.parametrize(
    ("shard", "recipe", "zero"),
    [("", "megatron", 0), ("ZeRO-2", "deepspeed", 2), ("FSDP2", "fsdp2", 3)],
)
def test_other_sources_are_read_by_their_columns(shard, recipe, zero):
    other = VTRAIN | {
        "source": "nobody",
        "hardware": "L4-24GB",
        "shard": shard,
        "precision": "fp16",
    }
    cell = cell_of(row(other))
    assert cell.machine.name == "L4"
    assert (cell.run.recipe.name, cell.run.layout.zero) == (recipe, zero)
    assert cell.run.recipe.precision == "fp16"
    assert not cell.precise


def test_memory_of_a_test_is_that_of_its_last_rank():
    cell = cell_of(row(TEST))
    assert cell.last_stage
    assert cell.run.layout.vp == 3
    assert predicted_gib(cell) == pytest.approx(3.644, rel=0.02)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (VTRAIN | {"source": "nobody", "hardware": "T4 + V100"}, "unequal GPUs"),
        (VTRAIN | {"source": "nobody", "recompute": "3/2/0/0 layers"}, "recompute 3/2/0/0"),
        (VTRAIN | {"hardware": "abacus"}, "hardware abacus"),
        (VTRAIN | {"micro_batch": ""}, "micro_batch is not published"),
        (VTRAIN | {"global_batch": "9", "dp": "2"}, "no multiple of its micro-batches"),
        (TITAN | {"model": "Nobody-7B"}, "model Nobody-7B"),
        (TEST | {"model": "t5_mcore"}, "test without a decoder"),
    ],
)
def test_a_row_without_its_settings_is_left_out(values, reason):
    with pytest.raises(Unpriced, match=reason):
        cell_of(row(values))


def test_dispatchers_of_tokens_are_those_of_the_recipes():
    grace = nemo_software("Qwen3_235B_a22B", "GB200", "26.04.01")
    assert grace.expert_wait == 0
    assert nemo_software("Qwen3_235B_a22B", "B200", "26.04.01").expert_wait > 0
    first, second = (nemo_software("Qwen3_30B_a3B", "B200", v) for v in ("26.02", "26.02.01"))
    assert first.expert_wait > second.expert_wait == 0
    new = nemo_software("GPT OSS 120B", "B200", "26.08")
    assert new.name == "nemo-all-to-all"
    assert new.expert_passes < grace.expert_passes


def test_all_models_of_tables_can_be_read():
    assert all(named_model(name) is not None for name in CONFIGS)
    assert named_model("LLAMA3_70B").parameters / 1e9 == pytest.approx(70.55, rel=1e-3)
    assert named_model("nobody") is None


def test_the_name_of_a_test_has_its_settings():
    experts = TEST | {"model": "gpt3_mcore_te_tp2_pp1_te_8experts2parallel_top2router", "tp": "2"}
    test = megatron_test(row(experts | {"pp": "1", "vp": "", "ep": "2"}))
    assert (test.model.experts.count, test.model.experts.used) == (8, 2)
    assert test.run.layout.sp
    assert not megatron_test(row(TEST | {"model": "gpt3_mcore_te_scoped_cudagraph"})).precise


def test_settings_of_a_test_are_those_of_its_configuration():
    latent = TEST | {
        "model": "gpt3_mcore_te_tp2_pp2_ep4_etp1_mtp_resume_torch_dist_fp8", "layers": "16",
        "hidden": "1024", "heads": "32", "seq": "4096", "tp": "2", "pp": "2", "vp": "", "ep": "4",
    }  # fmt: skip
    test = megatron_test(row(latent))
    assert test.precise
    assert (test.model.latent, test.model.head, test.model.value_head) == (2112, 192, 128)
    assert (test.run.layout.mtp, test.run.layout.vp) == (1, 4)
    assert test.model.vocabulary == 51712
    assert test.run.recipe.software.attention == "scores"
    assert not test.run.recipe.software.dropout


def test_latent_attention_of_a_small_model_is_priced_closely():
    latent = TEST | {
        "model": "gpt3_mcore_te_tp2_pp2_mla", "layers": "4", "tp": "2", "pp": "2", "vp": "",
        "shard": "DDP", "peak_gib": "1.1625", "hardware": "H100 DGX", "note": "median of 47 steps",
        "path": "tests/functional_tests/x/golden_values_dev_dgx_h100.json",
    }  # fmt: skip
    assert predicted_gib(cell_of(row(latent))) == pytest.approx(1.1625, rel=0.01)


def test_offloading_leaves_few_activations_on_the_device():
    offloading = TEST | {
        "model": "gpt3_moe_mcore_te_tp2_pp2_ep4_etp1_fine_grained_offloading", "layers": "15",
        "hidden": "1024", "heads": "32", "seq": "4096", "micro_batch": "1", "global_batch": "8",
        "tp": "2", "pp": "2", "vp": "", "ep": "4", "recompute": "selective", "peak_gib": "7.749",
        "hardware": "H100 DGX",
    }  # fmt: skip
    cell = cell_of(row(offloading))
    # Six layers and a predictor are on the last stage.
    assert cell.model.layers == 12
    assert predicted_gib(cell) == pytest.approx(7.749, rel=0.05)


def test_workspaces_are_larger_since_hopper():
    assert workspace_of_test("A100 DGX", False, 1) < workspace_of_test("H100", False, 1)
    assert workspace_of_test("H100", False, 3) - workspace_of_test("H100", False, 1) == 2**26


# Fits.
def handmade(factor: float, families: int = 40) -> Runs:
    """Runs whose matrices take `factor` times as long as by the formulas."""
    cell = cell_of(row(VTRAIN))
    runs = runs_of([cell] * 2 * families)
    generator = np.random.default_rng(0)
    parts = runs.parts * generator.uniform(0.5, 2, runs.parts.shape)
    parts[:, PARTS.index("launches")] = 0
    factors = np.ones(len(PARTS))
    factors[0] = factor
    cells = [type(cell)(**vars(cell) | {"family": str(i % families)}) for i in range(2 * families)]
    return Runs(cells, parts, total(parts, factors))


def test_a_fit_finds_a_factor():
    assert fit(handmade(2.0))[0] == pytest.approx(2.0, rel=0.15)


def test_cross_validation_predicts_each_family_by_the_others():
    runs = handmade(2.0)
    ratio = crossed(runs, lambda cell: cell.family)
    assert np.abs(ratio - 1).max() < 0.2
    # One family alone has no others, so that all factors are 1.
    alone = crossed(handmade(2.0, families=1), lambda cell: cell.family)
    assert alone.max() < 1
    assert alone.mean() < 0.9


def test_layouts_are_ranked_by_the_medians_of_their_runs():
    cells = [cell_of(row(VTRAIN | {"global_batch": str(8 * i)})) for i in (1, 1, 1, 2, 3)]
    seconds = np.array([1.0, 2.0, 3.0, 3.0, 2.0])
    runs = Runs(cells, np.ones((5, len(PARTS))), seconds)
    # Tokens/s of 8, 16 and 24 samples: 4, 5.3 and 12; the predictions are in the other order.
    ratio = np.array([1.0, 2.0, 3.0, 6.0, 18.0])
    assert ranks_within_models(runs, np.ones(5)) == [pytest.approx(1)]
    assert ranks_within_models(runs, ratio) == [pytest.approx(-1)]


def test_rank_correlations():
    values = np.array([1.0, 2.0, 3.0, 4.0])
    assert spearman(values, values**2) == pytest.approx(1)
    assert spearman(values, -values) == pytest.approx(-1)


def test_a_summary_counts_errors():
    figures = summary(np.array([1.0, 1.04, 0.9, 0.5]))
    assert figures["within_5_percent"] == 0.5
    assert figures["over_5_percent_too_low"] == 0.5


# Places of the best published layouts.
def published_runs(seconds: dict[int, float]) -> list[Cell]:
    """Runs of one model in 8 GPUs by degrees of tensor parallelism."""
    return [
        cell_of(row(VTRAIN | {"tp": str(tp), "pp": str(8 // tp), "step_s": str(value)}))
        for tp, value in seconds.items()
    ]


def question_of(seconds: dict[int, float], predicted: list[float]) -> Question:
    (question,) = questions_of(published_runs(seconds), np.array(predicted))
    return question


def test_the_place_of_the_fastest_layout_is_by_predicted_seconds():
    question = question_of({1: 3.0, 2: 1.0, 4: 2.0}, [5.0, 4.0, 3.0])
    assert question.cells[question.fastest].run.layout.tp == 2
    assert question.place == 2
    # The predicted best, with tp=4, takes 2 s in place of 1 s.
    assert question.regret == pytest.approx(1)


def test_runs_of_one_layout_are_its_median():
    cells = [cell for _ in range(3) for cell in published_runs({2: 1.0})]
    cells[0] = replace(cells[0], seconds=9.0)
    (question,) = questions_of([*cells, *published_runs({4: 1.5})], np.ones(4))
    assert question.seconds.tolist() == [1.0, 1.5]


def test_runs_of_other_batches_are_other_questions():
    cells = [cell_of(row(VTRAIN | {"global_batch": batch})) for batch in ("8", "16")]
    assert len(questions_of(cells, np.ones(2))) == 2


def test_questions_are_summed_up():
    wrong = question_of({1: 3.0, 2: 1.0}, [1.0, 2.0])
    right = question_of({1: 4.0, 2: 3.0, 4: 2.0, 8: 1.0}, [4.0, 3.0, 2.0, 1.0])
    figures = choice_summary([wrong, right])
    assert figures["first"] == 0.5
    # Two of two layouts are among three, so that the question says nothing.
    assert (figures["large_questions"], figures["among_three"]) == (1, 1)
    assert figures["among_three_by_chance"] == 0.75
    assert figures["largest_regret"] == pytest.approx(2)


def test_a_division_is_placed_by_its_fastest_layout():
    cell = cell_of(row(TITAN))
    best = fastest_by_division(search(cell.model, cell.run, cell.machine, 16).best)
    first, second = (price.run.layout for price in [*best.values()][:2])
    assert place_of_division(replace(first, recompute="full"), 1e9, best) == 1
    assert place_of_division(second, 1e9, best) == 2
    # A published layout that is predicted to be faster than all that fit is the first.
    assert place_of_division(second, 1e-9, best) == 1
    assert place_of_division(Layout(dp=3), 1e9, best) == 1 + len(best)


def test_a_program_is_asked_only_for_layouts_that_it_runs():
    cell = cell_of(row(TITAN))
    composer = replace(cell.run, recipe=replace(cell.run.recipe, software=SOFTWARE["composer"]))
    for run, several in ((cell.run, True), (composer, False)):
        (question,) = questions_of([replace(cell, run=run)], np.ones(1))
        figures = searched_row(question)
        assert (figures["divisions"] > 1) == several
        assert figures["place"] == 1


# Runs as graphs.
def test_a_published_pipeline_is_simulated():
    cell = cell_of(row(VTRAIN))
    assert simulated_seconds(cell) == pytest.approx(formula_seconds(cell), rel=0.2)
    slower = with_factors(cell, np.full(len(PARTS), 2.0))
    assert simulated_seconds(slower) > simulated_seconds(cell)


def test_errors_of_both_predictions_are_summed_up():
    rows = [
        {"source": source, "seconds": 1.0, "formulas": 1.1, "simulated": simulated}
        for source, simulated in (("a", 1.2), ("b", 1.0))
    ]
    figures = step_summary(rows)
    assert [figure["source"] for figure in figures] == ["a", "b", "all"]
    assert figures[-1]["runs"] == 2
    assert figures[0]["simulated_error"] == pytest.approx(0.2)
    assert figures[-1]["formulas_error"] == pytest.approx(0.1)


# The margin of memory.
def test_a_margin_is_the_rank_that_new_runs_stay_below():
    ratio = 1 / np.arange(1.0, 100.0)
    assert margin(ratio, 0.9) == pytest.approx(90)
    assert margin(ratio, 0.999) == pytest.approx(99)


def test_a_margin_is_judged_by_other_models():
    cells = [replace(cell_of(row(TEST)), family=str(i % 20)) for i in range(200)]
    ratio = np.full(200, 1.0)
    ratio[::20] = 0.5
    figures = margin_row(cells, ratio, 0.95)
    # The family whose memory is twice the prediction is above the margin of the others.
    assert figures["margin"] == 2
    assert figures["below"] == pytest.approx(0.95)
    assert figures["below_by_family"] == pytest.approx(0.95)


def test_the_margin_in_use_is_that_of_the_record():
    rows = read_record(RESULTS / "layout_memory.json")["tables"]["margin"]
    figures = next(each for each in rows if each["level"] == 0.99)
    assert 0 <= MARGIN - figures["margin"] < 0.01
    page = (ROOT / "docs" / "layouts.md").read_text()
    for each in rows:
        assert (
            f"| {100 * each['level']:.0f} % | {each['margin']:.2f} | {100 * each['below']:.1f} % "
            f"| {100 * each['below_by_family']:.1f} % "
            f"| {100 * each['over_5_percent_too_low']:.1f} % |"
        ) in page


# The page quotes the records.
def row_of_page(start: str) -> list[str]:
    lines = (ROOT / "docs" / "layouts.md").read_text().splitlines()
    line = next(line for line in lines if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.split("|")[1:-1]]


@pytest.mark.parametrize(
    ("start", "source", "settings"),
    [
        ("Megatron-LM's tests, all", "Megatron tests", "published"),
        ("Megatron-LM's tests, others", "Megatron tests", "other"),
        ("torchtitan | 18", "torchtitan", "published"),
        ("all that start anew", "all", "not resumed"),
        ("all that continue", "all", "resumed"),
        ("all |", "all", "all"),
    ],
)
def test_memory_on_the_page_is_that_of_the_record(start, source, settings):
    rows = read_record(RESULTS / "layout_memory.json")["tables"]["summary"]
    figures = next(r for r in rows if (r["source"], r["settings"]) == (source, settings))
    shares = ("within_5_percent", "within_10_percent")
    assert row_of_page(start)[1:] == [
        f"{figures['runs']}",
        f"{100 * figures['median_error']:.1f} %",
        *(f"{100 * figures[key]:.0f} %" for key in shares),
        f"{100 * figures['over_5_percent_too_low']:.1f} %",
    ]


@pytest.mark.parametrize(
    ("start", "software", "source"),
    [
        ("Megatron-DeepSpeed, 2021", "megatron-2021", "vTrain"),
        ("NeMo before", "megatron-2025", "Megatron-Bridge"),
        ("NeMo since", "megatron", "Megatron-Bridge"),
        ("torchtitan | torchtitan", "torchtitan", "torchtitan"),
        ("Composer", "composer", "llm-foundry"),
    ],
)
def test_times_on_the_page_are_those_of_the_record(start, software, source):
    rows = read_record(RESULTS / "layout_seconds.json")["tables"]["summary"]
    model, gpu = (
        next(r for r in rows if (r["software"], r["source"], r["left_out"]) == (*key, kind))
        for key in [(software, source)]
        for kind in ("by model", "by GPU")
    )
    cells = row_of_page(start)
    assert cells[2:4] == [f"{model['runs']:,}", f"{model['families']}"]
    assert float(cells[4].split()[0]) == pytest.approx(100 * model["median_error"], rel=0.05)
    assert cells[5] == f"{100 * model['p90_error']:.0f} %"
    assert cells[6] == f"{model['spearman']:.2f}"
    inner = model["median_spearman_in_model"]
    assert cells[7] == ("-" if inner is None else f"{inner:.2f}")
    assert float(cells[8].split()[0]) == pytest.approx(100 * gpu["median_error"], rel=0.05)


@pytest.mark.parametrize(
    ("start", "source"),
    [
        ("vTrain, A100 |", "vTrain"),
        ("Megatron-Bridge, B200 and GB200 |", "Megatron-Bridge"),
        ("Megatron-LM, papers |", "Megatron tables"),
        ("torchtitan, H100 |", "torchtitan"),
    ],
)
def test_places_among_published_layouts_are_those_of_the_record(start, source):
    rows = read_record(RESULTS / "layout_choices.json")["tables"]["summary"]
    figures = next(r for r in rows if r["source"] == source)
    shares = [figures[key] for key in ("among_three", "among_three_by_chance")]
    assert row_of_page(start)[1:] == [
        f"{figures['questions']}",
        f"{figures['layouts']:,}",
        f"{100 * figures['first']:.0f} %",
        *("-" if share is None else f"{100 * share:.0f} %" for share in shares),
        *(f"{100 * figures[f'{key}_regret']:.1f} %" for key in ("median", "p90", "largest")),
    ]


def test_places_among_all_layouts_are_those_of_the_record():
    rows = read_record(RESULTS / "layout_choices.json")["tables"]["all layouts"]
    page = " ".join((ROOT / "docs" / "layouts.md").read_text().split())
    for row in rows:
        if row["gpus"] in (32, 64):
            assert (
                f"| `{row['fastest']}` | {row['place']} of {row['divisions']} "
                f"| {row['measured']:.2f} s | {row['predicted']:.2f} s "
                f"| `{row['first']}` | {row['predicted_first']:.2f} s |"
            ) in page
    first, three = (sum(row["place"] <= most for row in rows) for most in (1, 3))
    assert f"in {first} of {len(rows)} questions on 32 GPUs or more" in page
    assert f"among the first three in {three}." in page


def test_error_bars_of_prices_are_those_of_the_record():
    rows = read_record(RESULTS / "layout_seconds.json")["tables"]["summary"]
    for name in ("torchtitan", "composer"):
        figures = next(r for r in rows if (r["software"], r["left_out"]) == (name, "by model"))
        pace = SOFTWARE[name].pace
        assert pace.error == pytest.approx(figures["median_error"], abs=0.006)
        assert pace.large_error == pytest.approx(figures["p90_error"], abs=0.006)


def test_planned_layouts_on_the_page_are_those_of_the_record():
    tables = read_record(RESULTS / "layout_steps.json")["tables"]
    page = " ".join((ROOT / "docs" / "layouts.md").read_text().split())
    for row in tables["planned"]:
        assert (
            f"| {row['model']}, {row['cluster']} | `{row['layout']}` | {row['ops']:,} "
            f"| {row['formulas']:.2f} s | {row['simulated']:.2f} s | {100 * row['gap']:.1f} % "
            f"| {row['searched']:.2f} s | {100 * row['searched_gap']:.1f} % "
            f"| {row['formulas_gib']:.1f} | {row['simulated_gib']:.1f} |"
        ) in page
    parts = [row for row in tables["planned"] if row["part_ops"] < row["ops"]]
    for key in ("part_seconds_ratio", "part_peak_ratio"):
        ratios = [row[key] for row in parts]
        assert f"{min(ratios):.2f} to {max(ratios):.2f} times" in page
    every = tables["published"][-1]
    for key in ("formulas_error", "simulated_error"):
        assert f"{100 * every[key]:.1f} %" in page
    assert f"On {every['runs']} published runs with pipelines" in page
