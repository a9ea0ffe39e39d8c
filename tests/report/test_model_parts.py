"""The parts of a model by module paths."""

from __future__ import annotations

import pytest

from situate.data.graph import Graph, Op
from situate.report.model_parts import model_parts


def parts(*modules: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Parts of a graph with an op in each of these modules, in this order."""
    ops = tuple(Op(f"op{i}", module=module) for i, module in enumerate(modules))
    found = model_parts(Graph("g", ops))
    return found.paths, found.of_op


@pytest.mark.parametrize(
    ("modules", "paths"),
    [
        (("conv1", "layer1.0.conv1", "layer1.1.bn", "fc"), ("conv1", "layer1.0", "layer1.1", "fc")),
        (("0", "1.weight", "2"), ("0", "1", "2")),
        (("model.embed", "model.layers.0.mlp", "head"), ("model.embed", "model.layers.0", "head")),
        (("h.0.experts.0.up", "h.0.experts.1.up", "h.1.experts.0.up"), ("h.0", "h.1")),
        (("stem/conv", "blocks/0/a", "blocks/10/a"), ("stem", "blocks.0", "blocks.10")),
    ],
)
def test_parts_are_numbered_modules_and_what_is_beside_them(modules, paths):
    assert parts(*modules)[0] == paths


def test_ops_of_modules_that_hold_parts_are_in_none():
    assert parts("", "a.0", "a", "a.1", "b.c") == (("a.0", "a.1", "b"), (-1, 0, -1, 1, 2))


def test_the_forward_pass_tells_their_order():
    ops = (
        Op("w", "parameter", module="last", phase="forward"),
        Op("a", module="first", phase="forward"),
        Op("b", module="last", phase="forward"),
        Op("c", module="other", phase="backward"),
    )
    found = model_parts(Graph("g", ops))
    assert found.paths == ("first", "last")
    assert found.of_op == (1, 0, 1, -1)
