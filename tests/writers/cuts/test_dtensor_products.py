"""Results of fused products in exports to torch.distributed.tensor, taken apart at their ranges."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from situate.writers.cuts.dtensor_products import Ranges  # noqa: E402

WHOLE = torch.arange(2 * 5 * 24.0).reshape(2, 5, 24)


def ranges(count: int = 3) -> Any:
    return Ranges(WHOLE.chunk(count, -1))


def equal(own: Any, expected: Any) -> bool:
    return all(torch.equal(one, other) for one, other in zip(own, expected, strict=True))


# Each way in which models take a fused result apart gives the ranges.
def test_a_split_gives_the_ranges() -> None:
    assert equal(ranges().split(8, dim=2), WHOLE.split(8, dim=2))
    assert equal(torch.split(ranges(), [8, 8, 8], -1), WHOLE.split(8, -1))
    assert equal(ranges(2).chunk(2, dim=-1), WHOLE.chunk(2, -1))
    assert equal(torch.chunk(ranges(2), 2, -1), WHOLE.chunk(2, -1))


@pytest.mark.parametrize("index", [(..., slice(8)), (..., slice(8, 16)), (..., slice(-8, None))])
def test_a_slice_gives_its_range(index) -> None:
    assert torch.equal(ranges()[index], WHOLE[index])
    assert torch.equal(ranges()[:, :, index[-1]], WHOLE[index])


@pytest.mark.parametrize("sizes", [(2, 5, 3, 2, 4), (2, 5, 3, -1, 4), (10, 3, 8)])
def test_a_view_has_a_dimension_for_the_ranges(sizes) -> None:
    assert torch.equal(ranges().view(*sizes), WHOLE.view(*sizes))
    assert torch.equal(ranges().reshape(sizes), WHOLE.reshape(sizes))


def test_the_whole_has_a_shape() -> None:
    own = ranges()
    assert own.shape == own.size() == WHOLE.shape
    assert (own.size(-1), own.dim(), own.ndim, own.dtype) == (24, 3, 3, WHOLE.dtype)


# Anything else would need the whole, and says so.
@pytest.mark.parametrize(
    "use",
    [
        lambda x: x.split(6, -1),
        lambda x: x.split(1, 0),
        lambda x: x[..., 2:10],
        lambda x: x[0],
        lambda x: x[..., ::2],
        lambda x: x.view(2, 5, 4, 6),
        lambda x: torch.relu(x),
    ],
)
def test_other_uses_are_refused(use) -> None:
    with pytest.raises(TypeError, match="taken apart at its ranges alone"):
        use(ranges())


def test_arithmetic_on_the_whole_is_refused() -> None:
    with pytest.raises(AttributeError, match="no 'transpose': split it first"):
        ranges().transpose(1, 2)
