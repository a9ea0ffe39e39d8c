"""Distances between the rows of two matrices."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tests.torch_capture.slices.dependence.judge import (  # noqa: E402
    ROUNDING,
    Step,
    difference,
    verdict,
)


class Codes(nn.Linear):
    """A layer and a table of seven rows, trained and not."""

    def __init__(self):
        super().__init__(6, 6)
        self.codes = nn.Parameter(torch.randn(7, 6))
        self.register_buffer("fixed", torch.randn(7, 6))


# Distances to rows of a table are per sample, and distances between samples are not.
@pytest.mark.parametrize(
    "distances",
    [
        lambda m, z: torch.cdist(z, m.codes),
        lambda m, z: torch.cdist(m.codes, z).t(),
        lambda m, z: torch.cdist(z, m.fixed),
        lambda m, z: torch.cdist(z.view(-1, 2, 3), z.view(-1, 2, 3).exp()).flatten(1),
    ],
)
def test_distances_to_a_table_stay_apart(distances):
    step = Step(lambda m, x, y: distances(m, m(x)).square().amin(1).mean(), Codes)
    answer = verdict(step, (3, 1))
    assert answer.is_silent, answer
    assert difference(step, (3, 1), answer.loss) < ROUNDING


@pytest.mark.parametrize(
    "distances",
    [
        lambda m, z: torch.cdist(z, z),
        lambda m, z: torch.cdist(z.t(), z.t().tanh()),
        lambda m, z: torch.cdist(z, m.codes * z.mean()),
        lambda m, z: torch.cdist(z, m.codes / len(z)),
    ],
)
def test_distances_between_samples_are_not_silent(distances):
    step = Step(lambda m, x, y: distances(m, m(x)).square().mean(), Codes)
    assert not verdict(step, (1, 1)).is_silent
