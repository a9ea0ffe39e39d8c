"""Keys of calls with equal results."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.torch_capture.value_keys import ValueKeys  # noqa: E402


def node(graph, *args, value=None):
    own = graph.call_function(torch.ops.aten.add.Tensor, args)
    own.meta["val"] = value
    return own


# Equal layouts have equal keys, and other layouts, dtypes or numbers have others.
def test_values_with_equal_layouts_have_equal_keys() -> None:
    keys, graph = ValueKeys(), torch.fx.Graph()
    one, other, turned, double = (
        node(graph, value=value)
        for value in (
            torch.empty(2, 3),
            torch.empty(2, 3),
            torch.empty(3, 2).t(),
            torch.empty(2, 3, dtype=torch.float64),
        )
    )
    calls = [node(graph, x, 1) for x in (one, other, turned, double)]
    assert keys.of_call(calls[0]) == keys.of_call(calls[1])
    assert len({keys.of_call(call) for call in calls}) == 3


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (1, True), (0, False)])
def test_equal_numbers_of_two_types_differ(one, other) -> None:
    keys = ValueKeys()
    assert keys.of([one]) != keys.of([other])
