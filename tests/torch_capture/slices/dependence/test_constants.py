"""Constants of a step at the size of a slice beside those at the size of the batch."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from situate.torch_capture.slices.dependence.constants import (  # noqa: E402
    Cutting,
    constant_relation,
    constant_values,
)
from situate.torch_capture.slices.dependence.relation import (  # noqa: E402
    SHARED,
    UNKNOWN,
    ZERO,
    Relation,
    by_sample,
)

HALVES = Cutting(4, 8, (0, 4))
PLACES = Relation("places")


def relation(constant, cutting=HALVES):
    """The relation of a constant that is computed from a number of samples."""
    return constant_relation(constant(cutting.samples), constant(cutting.total), cutting)


# Constants relate to samples by their values at both sizes.
@pytest.mark.parametrize("cutting", [HALVES, Cutting(6, 8, (0,)), Cutting(2, 8, (6,))])
def test_numbers_of_samples_are_places_wherever_the_batch_is_cut(cutting):
    assert relation(torch.arange, cutting) == PLACES
    assert relation(lambda n: torch.arange(n)[None], cutting) == Relation("places", axis=1)
    assert relation(lambda n: torch.arange(2 * n), cutting) == Relation("places", scale=2)


def test_equal_entries_are_uniform():
    assert relation(lambda n: torch.ones(n, 2)) == by_sample(0, uniform=True)
    assert relation(lambda n: torch.zeros(2, n)) == by_sample(1, None, uniform=True)
    assert relation(lambda n: torch.ones(n) / n) == by_sample(0, 1, uniform=True)


def test_entries_that_repeat_in_every_slice_belong_to_samples():
    assert relation(lambda n: torch.arange(n) % 4) == by_sample(0)
    assert relation(lambda n: torch.arange(n) % 4, Cutting(6, 8, (0,))) == by_sample(0)
    assert relation(lambda n: torch.arange(n) % 4, Cutting(2, 8, (6,))) == UNKNOWN


def test_blocks_of_samples_stand_one_behind_the_other():
    halves = relation(lambda n: torch.arange(n) < n // 2)
    assert halves == by_sample(0, blocks=2)
    labels = relation(lambda n: torch.cat([torch.ones(n), torch.zeros(n), torch.full((n,), 3.0)]))
    assert labels == by_sample(0, blocks=3)


def test_blocks_that_do_not_fit_the_batch_are_none():
    assert relation(lambda n: torch.linspace(0, 1, n), Cutting(4, 5, (0,))) == UNKNOWN
    assert relation(lambda n: torch.linspace(0, 1, n), Cutting(6, 8, (0,))) == UNKNOWN


# Constants that hold no samples are shared, scale with the batch, or are unknown.
def test_a_count_of_samples_has_a_power():
    assert relation(torch.tensor) == SHARED.with_power(-1)
    assert relation(lambda n: torch.tensor(1 / n**2), Cutting(6, 8, (0,))) == SHARED.with_power(2)


def test_what_does_not_change_is_shared():
    assert relation(lambda n: torch.linspace(0, 1, 5)) == SHARED
    assert relation(lambda n: torch.zeros(5)) == ZERO


@pytest.mark.parametrize(
    "constant",
    [
        lambda n: torch.linspace(0, 1, n),
        lambda n: torch.arange(n) - 1,
        lambda n: (torch.arange(n) + 6) % n,
        lambda n: torch.arange(n).flip(0),
        torch.eye,
        lambda n: torch.ones(n + 1),
        lambda n: torch.tensor(n + 1.0),
        lambda n: torch.ones((1,) * n),
    ],
)
def test_a_constant_of_another_kind_is_unknown(constant):
    assert relation(constant) == UNKNOWN


def test_values_are_computed_without_inputs_and_without_chance():
    def step(x):
        return x * (torch.arange(4) + 1), torch.rand(4) + 1, torch.empty(4) * 2

    graph = make_fx(step)(torch.zeros(4)).graph
    values = constant_values(list(graph.nodes), {})
    assert [value.tolist() for value in values.values()] == [[0, 1, 2, 3], [1, 2, 3, 4]]
