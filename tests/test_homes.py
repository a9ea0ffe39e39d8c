"""Benchmarks of homes: random homes, other tools' formulas, and figures of tables."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import pytest

from benchmarks.homes.cells import read_cells
from benchmarks.homes.drafts import gains
from benchmarks.homes.gguf_parser import estimates, gguf_parser_plan
from benchmarks.homes.peers import by_rule, random_home, ratios
from benchmarks.homes.planning import homes, planning_times
from benchmarks.homes.rigs import card_names, rig_cluster
from benchmarks.homes.speed import best_configurations, rank_correlations
from benchmarks.homes.speed_cells import Speed
from situate.language.layout import HOST
from situate.language.planning.rivals import proportional_layout
from situate.language.speed import PARTS
from tests.language.planning.homes import home_with, planner_of, small_model


# Homes and rigs.
def test_random_homes_have_up_to_four_cards_and_a_host():
    for seed in range(20):
        home, cards = random_home(random.Random(seed))
        assert 1 <= len(cards) == len(home.accelerators) <= 4
        assert home.host.cores > 0


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("2x RTX 3090 + RTX A4000", ["RTX 3090", "RTX 3090", "RTX A4000"]),
        ("RTX 4090; EPYC 7713", ["RTX 4090"]),
        ("CPU only", []),
    ],
)
def test_cards_of_a_rig_are_read_from_its_description(text, names):
    assert card_names(text) == names
    cluster, host = rig_cluster(text, ())
    assert len(cluster.devices) == len(names) + 1
    assert host == ("EPYC 7713" if "EPYC" in text else "")


# gguf-parser: more layers take more, and a layout by its formulas is that of its estimate.
def test_estimates_grow_with_layers_and_keep_a_platform_share():
    planner = planner_of(small_model(False), home_with((4, 400, 25), (4, 400, 25)))
    whole = proportional_layout(planner, lambda layout: True)
    none = proportional_layout(planner, lambda layout: HOST in layout.layers)
    assert sum(estimates(planner, whole)) > sum(estimates(planner, none))
    assert min(estimates(planner, whole)) > 250 * 2**20


def test_a_home_too_small_for_the_platform_share_has_all_layers_on_the_host():
    plan = gguf_parser_plan(planner_of(small_model(False), home_with((0.2, 400, 25))))
    assert set(plan.layout.layers) == {HOST}
    assert gguf_parser_plan(planner_of(small_model(False), home_with())) is None


# The table: every benchmark reads it by the same command line, and records name its hash.
def test_a_command_line_names_the_table_and_its_hash(tmp_path, monkeypatch):
    table = tmp_path / "cells.csv"
    table.write_text("source,model\ns,m\n")
    monkeypatch.setattr("sys.argv", ["memory", str(table), "--record"])
    options, rows = read_cells("about")
    assert rows == [{"source": "s", "model": "m"}]
    assert options.record
    assert options.cells_sha256 == hashlib.sha256(table.read_bytes()).hexdigest()


# Figures of the tables.
def cell(speed, predicted, flags, kind="tg128"):
    fields = dict.fromkeys(("quant", "n_ctx", "ubatch", "cache_type", "notes"), "")
    row = fields | {"model": "m", "source": "s", "flags": flags, "measured_kind": kind}
    parts = np.zeros(len(PARTS))
    parts[0] = 1 / predicted
    return Speed(row, "rig", flags, "decode", 0, parts, 1 / speed)


def test_the_choice_of_a_rig_is_the_configuration_of_the_best_prediction():
    cells = [cell(10, 9, "a"), cell(20, 22, "b"), cell(18, 25, "c")]
    ratio = np.array([0.9, 1.1, 25 / 18])
    assert best_configurations(cells, ratio) == [pytest.approx(0.9)]
    assert best_configurations(cells[:2], ratio[:2]) == []


def test_of_equal_predictions_the_slowest_run_counts():
    cells = [cell(10, 9, "a"), cell(20, 9, "b"), cell(18, 8, "c")]
    assert best_configurations(cells, np.array([0.9, 0.45, 8 / 18])) == [0.5]


def test_ranks_share_places_of_equal_predictions():
    cells = [cell(10, 9, "a"), cell(20, 30, "b"), cell(30, 30, "c")]
    [value] = rank_correlations(cells, np.array([0.9, 1.5, 1.0]))
    assert value == pytest.approx(0.866, abs=0.001)


def test_rules_that_do_not_fit_are_counted_apart():
    rows = [
        {"rivals": {"--fit": 2.0}, "seconds": 1.0, "unequal": True, "overfull": ["gguf-parser"]},
        {"rivals": {"--fit": 3.0}, "seconds": 1.0, "unequal": False, "overfull": []},
    ]
    assert ratios(rows, "--fit") == [2.0, 3.0]
    table = [row for row in by_rule(rows) if row["rule"] == "--fit"]
    assert [row["median"] for row in table] == [2.5, 2.0]
    assert not [row for row in by_rule(rows) if row["rule"] == "gguf-parser"]


# Drafts: runs with and without guesses make a pair.
def test_gains_of_drafts_are_of_runs_with_both_speeds():
    fields = ("quant", "n_ctx", "ubatch", "cache_type", "flags", "notes")
    common = dict.fromkeys(fields, "") | {
        "source": "s", "model": "Qwen3.8 27B", "quant": "Q4_K_M", "devices": "RTX 3090 24 GB",
        "flags": "-ngl 999",
    }  # fmt: skip
    rows = [
        common | {"measured_kind": kind, "measured_value": value}
        for kind, value in (("tg", "40"), ("tg_spec", "60"))
    ]
    [(gain, predicted)] = list(gains(rows))
    assert gain == 1.5
    assert 1 < predicted[0.6] < predicted[0.8] < 3
    assert list(gains(rows[:1])) == []


# Planning times: rigs by their cards, and eight different cards.
def test_every_set_of_cards_is_planned_once():
    texts = ("2x RTX 3090", "RTX 3090 + RTX 3090", "16x RTX 3090", "CPU only", "MI300X")
    sizes = [len(home.accelerators) for home in homes([{"devices": text} for text in texts])]
    assert sizes == [2, 8]
    [first, *_] = planning_times([home_with((40, 400, 25), host=(512, 50))])
    assert first["homes"] == 1
    assert first["longest_seconds"] == first["median_seconds"] > 0
