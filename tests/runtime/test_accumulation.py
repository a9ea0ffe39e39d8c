"""Gradients and buffers of slices in one model."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate.data.slices import Slices, Sums  # noqa: E402
from situate.runtime.accumulation import Accumulation  # noqa: E402

GRADIENTS = (1.0, 1e8, -1e8, 1.0)
"""Numbers that add up to another one in each order."""


class Counting(nn.Module):
    """One parameter, and a buffer that the caller counts in."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.register_buffer("seen", torch.zeros(1))


def total(sums: Sums, replicas: tuple[int, ...] = ()) -> tuple[float, float]:
    """The gradient, and what the buffer counts, after a step of four slices."""
    model = Counting()
    found = Accumulation(model, Slices((1, 1, 1, 1), replicas=replicas, sums=sums))
    for place, gradient in zip(found.places, GRADIENTS, strict=True):
        place.put()
        model.seen += 1
        (gradient * model.weight).backward()
        place.take()
    found.finish()
    assert model.weight.grad is not None
    return model.weight.grad.item(), model.seen.item()


def test_a_chain_adds_to_what_is_there():
    assert total("chain") == (1.0, 4.0)


def test_a_tree_adds_up_pairs_of_neighbours():
    assert total("tree") == (0.0, 4.0)


@pytest.mark.parametrize("sums", ["chain", "tree"])
def test_replicas_add_up_by_themselves_and_the_model_keeps_the_buffers_of_the_first(sums):
    """1 - 1e8 and 1e8 + 1 lose their ones."""
    assert total(sums, replicas=(2, 2)) == (0.0, 2.0)


def test_parameters_that_no_slice_reads_have_no_gradient():
    model = Counting()
    Accumulation(model, Slices((1, 1))).finish()
    assert model.weight.grad is None
