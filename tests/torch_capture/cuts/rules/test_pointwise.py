"""Letters of ops that work entry by entry."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.torch_capture.cuts.letters import Axis  # noqa: E402
from tests.torch_capture.cuts.one_op import OneOp, check_all  # noqa: E402

aten = torch.ops.aten
X = torch.arange(48.0).reshape(4, 2, 6) / 48


# Each dimension can be cut; operands of size 1 are read whole.
@pytest.mark.parametrize(
    ("op", "args"),
    [
        (aten.relu.default, (X,)),
        (aten.add.Tensor, (X, torch.ones(2, 6))),
        (aten.mul.Tensor, (X, torch.full((4, 1, 6), 2.0))),
        (aten.where.self, (X > 0.5, X, torch.zeros(6))),
        (aten.gelu_backward.default, (X, X)),
        (aten.clone.default, (X,)),
        (aten._to_copy.default, (X,)),
        (aten.native_dropout_backward.default, (X, X > 0.3, 1.5)),
    ],
)
def test_every_dimension_is_a_letter(op, args) -> None:
    assert len(check_all(op, *args)) == 3


def test_a_broadcast_operand_is_read_whole_along_its_dimension_of_one() -> None:
    (rows,) = (
        letter
        for letter in OneOp(aten.add.Tensor, X, torch.ones(4, 1, 1)).letters()
        if letter.outputs == (Axis(1),)
    )
    assert rows.inputs == (Axis(1), None)


def test_an_op_that_draws_has_no_letter() -> None:
    assert OneOp(aten.bernoulli.default, X).letters() == []
