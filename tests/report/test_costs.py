"""Measured costs as tables."""

from __future__ import annotations

import io

from rich.console import Console

from situate.data.costs import Costs, MeasuredDevice, MeasuredLink, Timing
from situate.data.graph import Graph, Op
from situate.report.costs import costs_table, step_seconds

OPS = [("aten.mm", "mm"), ("aten.mm", "mm"), ("aten.relu", "relu"), ("aten.add", "add")]
GRAPH = Graph("g", tuple(Op(f"op{i}", kind, signature=s) for i, (kind, s) in enumerate(OPS)))
SECONDS = {"mm": Timing(1.0, 1.0, 1.0, 1), "relu": Timing(5.0, 5.0, 5.0, 1)}
DEVICE = MeasuredDevice("\x1b[31mcpu", "cpu", seconds=SECONDS)


def table_text(costs: Costs) -> str:
    text = io.StringIO()
    Console(width=160, file=text).print(costs_table(costs, GRAPH))
    return text.getvalue()


def test_the_seconds_of_a_step_count_every_op_and_the_longest_class_is_first() -> None:
    assert list(step_seconds(DEVICE, GRAPH).items()) == [("elementwise", 5.0), ("matmul", 2.0)]


def test_what_was_not_fitted_is_a_dash_and_names_are_escaped() -> None:
    text = table_text(Costs("vm", "today", {}, [DEVICE]))
    assert "a step takes 7.00 s" in text
    assert "\x1b[31m" not in text
    assert "-" in text
    assert "links" not in text


def test_links_have_their_ends_and_what_it_takes_to_cross() -> None:
    links = [MeasuredLink("a", "b", 1e-5, 3e9)]
    text = table_text(Costs("vm", "today", {}, [DEVICE], links, 2e-5))
    assert "3.00 G" in text
    assert "20.0 µs for each to cross" in text
