"""Letters of embeddings."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.torch_capture.cuts.one_op import OneOp, check_all  # noqa: E402

aten = torch.ops.aten
TABLE = torch.randn(12, 4)
INDICES = torch.tensor([[0, 5, 11], [5, 6, 2]])
GRADIENT = torch.randn(2, 3, 4)


# Indices, columns, and rows: a part looks up its own rows.
def test_parts_of_a_table_add_up_to_its_rows() -> None:
    assert len(check_all(aten.embedding.default, TABLE, INDICES)) == 4


def test_gradients_of_rows_are_those_of_their_parts() -> None:
    op = aten.embedding_dense_backward.default
    assert len(check_all(op, GRADIENT, INDICES, 12, -1, False)) == 4


def test_rows_of_a_padded_table_stay_together_in_its_gradient() -> None:
    op = OneOp(aten.embedding_dense_backward.default, GRADIENT, INDICES, 12, 5, False)
    assert all(letter.kind != "vocabulary" and letter.size != 12 for letter in op.letters())
