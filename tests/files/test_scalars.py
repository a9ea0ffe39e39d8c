"""Numbers out of numpy arrays are as good as Python's own, from the graph to the plan's file."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.graph_json import encode, write
from situate.data.problem import Problem
from situate.files.scalars import plain
from situate.readers import read
from situate.solvers import solve


def graph(whole=int, real=float) -> Graph:
    ops = tuple(Op(name, seconds={"*": real(0.5)}, persistent=whole(3)) for name in "ab")
    tensors = (Tensor("t", whole(0), whole(2), (whole(1),), seconds=real(0.25)),)
    return Graph("g", ops, tensors, ((whole(0), whole(1)),))


def cluster(whole=int, real=float) -> Cluster:
    devices = tuple(Device(f"d{i}", memory=whole(10), launch=real(0.5)) for i in range(2))
    return Cluster("c", devices, (Link("*", "*", real(2.0)),), synchronisation=real(0.5))


def test_hashes_and_files_do_not_tell_them_from_others(tmp_path):
    drawn = graph(np.int64, np.float64)
    assert drawn.hash == graph().hash
    assert encode(drawn) == encode(graph())
    assert cluster(np.int64, np.float64).hash == cluster().hash
    write(drawn, tmp_path / "g.json")
    assert read(tmp_path / "g.json").hash == drawn.hash


def test_a_plan_of_them_is_written(tmp_path):
    problem = Problem(graph(np.int64, np.float64), cluster(np.int64, np.float64))
    solve(problem, evaluations=50).plan.write(tmp_path / "plan.json")
    assert (tmp_path / "plan.json").exists()


def test_what_is_no_number_is_refused():
    with pytest.raises(NotImplementedError, match="cannot encode a object"):
        plain(object())
