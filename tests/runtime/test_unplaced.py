"""An unplaced step, and the gradients and buffers of its slices."""

from __future__ import annotations

import pytest
from torch import nn

torch = pytest.importorskip("torch")

from situate.data.slices import Slices, Sums  # noqa: E402
from situate.runtime.unplaced import (  # noqa: E402
    Accumulation,
    UnplacedStep,
    result_tensors,
)
from tests import branches  # noqa: E402
from tests.runtime.placing import sgd  # noqa: E402

GRADIENTS = (1.0, 1e8, -1e8, 1.0)
"""Numbers that add up to another one in each order."""


class Counting(nn.Module):
    """One parameter, and a buffer that the caller counts in."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.register_buffer("seen", torch.zeros(1))


def total(sums: Sums, replicas: tuple[int, ...] = ()) -> tuple[float, float]:
    """The gradient and the buffer's count after a step of four slices."""
    model = Counting()
    results = Accumulation(model, Slices((1, 1, 1, 1), replicas=replicas, sums=sums))
    for place, gradient in zip(results.places, GRADIENTS, strict=True):
        place.restore()
        model.seen += 1
        (gradient * model.weight).backward()
        place.save()
    results.finish()
    assert model.weight.grad is not None
    return model.weight.grad.item(), model.seen.item()


# Accumulation over slices and replicas.
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


# Whole unplaced steps.
def test_steps_train_and_draw_from_the_seed_alone():
    results = []
    for noise in (1, 2):
        torch.manual_seed(0)
        model, inputs, loss = branches.build()
        step = UnplacedStep(model, inputs, loss, sgd(list(model.parameters())), seed=3)
        torch.manual_seed(noise)
        results.append([float(*step()) for _ in range(2)])
        assert int(model.calls) == 2
        assert all(parameter.grad is None for parameter in model.parameters())
    assert results[0] == results[1]
    assert results[0][0] != results[0][1]


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_draws_the_same_again(reentrant):
    """With and without it, dropout gives the same losses."""
    from torch.utils.checkpoint import checkpoint

    class Dropping(torch.nn.Module):
        def __init__(self, saves):
            super().__init__()
            self.layer, self.saves = torch.nn.Linear(8, 8), saves

        def forward(self, x):
            x = self.layer(x)
            if self.saves:
                return checkpoint(self.drop, x, use_reentrant=reentrant)
            return self.drop(x)

        def drop(self, x):
            return torch.nn.functional.dropout(self.layer(torch.tanh(x)), 0.5, self.training)

    results = []
    x = torch.randn(16, 8)
    for saves in (False, True):
        torch.manual_seed(0)
        model = Dropping(saves)
        step = UnplacedStep(
            model, (x,), lambda model, x: model(x).square().mean(), sgd([*model.parameters()])
        )
        results.append([float(*step()) for _ in range(3)])
    assert results[0] == results[1]


def test_inference_returns_what_the_model_does_and_changes_nothing():
    model, inputs, loss = branches.build()
    (value,) = UnplacedStep(model, inputs, loss, None)()
    assert value.shape == (16, 4)
    assert int(model.calls) == 0


def test_a_step_may_overwrite_its_inputs():
    x = torch.ones(2, 3)
    model = torch.nn.Linear(3, 1)
    step = UnplacedStep(
        model, (x,), lambda model, x: model(x.mul_(2)).sum(), sgd([*model.parameters()])
    )
    step()
    assert x.eq(1).all()


def test_leaves_are_the_tensors_of_what_is_returned():
    one, two = torch.ones(1), torch.ones(2)
    assert result_tensors({"a": (one, 3), "b": [two, None]}) == [one, two]
