"""Letters of views, and of ops that move entries."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.torch_capture.cuts.letters import Axis  # noqa: E402
from situate.torch_capture.cuts.rules.views import factors  # noqa: E402
from tests.torch_capture.cuts.one_op import OneOp, check_all  # noqa: E402

aten = torch.ops.aten
X = torch.arange(72.0).reshape(6, 12)
Y = torch.arange(144.0).reshape(2, 6, 12)


# A reshape has a letter for each factor that its shapes share.
@pytest.mark.parametrize(
    ("before", "after", "sizes"),
    [
        ((6, 4), (2, 12), [2, 3, 4]),
        ((6, 4), (24,), [6, 4]),
        ((4, 6), (6, 4), []),
        ((2, 4, 6), (2, 6, 4), [2]),
        ((1, 5, 8), (5, 2, 4), [5, 2, 4]),
        ((0, 4), (4, 0), []),
    ],
)
def test_a_reshape_has_the_factors_that_both_shapes_share(before, after, sizes) -> None:
    assert [size for size, _, _ in factors(before, after)] == sizes


def test_a_factor_knows_what_lies_around_it() -> None:
    assert list(factors((6, 4), (2, 12))) == [
        (2, Axis(0, 1, 3), Axis(0, 1, 1)),
        (3, Axis(0, 2, 1), Axis(1, 1, 4)),
        (4, Axis(1, 1, 1), Axis(1, 3, 1)),
    ]


# Parts of each operator give the whole, along each letter.
@pytest.mark.parametrize(
    ("op", "args", "count"),
    [
        (aten.view.default, (X, [2, 3, 12]), 3),
        (aten.view.default, (Y, [12, 12]), 3),
        (aten.view.default, (Y, [2, 6, 3, 4]), 4),
        (aten._unsafe_view.default, (Y, [2, 72]), 3),
        (aten.expand.default, (X[:, None], [6, 4, 12]), 3),
        (aten.t.default, (X,), 2),
        (aten.t.default, (X[0],), 1),
        (aten.transpose.int, (Y, 1, -1), 3),
        (aten.permute.default, (Y, [2, 0, 1]), 3),
        (aten.unsqueeze.default, (X, 1), 2),
        (aten.squeeze.dim, (X[None], 0), 2),
        (aten.cat.default, ([X, X + 1], 1), 2),
        (aten.cat.default, ([X, X[:, :3]], 1), 1),
        (aten.cat.default, ([torch.zeros(0), X], -2), 1),
        (aten.stack.default, ([X, X + 1], 1), 2),
        (aten.constant_pad_nd.default, (X, [1, 0]), 1),
        (aten.flip.default, (X, [0]), 1),
        (aten.cumsum.default, (X, 1), 1),
        (aten.sort.default, (X,), 1),
        (aten.topk.default, (X, 3), 1),
        (aten.argmax.default, (X, 1), 1),
        (aten.argmax.default, (X,), 0),
        (aten.tril.default, (X,), 0),
        (aten.triu.default, (Y,), 1),
    ],
)
def test_parts_of_a_view_are_views_of_parts(op, args, count) -> None:
    assert len(check_all(op, *args)) == count


# A fused product of queries, keys and values is split into three: each range is cut alike.
def test_an_equal_split_cuts_its_dimension_in_a_range_for_each_output() -> None:
    last = OneOp(aten.split.Tensor, X, 4, 1).letters()[-1]
    assert (last.size, last.inputs) == (4, (Axis(1, outer=3),))
