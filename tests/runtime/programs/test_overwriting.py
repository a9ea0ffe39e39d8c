"""Which ops may write their result over an argument."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, fx  # noqa: E402

from situate.runtime.programs.overwriting import in_place  # noqa: E402

aten = torch.ops.aten


SQUARE = torch.ones(2, 2)


@pytest.mark.parametrize(
    ("target", "given", "expected"),
    [
        (aten.add.Tensor, (SQUARE, SQUARE), ["a b", "b a"]),
        (aten.mul.Tensor, (SQUARE, SQUARE), ["a b", "b a"]),
        (aten.mul.Tensor, (SQUARE * 1j, SQUARE * 1j), ["a b"]),
        (aten.mul.Tensor, ((SQUARE * 1j).conj(), SQUARE * 1j), []),
        (aten.add.Tensor, (SQUARE * 1j, SQUARE * 1j), ["a b", "b a"]),
        (aten.sub.Tensor, (SQUARE, SQUARE), ["a b"]),
        (aten.div.Tensor, (SQUARE, SQUARE), ["a b"]),
        (aten.add.Tensor, (SQUARE, torch.ones(2)), ["a b"]),
        (aten.add.Tensor, (torch.ones(2), SQUARE), ["b a"]),
        (aten.add.Tensor, (SQUARE, SQUARE.t()), ["a b"]),
        (aten.add.Tensor, (SQUARE.int(), SQUARE), ["b a"]),
        (aten.mul.Tensor, (SQUARE, 2.0), ["a 2.0"]),
        (aten.div.Tensor, (SQUARE.int(), 2), []),
        (aten.tanh.default, (SQUARE,), ["a"]),
        (aten.eq.Tensor, (SQUARE, SQUARE), []),
        (aten.mm.default, (SQUARE, SQUARE), []),
        (aten.sum.default, (SQUARE,), []),
    ],
)
def test_ways_to_write_over_an_argument(
    target: object, given: tuple[Tensor | float, ...], expected: list[str]
) -> None:
    graph = fx.Graph()
    arguments: list[fx.Node | float] = []
    for name, value in zip("ab", given, strict=False):
        if isinstance(value, Tensor):
            arguments.append(graph.placeholder(name))
            graph.find_nodes(op="placeholder")[-1].meta["val"] = value
        else:
            arguments.append(value)
    node = graph.call_function(target, tuple(arguments))
    node.meta["val"] = target(*given)
    assert [" ".join(map(str, (a, *b))) for a, b in in_place(node)] == expected


def test_an_op_with_named_arguments_is_left_alone() -> None:
    graph = fx.Graph()
    one = graph.placeholder("a")
    node = graph.call_function(aten.add.Tensor, (one, one), {"alpha": 2})
    one.meta["val"] = node.meta["val"] = SQUARE
    assert list(in_place(node)) == []
