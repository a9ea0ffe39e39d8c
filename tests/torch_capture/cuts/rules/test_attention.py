"""Letters of attention."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.torch_capture.cuts.one_op import OneOp, check_all  # noqa: E402

aten = torch.ops.aten
FORWARD = aten._scaled_dot_product_flash_attention_for_cpu.default
BACKWARD = aten._scaled_dot_product_flash_attention_for_cpu_backward.default
Q, K, V = torch.randn(3, 2, 4, 6, 8).unbind()
MASK = torch.randn(2, 1, 6, 6)


def kinds(op, *args, **kwargs) -> list[str]:
    return [letter.kind for letter in check_all(op, *args, **kwargs)]


# A causal mask depends on the place of a query, so the sequence is no letter then.
def test_forward_is_cut_by_batch_heads_and_queries() -> None:
    assert kinds(FORWARD, Q, K, V) == ["batch", "heads", "sequence"]
    assert kinds(FORWARD, Q, K, V, 0.0, True) == ["batch", "heads"]
    assert kinds(FORWARD, Q, K, V, attn_mask=MASK) == ["batch", "heads", "sequence"]


@pytest.mark.parametrize("causal", [True, False])
def test_backward_adds_up_gradients_of_keys_where_queries_are_cut(causal) -> None:
    out, sums = FORWARD(Q, K, V, 0.0, causal)
    names = kinds(BACKWARD, Q, Q, K, V, out, sums, 0.0, causal)
    assert names == ["batch", "heads", *["sequence"] * (not causal)]


def test_attention_with_dropout_has_no_letters() -> None:
    op = OneOp(FORWARD, Q, K, V, 0.0)
    op.node.args = (*op.node.args[:3], 0.5)
    assert op.letters() == []
