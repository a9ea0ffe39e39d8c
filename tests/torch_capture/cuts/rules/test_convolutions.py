"""Letters of convolutions, poolings and batch norms."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.torch_capture.cuts.one_op import OneOp, check_all  # noqa: E402

aten = torch.ops.aten
X = torch.randn(2, 4, 6, 6)
W, B = torch.randn(6, 4, 3, 3), torch.randn(6)
GROUPED = torch.randn(8, 2, 3, 3)
GEOMETRY = ([1, 1], [1, 1], [1, 1], False, [0, 0])
MEAN, VARIANCE, SCALE = torch.randn(4), torch.rand(4) + 0.5, torch.randn(4)


# Samples, output channels and input channels; groups where there are some.
@pytest.mark.parametrize(
    ("weight", "bias", "groups", "count"),
    [(W, None, 1, 3), (W, B, 1, 3), (GROUPED, None, 2, 2), (GROUPED, torch.randn(8), 2, 2)],
)
def test_parts_of_a_convolution_give_the_whole(weight, bias, groups, count) -> None:
    op = aten.convolution.default
    assert len(check_all(op, X, weight, bias, *GEOMETRY, groups)) == count
    gradient = torch.randn(2, weight.shape[0], 6, 6)
    sizes = None if bias is None else [weight.shape[0]]
    mask = [True, True, bias is not None]
    back = aten.convolution_backward.default
    assert len(check_all(back, gradient, X, weight, sizes, *GEOMETRY, groups, mask)) == count


def test_a_transposed_convolution_has_no_letters() -> None:
    transposed = (*GEOMETRY[:3], True, [0, 0])
    weight = torch.randn(4, 6, 3, 3)
    assert OneOp(aten.convolution.default, X, weight, None, *transposed, 1).letters() == []


# Poolings work on each channel of each sample alike.
@pytest.mark.parametrize(
    ("op", "args"),
    [
        (aten.max_pool2d_with_indices.default, (X, [2, 2])),
        (aten.avg_pool2d.default, (X, [2, 2])),
        (
            aten.avg_pool2d_backward.default,
            (X[..., :3, :3], X, [2, 2], [2, 2], [0, 0], False, True, None),
        ),
        (aten._adaptive_avg_pool2d.default, (X, [1, 1])),
        (aten._adaptive_avg_pool2d_backward.default, (X[..., :1, :1], X)),
    ],
)
def test_poolings_are_cut_by_samples_and_channels(op, args) -> None:
    assert [letter.kind for letter in check_all(op, *args)] == ["batch", "channels"]


# Statistics of a batch norm are those of a channel.
@pytest.mark.parametrize("training", [True, False])
def test_batch_norms_are_cut_by_channels(training) -> None:
    op = aten._native_batch_norm_legit_functional.default
    args = (X, SCALE, SCALE, MEAN, VARIANCE, training, 0.1, 1e-5)
    assert len(check_all(op, *args)) == 1
    if training:
        _, mean, inverse, *_ = op(*args)
        back = aten.native_batch_norm_backward.default
        rest = (SCALE, MEAN, VARIANCE, mean, inverse, True, 1e-5, [True, True, True])
        assert len(check_all(back, X, X, *rest)) == 1
