"""Letters of dropout: parts draw what the whole op draws."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.torch_capture.cuts.dropout_operator import dropout_part  # noqa: E402
from tests.torch_capture.cuts.one_op import OneOp  # noqa: E402

aten = torch.ops.aten
X = torch.randn(4, 6)


@pytest.mark.parametrize("x", [X, X.t()])
@pytest.mark.parametrize("dim", [0, 1])
def test_parts_drop_what_the_whole_drops(x, dim) -> None:
    torch.manual_seed(7)
    whole, mask = aten.native_dropout.default(x, 0.4, True)
    results, masks = [], []
    for begin, end in ((0, 1), (1, x.shape[dim])):
        torch.manual_seed(7)
        own = x.narrow(dim, begin, end - begin)
        place = [dim, 1, begin, end]
        part, kept = dropout_part(own, 0.4, list(mask.shape), list(mask.stride()), place)
        results.append(part)
        masks.append(kept)
    assert torch.equal(torch.cat(masks, dim), mask)
    torch.testing.assert_close(torch.cat(results, dim), whole)


def test_every_dimension_is_a_letter() -> None:
    assert len(OneOp(aten.native_dropout.default, X, 0.4, True).letters()) == 2


# Nothing is drawn outside of training, nor where everything is kept or dropped.
@pytest.mark.parametrize(("p", "train"), [(0.0, True), (1.0, True), (0.5, False)])
def test_a_dropout_that_draws_nothing_is_called_part_by_part(p, train) -> None:
    letters = OneOp(aten.native_dropout.default, X, p, train).letters()
    assert [letter.write for letter in letters] == [None, None]
