from __future__ import annotations

import re
from pathlib import Path

import pytest

from situate import zoo
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.grouping import GROUPINGS, group

PAGE = (Path(__file__).parents[2] / "docs" / "grouping.md").read_text()


@pytest.mark.parametrize("network", ["cifar_cnn", "inception_v3", "resnet50:inference", "rnnlm"])
def test_networks_have_as_many_groups_as_documented(network):
    row = re.search(rf"^\| `{network}` \|(.*)\|$", PAGE, re.MULTILINE)
    assert row is not None
    documented = [int(cell.replace(",", "")) for cell in row[1].split("|")]
    problem = Problem(zoo.load(network), Cluster.preset("h100-8"))
    rules = ("none", "prefix", "colocation")
    assert documented == [problem.n, *(len(group(problem, rule)) for rule in rules)]


@pytest.mark.parametrize("rule", sorted(set(GROUPINGS) - {"none"}))
def test_every_rule_has_a_section(rule):
    assert f"\n## {rule}\n" in PAGE
