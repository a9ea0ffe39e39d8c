"""Letters of reductions, of softmax and of norms over the last dimensions."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.torch_capture.cuts.one_op import check_all  # noqa: E402

aten = torch.ops.aten
X = torch.randn(4, 6, 8)
W, B = torch.randn(8), torch.randn(8)
NORM = aten.native_layer_norm.default(X, [8], W, B, 1e-5)


# A sum contracts the dimensions that it removes; other reductions keep only the rest.
@pytest.mark.parametrize(
    ("op", "args", "count"),
    [
        (aten.sum.dim_IntList, (X, [1]), 3),
        (aten.sum.dim_IntList, (X, [0, 2], True), 3),
        (aten.sum.default, (X,), 3),
        (aten.mean.dim, (X, [-1], True), 2),
        (aten.amax.default, (X, [1]), 2),
        (aten.var_mean.correction, (X, [2]), 2),
        (aten.max.dim, (X, 1), 2),
        (aten._softmax.default, (X, 1, False), 2),
        (aten._safe_softmax.default, (X, 1), 2),
        (aten._softmax_backward_data.default, (X, torch.softmax(X, 2), 2, torch.float64), 2),
        (aten.native_layer_norm.default, (X, [8], W, B, 1e-5), 2),
        (aten.native_layer_norm.default, (X, [6, 8], None, None, 1e-5), 1),
        (
            aten.native_layer_norm_backward.default,
            (X, X, [8], NORM[1], NORM[2], W, B, [True, True, True]),
            2,
        ),
        (
            aten.native_layer_norm_backward.default,
            (X, X, [8], NORM[1], NORM[2], None, None, [True, False, False]),
            2,
        ),
    ],
)
def test_parts_of_a_reduction_give_the_whole(op, args, count) -> None:
    assert len(check_all(op, *args)) == count
