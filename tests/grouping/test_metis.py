from __future__ import annotations

import sys

import numpy as np
import pytest

from situate import zoo
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.errors import MissingExtra
from situate.grouping import group, metis
from situate.grouping.units import unit_graph
from tests.grouping.cases import problems
from tests.solvers import families

CASES = problems()


def test_without_pymetis_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(MissingExtra, match=r"pip install 'situate\[baselines\]'"):
        group(CASES["layered"], "metis", 4)


def test_two_halves_of_a_chain():
    pytest.importorskip("pymetis")
    problem = Problem(families.chain(64), families.devices(1, 1))
    result = group(problem, "metis", 2).of_op
    assert result.tolist() == sorted(result.tolist())
    assert abs(int(result.sum()) - 32) <= 2


def test_no_more_groups_than_asked_for_and_nearly_as_many():
    pytest.importorskip("pymetis")
    problem = Problem(zoo.load("resnet50"), Cluster.preset("h100-8"))
    assert 60 <= len(group(problem, "metis", 64)) <= 64


def test_parts_are_balanced_in_seconds_and_cut_few_bytes():
    pytest.importorskip("pymetis")
    problem = Problem(zoo.load("resnet50"), Cluster.preset("h100-8"))
    units, labels = unit_graph(problem), metis.labels(problem, 8)
    seconds = np.bincount(labels, units.seconds)
    rows = np.repeat(np.arange(len(units)), np.diff(units.start))
    cut = units.bytes[labels[rows] != labels[units.neighbour]].sum()
    assert seconds.max() <= 1.2 * seconds.mean()
    assert cut < 0.1 * units.bytes.sum()


@pytest.mark.parametrize("case", ["huge", "weightless", "controlled", "no seconds", "one op"])
def test_nothing_is_printed_and_nothing_overflows(case, capfd):
    """METIS writes to the screen when it is unhappy; sums of 2^62 bytes are more than it counts."""
    pytest.importorskip("pymetis")
    for count in (1, 2, 7, 1000):
        assert len(group(CASES[case], "metis", count)) <= count
    assert capfd.readouterr() == ("", "")


def test_pairs_of_huge_tensors_stay_together():
    pytest.importorskip("pymetis")
    result = group(CASES["huge"], "metis", 4).of_op
    assert (result[::2] == result[1::2]).all()
