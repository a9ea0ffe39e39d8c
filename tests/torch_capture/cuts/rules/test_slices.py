"""Letters of splits and slices, and of their gradients."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.torch_capture.cuts.letters import Axis  # noqa: E402
from tests.torch_capture.cuts.one_op import OneOp, check_all  # noqa: E402

aten = torch.ops.aten
X = torch.arange(72.0).reshape(6, 12)
Y = torch.arange(144.0).reshape(2, 6, 12)


# Parts of each operator give the whole, along each letter.
@pytest.mark.parametrize(
    ("op", "args", "count"),
    [
        (aten.split.Tensor, (X, 4, -1), 2),
        (aten.split.Tensor, (X, 5, 1), 1),
        (aten.split_with_sizes.default, (X, [4, 4, 4], 1), 2),
        (aten.split_with_sizes.default, (X, [2, 10], 1), 1),
        (aten.unbind.int, (Y, 1), 2),
        (aten.slice.Tensor, (X, 1, 2, 8), 1),
        (aten.slice.Tensor, (X, 1, 4, 8), 2),
        (aten.slice.Tensor, (Y, -1, 6, 2**62), 3),
        (aten.slice.Tensor, (Y, 2, -6), 3),
        (aten.slice.Tensor, (Y, 1, 0, 3), 2),
        (aten.slice.Tensor, (Y[None], 3, 0, 6), 2),
        (aten.slice.Tensor, (X, 1, 0, 12, 2), 1),
        (aten.select.int, (Y, 1, 3), 2),
        (aten.slice_backward.default, (X[:, 2:8], [6, 12], 1, 2, 8, 1), 1),
        (aten.slice_backward.default, (X[:, 4:8], [6, 12], 1, 4, 8, 1), 2),
        (aten.slice_backward.default, (Y[..., :6], [2, 6, 12], 2, 0, 6, 1), 3),
        (aten.select_backward.default, (X, [6, 5, 12], 1, 2), 2),
    ],
)
def test_parts_of_a_slice_give_it(op, args, count) -> None:
    assert len(check_all(op, *args)) == count


# A slice of features takes one of several ranges, each of which is cut alike.
def test_a_slice_of_features_is_one_of_equal_ranges() -> None:
    *_, letter = OneOp(aten.slice.Tensor, X, 1, 4, 8).letters()
    assert (letter.size, letter.inputs, letter.outputs) == (4, (Axis(1, outer=3),), (Axis(1),))
