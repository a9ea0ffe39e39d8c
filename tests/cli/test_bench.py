"""The families, folders and outputs that `situate bench` is asked for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from situate.bench.run import LimitShare, Runs
from situate.cli.bench import bench_runs
from situate.cli.bench_options import BenchOptions
from situate.data import graph_json
from tests.cli.conftest import diamond

FAMILY = "regal_zero_cost"


def runs(*families: str, methods: str = "heft", instances: int | None = None) -> Runs:
    options = BenchOptions(methods=methods, time_limits="0.1", instances=instances, threads=1)
    return bench_runs([*(families or [FAMILY])], options)


# The runs follow from the options.
def test_a_few_instances_are_always_the_same_and_in_their_order():
    few = runs(instances=6).instances
    assert [i.name for i in few] == [i.name for i in runs(instances=6).instances]
    names = [instance.name for instance in runs().instances]
    assert [names.index(i.name) for i in few] == sorted(names.index(i.name) for i in few)
    assert len(few) == 6 < len(names)


def test_repeated_names_run_once():
    twice = runs(FAMILY, FAMILY, methods="heft,etf,heft")
    assert twice.methods == ["heft", "etf"]
    assert len(twice.instances) == len(runs().instances)


@pytest.fixture
def folder(tmp_path) -> Path:
    """A folder with the diamond."""
    (tmp_path / "mine").mkdir()
    graph_json.write(diamond(), tmp_path / "mine" / "diamond.json")
    return tmp_path / "mine"


def test_a_folder_of_graphs_is_a_family(situate, folder, pair):
    options = ("--cluster", pair, "--methods", "heft", "--time-limits", "0.1", "--json")
    run = situate("bench", "--graphs", folder, *options)
    assert run.status == 0, run.err
    [one] = run.json["comparison"]
    assert one["family"] == "mine"
    assert one["methods"][0]["fit"] == 1


def test_a_folder_of_graphs_without_a_machine_needs_a_cluster(situate, folder):
    run = situate("bench", "--graphs", folder, "--methods", "heft", "--time-limits", "0.1")
    assert run.status == 2
    assert "give --cluster" in run.err


# Bad input is one line.
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--graphs", "none"], "none: No such file or directory: give a folder of graphs"),
        (["stg"], "family 'stg': its files do not come with situate: give --data DIR"),
        (["stg", "--data", "none"], "there is none in 'none'"),
        (["pipelines", "--cluster", "k80-2"], "--cluster: is for --graphs"),
        (["pipelines", "--objective", "memory"], "--objective: is for --graphs"),
        (["--graphs", ".", "--objective", "speed"], "unknown objective 'speed'"),
        (["pipelines", "--picture", "profile.gif"], "its name must end in .svg or .png"),
        (["pipelines", "--gaps", "none/gaps.svg"], "there is no folder"),
    ],
)
def test_bad_input_is_one_line(situate, arguments, message):
    Path("graph.json").write_text("{}")
    run = situate("bench", *arguments)
    assert run.status == 2
    assert message in run.err
    assert run.err.count("\n") == 1


def test_a_value_that_is_better_than_a_bound_is_refused_by_name(situate, folder, pair):
    command = ("bench", "--graphs", folder, "--cluster", pair, "--methods", "auto")
    command += ("--time-limits", "0.1", "--best-known", "known.json")
    assert situate(*command).status == 0
    table = json.loads(Path("known.json").read_text())
    [mine] = [entry for entry in table["entries"] if entry["family"] == "mine"]
    mine["best"]["value"], mine["bound"] = 1e-6, None
    Path("known.json").write_text(json.dumps(table))
    run = situate(*command)
    assert run.status == 2
    assert "mine: diamond.json: the best value 1e-06 (auto, 0.1.0) is below the bound" in run.err


def test_both_pictures_are_drawn(situate, folder, pair):
    pytest.importorskip("matplotlib")
    pictures = ("--picture", "profile.svg", "--gaps", "gaps.svg")
    options = ("--cluster", pair, "--methods", "heft,auto", "--time-limits", "0.1,0.2")
    run = situate("bench", "--graphs", folder, *options, *pictures)
    assert run.status == 0, run.err
    assert Path("profile.svg").is_file()
    assert Path("gaps.svg").is_file()


# Time limits are seconds, or shares of an instance's own.
def test_a_time_limit_may_be_a_share_of_the_published_one():
    options = BenchOptions(methods="auto", time_limits="2,0.5x", threads=1)
    assert bench_runs([FAMILY], options).time_limits == [2.0, LimitShare(0.5)]


def test_a_share_of_a_limit_that_no_one_published_is_refused(situate):
    run = situate("bench", FAMILY, "--methods", "heft", "--time-limits", "1x", "--instances", "1")
    assert run.status == 2
    assert "has no published time limit: give --time-limits in seconds" in run.err
