"""Steps without chance."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402

from situate.torch_capture.comparison.fixed_draws import Draws  # noqa: E402

ONES = torch.ones(2, 3)

DRAWN = {
    "rand": (lambda: torch.rand(2, 3), 0.5),
    "rand_like": (lambda: torch.rand_like(ONES), 0.5),
    "randn": (lambda: torch.randn(2, 3), 0),
    "randint": (lambda: torch.randint(5, (2, 3)), 0),
    "bernoulli": (lambda: torch.bernoulli(ONES / 3), 1),
    "uniform_": (lambda: ONES.clone().uniform_(2, 3), 2.5),
    "normal_": (lambda: ONES.clone().normal_(7, 2), 7),
}


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_drawn_is_the_same_for_every_sample(name):
    draw, number = DRAWN[name]
    with Draws().fixed():
        drawn = draw()
    assert torch.equal(drawn, torch.full_like(drawn, number))


@pytest.mark.parametrize(
    "dropout",
    [lambda x: F.dropout(x, 0.75), lambda x: torch.native_dropout(x, 0.75, True)[0]],
    ids=["dropout", "native_dropout"],
)
def test_dropout_keeps_all_numbers_and_scales_them_as_those_that_it_keeps(dropout):
    x = ONES.clone().requires_grad_()
    with Draws().fixed():
        out = dropout(x)
        out.sum().backward()
    assert torch.equal(out, 4 * ONES)
    assert torch.equal(x.grad, 4 * ONES)


@pytest.mark.parametrize(("p", "train", "number"), [(0.75, False, 1), (1.0, True, 0)])
def test_dropout_that_keeps_all_or_none_does_so(p, train, number):
    with Draws().fixed():
        assert torch.equal(torch.native_dropout(ONES, p, train)[0], number * ONES)


def test_an_order_that_is_drawn_is_that_of_the_samples():
    with Draws().fixed():
        assert torch.randperm(4).tolist() == [0, 1, 2, 3]


def test_the_generator_draws_as_before_afterwards():
    with Draws().fixed():
        torch.rand(2)
    assert not torch.equal(torch.rand(8), torch.rand(8))


@pytest.mark.parametrize(
    ("dtype", "bits"),
    [(torch.float64, 64), (torch.float32, 32), (torch.bfloat16, 16), (torch.int8, 64)],
)
def test_numbers_of_few_bits_are_noted(dtype, bits):
    draws = Draws()
    with draws.fixed():
        ONES.to(dtype).add(1)
    assert draws.bits == bits
