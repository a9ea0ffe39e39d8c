"""A product of two dtypes, which eager PyTorch refuses, is refused."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.errors import SituateError  # noqa: E402
from tests.readers.calling import of  # noqa: E402

MIXED = {
    "layer": lambda model, x: model.layer(x.double()),
    "product": lambda model, x: model.layer(x) @ torch.ones(3, 3, dtype=torch.bfloat16),
    "batched": lambda model, x: torch.bmm(x[None], torch.ones(1, 3, 3).half())[0].float() + x,
    "convolution": lambda model, x: torch.conv1d(
        model.layer(x)[None], torch.ones(2, 4, 1).double()
    ),
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("case", MIXED)
def test_it_is_refused_with_its_line(case, training):
    with pytest.raises(
        SituateError, match=r"test_matrix_products\.py:\d+: a product of .*: cast one$"
    ):
        of(MIXED[case], training)


def test_eager_pytorch_refuses_it_too():
    with pytest.raises(RuntimeError):
        torch.ones(3, 3) @ torch.ones(3, 3).double()


def test_the_remedy_helps_and_sums_may_be_mixed():
    assert of(lambda model, x: model.layer(x.double().float()) + torch.ones(3).double()).ops
