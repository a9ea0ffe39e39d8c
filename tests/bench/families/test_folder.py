"""Folders of users' own graphs."""

from __future__ import annotations

import pytest

from situate.bench.families.folder import instances
from situate.data import graph_json
from situate.errors import ReadError, SituateError
from tests.bench.families.test_families import DATA
from tests.solvers.families import chain, devices, fork


@pytest.fixture
def folder(tmp_path):
    """Two graphs, a hidden file and a folder."""
    mine = tmp_path / "mine"
    (mine / "more").mkdir(parents=True)
    (mine / ".notes").touch()
    graph_json.write(chain(3), mine / "chain.json")
    graph_json.write(fork(4), mine / "fork.json")
    return mine


def test_every_file_is_an_instance_of_a_family_that_is_called_after_the_folder(folder):
    result = instances(folder, devices(1, 1), "time")
    assert [(i.family, i.name) for i in result] == [("mine", "chain.json"), ("mine", "fork.json")]


def test_the_problem_has_the_cluster_and_the_objective(folder):
    problem = instances(folder, devices(1, 1), "memory")[0].make()
    assert (problem.n, problem.d, problem.objective) == (3, 2, "memory")


def test_a_graph_without_a_machine_needs_a_cluster(folder):
    with pytest.raises(SituateError, match=r"brings no machine .* give --cluster"):
        instances(folder, None, "time")[0].make()


def test_a_graph_may_bring_its_machine():
    layers = DATA / "dnn-partitioning" / "throughput-inputs" / "LayerGraphs"
    assert instances(layers, None, "throughput")[0].make().d > 1


def test_an_empty_folder_is_refused(tmp_path):
    (tmp_path / "none").mkdir()
    with pytest.raises(ReadError, match=r"none: no files in it: give a folder of graphs"):
        instances(tmp_path / "none", None, "time")


def test_a_file_that_is_no_graph_is_named_before_anything_runs(folder):
    (folder / "notes.txt").write_text("of mine")
    with pytest.raises(ReadError, match=r"notes.txt: .*; a folder of graphs holds nothing else"):
        instances(folder, devices(1, 1), "time")


@pytest.mark.parametrize("name", ["missing", "file"])
def test_what_is_no_folder_is_refused(tmp_path, name):
    (tmp_path / "file").touch()
    with pytest.raises(ReadError, match=rf"{name}: .*: give a folder of graphs"):
        instances(tmp_path / name, None, "time")
