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


# Groups of rows, one for each expert, are divided by columns and by the contracted dimension.
def test_parts_of_grouped_products_add_up_to_them() -> None:
    pytest.importorskip("transformers")
    import transformers.integrations.moe  # noqa: F401

    own = torch.ops.transformers
    rows, experts, ends = torch.randn(9, 4), torch.randn(3, 4, 12), torch.tensor([2, 5, 9])
    assert len(check_all(own.grouped_mm_fallback.default, rows, experts, ends)) == 2
    gradient = torch.randn(9, 12)
    backward = own.grouped_mm_fallback_backward.default
    assert len(check_all(backward, rows, experts, ends, gradient)) == 2


def test_grouped_products_of_pytorch_have_the_same_letters() -> None:
    ends = torch.tensor([2, 5, 9], dtype=torch.int32)
    rows, experts = torch.randn(9, 16).bfloat16(), torch.randn(3, 16, 32).bfloat16()
    forward = OneOp(aten._grouped_mm.default, rows, experts, ends).letters()
    assert [(one.size, one.is_contracted) for one in forward] == [(32, False), (16, True)]
