from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.report.pictures.op_colors import INK, PALETTE
from situate.writers.dot import write
from tests.report.handmade import HOSTILE, chain, schedule


def test_ops_are_clustered_by_device_and_edges_that_cross_are_red(tmp_path: Path) -> None:
    chained = chain(3)
    graph = Graph("g", chained.graph.ops, chained.graph.tensors, control=((0, 2),))
    problem = Problem(graph, chained.cluster)
    write(problem, schedule(problem, [0, 1, 1]), tmp_path / "g.dot")
    text = (tmp_path / "g.dot").read_text("utf-8")
    first, second = text.split("subgraph")[1:3]
    assert 'label="gpu0"' in first
    assert re.findall(r"(op\d) \[label", first) == ["op0"]
    assert re.findall(r"(op\d) \[label", second) == ["op1", "op2"]
    assert 'op0 -> op1 [tooltip="t:op0, 100 B", color=red];' in text
    assert 'op1 -> op2 [tooltip="t:op1, 100 B"];' in text
    assert "op0 -> op2 [style=dashed];" in text


def test_names_are_dark_on_light_colours(tmp_path: Path) -> None:
    problem = chain(5, devices=5)
    write(problem, schedule(problem, [0, 1, 2, 3, 4]), tmp_path / "g.dot")
    text = (tmp_path / "g.dot").read_text("utf-8")
    assert f'fillcolor="{PALETTE[0]}", fontcolor="white"' in text
    assert f'fillcolor="{PALETTE[4]}", fontcolor="{INK}"' in text


def strings(text: str) -> list[str]:
    """The quoted strings of a DOT text; fails where something is left open."""
    rest = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    assert '"' not in rest
    return re.findall(r'"((?:[^"\\]|\\.)*)"', text)


def test_hostile_names_stay_inside_their_quotes(tmp_path: Path) -> None:
    device = HOSTILE[0]
    problem = chain(names=HOSTILE, device_names=[device, "b"])
    problem = Problem(Graph('g" [', problem.graph.ops, problem.graph.tensors), problem.cluster)
    write(problem, schedule(problem, [0, 1] * 4), tmp_path / "g.dot")
    text = (tmp_path / "g.dot").read_text("utf-8")
    result = strings(text)
    assert r"say \"hi\"" in result
    assert r"two\\nlines" in result
    assert text.count("\n") == len(text.splitlines())
    assert "\x1b" not in text


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_takes_it(tmp_path: Path) -> None:
    problem = chain(names=HOSTILE)
    write(problem, schedule(problem, [0, 1] * 4), tmp_path / "g.dot")
    subprocess.run(["dot", "-Tsvg", "-o", tmp_path / "g.svg", tmp_path / "g.dot"], check=True)


def test_an_unwritable_path_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SituateError, match="cannot write"):
        write(chain(1), schedule(chain(1), [0]), tmp_path / "missing" / "g.dot")
