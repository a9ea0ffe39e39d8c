"""Checks of the files a command will write."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from situate.cli.outputs import (
    check_folder,
    check_outputs,
    check_picture,
    check_tensorboard,
    check_trace,
    levels,
)
from situate.data.cluster import Cluster, Device, Link
from situate.data.problem import Problem
from situate.errors import MissingExtra, SituateError
from situate.solvers import solve
from tests.cli.conftest import diamond


# Files are checked before the work begins.
def test_checking_leaves_nothing_behind(tmp_path):
    check_outputs([], [str(tmp_path / "new.json")])
    assert list(tmp_path.iterdir()) == []


def test_a_stream_may_be_written():
    check_outputs([], ["/dev/null"])


def test_a_dash_is_no_name_of_a_file():
    with pytest.raises(SituateError, match="cannot write '-': give /dev/stdout"):
        check_outputs([], ["-"])
    check_outputs([], ["./-"])


def test_an_empty_name_is_said_to_be_one():
    with pytest.raises(SituateError, match="cannot write '': it has no name"):
        check_outputs([], [""])


def test_a_pipe_without_a_name_may_be_written():
    read, write = os.pipe()
    check_outputs([], [f"/dev/fd/{write}"])
    os.close(read)
    os.close(write)


@pytest.mark.parametrize("second", ["plan.json", "./plan.json", "link.json"])
def test_no_file_is_used_twice_under_any_name(tmp_path, monkeypatch, second):
    monkeypatch.chdir(tmp_path)
    Path("plan.json").touch()
    Path("link.json").symlink_to("plan.json")
    with pytest.raises(SituateError, match="used twice"):
        check_outputs(["plan.json"], [second])


@pytest.mark.parametrize("path", ["", "no/x.json", "x/", "a\0b", "x" * 5000, "/proc/x.json"])
def test_what_cannot_be_written_is_refused(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SituateError, match="cannot write"):
        check_outputs([], [path])


@pytest.mark.parametrize("path", ["nets.py", "plan.json"])
def test_python_source_is_not_overwritten(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    Path("nets.py").touch()
    Path("plan.json").symlink_to("nets.py")
    with pytest.raises(SituateError, match=r"cannot write .*: it is Python source"):
        check_outputs(["nets:gnn"], [path])


# Pictures and logs need their packages.
@pytest.mark.parametrize("path", ["plan", "plan.pdf", "plan.svg.txt"])
def test_a_picture_has_a_known_ending(path):
    with pytest.raises(SituateError, match="must end in"):
        check_picture(path)


def test_a_picture_needs_matplotlib(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"situate\[report\]"):
        check_picture("plan.svg")


@pytest.mark.parametrize("folder", [".", "new", "new/and/deep"])
def test_a_folder_may_have_to_be_made_but_not_yet(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    check_folder(folder)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("folder", ["", "file", "file/under", "a\0b", "x" * 5000, "/proc/x"])
def test_a_folder_that_cannot_be_is_refused(tmp_path, monkeypatch, folder):
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    with pytest.raises(SituateError, match="cannot write into"):
        check_folder(folder)


def test_the_board_needs_tensorboard(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"situate\[report\]"):
        check_tensorboard(str(tmp_path))


def test_a_trace_needs_perfetto(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    check_trace(None)
    with pytest.raises(MissingExtra, match=r"perfetto.*situate\[report\]"):
        check_trace("both.pftrace")


# Horizontal lines of a picture of learning curves.
def problem(memory: int | None = None) -> Problem:
    devices = tuple(Device(name, memory=memory) for name in "ab")
    return Problem(diamond(), Cluster("two", devices, (Link("*", "*", 1e6),)))


def test_levels_are_a_single_device_the_bound_and_methods_that_do_not_learn():
    results = [solve(problem(), method, evaluations=12) for method in ("post", "random", "heft")]
    lines = levels(results)
    assert list(lines) == ["single", "lower bound", "heft"]
    assert [*lines.values()] == [4.0, results[0].lower_bound, pytest.approx(3.001)]


def test_a_plan_that_does_not_fit_is_no_level():
    assert "single" not in levels([solve(problem(3_200), "post", evaluations=12)])


def test_there_is_no_bound_where_nothing_fits():
    results = [solve(problem(400), method, evaluations=12) for method in ("post", "heft")]
    assert levels(results) == {}


def test_the_expert_is_a_level_where_there_is_one():
    from situate import zoo

    network = Problem(zoo.load("cifar_cnn"), Cluster.preset("k80-2"))
    lines = levels([solve(network, "single")])
    assert list(lines) == ["single", "expert", "lower bound"]
