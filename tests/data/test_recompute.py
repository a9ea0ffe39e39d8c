"""Modules that run again, by name and in a graph."""

from __future__ import annotations

import pytest

from situate.data.recompute import Recomputed, parse_modules, recomputed_modules
from situate.errors import SituateError
from tests.solvers.recomputing import LARGE, layered_step


def test_a_graph_tells_what_runs_again_and_what_that_frees():
    graph = layered_step(3, ("l0", "l2"))
    ops = {op.name: j for j, op in enumerate(graph.ops)}
    assert recomputed_modules(graph) == (
        Recomputed("l0", (ops["recompute/l0/large"],), LARGE),
        Recomputed("l2", (ops["recompute/l2/large"],), LARGE),
    )
    assert recomputed_modules(layered_step(3)) == ()


def test_names_are_separated_by_commas():
    assert parse_modules("layers.*, head") == ("layers.*", "head")
    assert parse_modules("auto") == ("auto",)


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "a name is empty"), ("a,,b", "a name is empty"), ("auto,a", "auto .* stands alone")],
)
def test_bad_names_are_refused(text, message):
    with pytest.raises(SituateError, match=f"recompute: {message}"):
        parse_modules(text)
