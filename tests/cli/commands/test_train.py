"""`situate train regal`, and a plan with its weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

pytest.importorskip("torch")

from situate.cli.commands.train import LINKED, NAMES
from situate.data import graph_json
from situate.solvers.evolutionary.regal.settings import Name
from tests.solvers.evolutionary.regal.training.test_data_set import filled, graph

Situate = Any
QUICK = ("--settings", "paper_synthetic", "--steps", "1")


def train(situate: Situate, *arguments: str) -> Any:
    return situate("train", "regal", "--data", "data", "--out", "out", *arguments)


# The weights of a training are of use to the planner.
def test_what_it_writes_plans_other_graphs(situate: Situate, tmp_path: Path) -> None:
    filled(tmp_path / "data", a=graph("a", 5), b=graph("b", 6))
    (tmp_path / "data" / "broken.json").write_text("{")
    run = train(situate, *QUICK)
    assert (run.status, run.out) == (0, "wrote out/weights.safetensors\n")
    assert "skipped: data/broken.json: " in run.err
    assert "data: 2 graphs; skipped: 1 broken" in run.err
    assert "1 step: reward -1" in run.err
    graph_json.write(graph("c", 7), tmp_path / "c.json")
    plan = ("plan", "c.json", "--cluster", "identical:2", "--method", "regal", "--evaluations", 500)
    planning = situate(*plan, "--rules", "regal", "--weights", "out/weights.safetensors", "--json")
    assert planning.status == 0
    assert planning.json["method"] == "regal"
    refused = situate(*plan, "--objective", "memory", "--weights", "out/weights.safetensors")
    assert refused.status == 2
    assert "trained for time, not for memory" in refused.err


def test_json_has_the_whole_curve_whenever_it_is_asked_for(
    situate: Situate, tmp_path: Path
) -> None:
    filled(tmp_path / "data" / "train", a=graph("a", 5))
    filled(tmp_path / "data" / "valid", b=graph("b", 6))
    first, again = (train(situate, *QUICK, "--json") for _ in range(2))
    assert "1 step: reward -1.0000, in validation -1.0000\n" in first.err
    point = {"steps": 1, "reward": -1.0, "validation": -1.0}
    assert first.json == again.json == {"weights": "out/weights.safetensors", "curve": [point]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "data: cannot be read: No such file"),
        (("--settings", "papier"), "unknown settings 'papier'; did you mean 'paper'?"),
        (("--objective", "tim"), "unknown objective 'tim'; did you mean 'time'?"),
        (
            ("--objective", "throughput"),
            "--objective throughput: there are settings for time and memory",
        ),
        (("--cluster", "identical:0"), "between 1 and 256 devices"),
        (("--rules", "regel"), "unknown rules 'regel'; did you mean 'regal'?"),
        (("--out", ""), "cannot write into ''"),
    ],
)
def test_bad_input_is_one_line(situate: Situate, arguments: tuple[str, ...], message: str) -> None:
    run = train(situate, *arguments)
    assert run.status == 2
    assert message in run.err
    assert run.err.count("\n") == 1


def test_a_command_is_missing(situate: Situate) -> None:
    run = situate("train")
    assert run.status == 2
    assert "Missing command: give 'regal'" in run.err


def test_settings_are_those_that_there_are() -> None:
    assert (*get_args(Name), LINKED) == NAMES


def test_the_help_offers_what_it_trains_for(situate: Situate) -> None:
    out = " ".join(situate("train", "regal", "--help").out.split())
    assert "time or memory. [default: time]" in out
    assert "throughput" not in out
    assert out.count("Default: ") == out.count("[default: identical:2]") + 1
