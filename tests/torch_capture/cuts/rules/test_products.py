"""Letters of matrix products."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.torch_capture.cuts.one_op import OneOp, check_all  # noqa: E402

aten = torch.ops.aten
A, B = torch.randn(6, 4), torch.randn(4, 12)
C, D = torch.randn(2, 6, 4), torch.randn(2, 4, 12)


# Rows, columns and the contracted dimension; a term is added once.
@pytest.mark.parametrize(
    ("op", "args", "count"),
    [
        (aten.mm.default, (A, B), 3),
        (aten.mm.default, (A[:1], B), 2),
        (aten.addmm.default, (torch.randn(12), A, B), 3),
        (aten.addmm.default, (torch.randn(6, 12), A, B), 3),
        (aten.addmm.default, (torch.randn(6, 1), A, B), 3),
        (aten.bmm.default, (C, D), 4),
        (aten.baddbmm.default, (torch.randn(2, 1, 12), C, D), 3),
        (aten.mv.default, (A, torch.randn(4)), 2),
    ],
)
def test_parts_of_a_product_add_up_to_it(op, args, count) -> None:
    assert len(check_all(op, *args)) == count


def test_a_scaled_sum_is_not_contracted() -> None:
    letters = OneOp(aten.addmm.default, torch.randn(12), A, B, beta=2).letters()
    assert not any(letter.is_contracted for letter in letters)
