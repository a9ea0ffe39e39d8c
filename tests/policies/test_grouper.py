"""The grouper's gradient against finite differences, its samples against its probabilities."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.policies.grouper import Grouper  # noqa: E402


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def grouper(units=7, groups=3, **changes):
    features = torch.rand(units, 4, generator=seeded(1))
    return Grouper(features, groups, 5, seeded(), **changes).double()


def log_probabilities(of, start=None, trust=0.0):
    """(u, g), as the docstring says and without blocks."""
    logits = of.hidden() @ of.last.weight.t() + of.last.bias
    if start is not None:
        logits = logits + trust * torch.nn.functional.one_hot(start, logits.shape[1])
    return torch.log_softmax(logits, 1)


def plain(of, groups, weights, **changes):
    log_p = log_probabilities(of, **changes).expand(len(groups), -1, -1)
    return weights @ log_p.gather(2, groups.unsqueeze(2)).sum((1, 2))


# Values and gradients.
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("units", [7, 4099])
def test_log_prob_and_its_gradient_are_those_of_a_plain_softmax(units, relu):
    start = torch.randint(0, 3, (units,), generator=seeded(2))
    of = grouper(units, relu=relu, start=start, trust=1.5)
    torch.nn.init.normal_(of.last.weight, generator=seeded(3))
    groups = torch.randint(0, 3, (2, units), generator=seeded(4))
    weights = torch.tensor([0.3, -1.2], dtype=torch.float64)
    ours = of.log_prob(groups, weights)
    theirs = plain(of, groups, weights, start=start, trust=1.5)
    torch.testing.assert_close(ours, theirs)
    parameters = list(of.parameters())
    for one, other in zip(
        torch.autograd.grad(2 * ours, parameters),
        torch.autograd.grad(2 * theirs, parameters),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


@torch.no_grad()
def moved(of, value, direction, step):
    """value() after a step of all parameters."""
    for parameter, part in zip(of.parameters(), direction, strict=True):
        parameter += step * part
    result = value()
    for parameter, part in zip(of.parameters(), direction, strict=True):
        parameter -= step * part
    return result


def test_the_gradient_is_that_of_finite_differences():
    of = grouper(relu=True)
    groups = torch.randint(0, 3, (2, 7), generator=seeded(4))
    weights = torch.tensor([0.3, -1.2], dtype=torch.float64)
    parameters = list(of.parameters())
    slopes = torch.autograd.grad(of.log_prob(groups, weights), parameters)
    for seed in range(5):
        draws = seeded(seed)
        direction = [torch.randn(p.shape, generator=draws, dtype=p.dtype) for p in parameters]
        ends = (
            moved(of, lambda: of.log_prob(groups, weights), direction, s) for s in (1e-6, -1e-6)
        )
        along = sum((a * b).sum() for a, b in zip(slopes, direction, strict=True))
        assert ((next(ends) - next(ends)) / 2e-6).item() == pytest.approx(along.item(), rel=1e-6)


# Samples: frequencies, trust, noise and seeds.
def test_groups_are_drawn_as_often_as_they_are_probable():
    of = grouper()
    groups_drawn = torch.nn.functional.one_hot(of.sample(20_000, seeded()), 3)
    frequencies = groups_drawn.double().mean(0)
    assert (frequencies - log_probabilities(of).exp()).abs().max() < 0.02


def test_a_start_that_is_trusted_is_drawn():
    start = torch.tensor([2, 0, 1, 1, 0, 2, 2])
    assert (grouper(start=start, trust=40.0).sample(5, seeded()) == start).all()


def test_noise_moves_all_samples_of_one_draw_together():
    of = grouper(units=500)
    torch.nn.init.normal_(of.last.weight, std=3.0, generator=seeded(3))
    quiet, loud = log_probabilities(of), of.sample(400, seeded(), noise=2.0)
    often = torch.nn.functional.one_hot(loud, 3).double().mean(0)
    assert (often - quiet.exp()).abs().mean() > 0.1
    assert (often.max(1).values > 0.6).double().mean() > 0.5


def test_draws_depend_on_the_generator_alone():
    one, other = grouper(), grouper()
    torch.manual_seed(5)
    first = one.sample(3, seeded(9), noise=0.5)
    torch.manual_seed(6)
    assert (first == other.sample(3, seeded(9), noise=0.5)).all()


def test_without_units_there_is_nothing_to_draw():
    of = grouper(units=0)
    assert of.sample(2, seeded()).shape == (2, 0)
    assert of.log_prob(torch.empty(2, 0, dtype=torch.int64), torch.ones(2).double()) == 0
