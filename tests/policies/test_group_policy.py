"""A policy over a problem's groups keeps to what the problem allows."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from msgspec import structs

torch = pytest.importorskip("torch")

from situate.data.problem import Problem  # noqa: E402
from situate.grouping import make_groups  # noqa: E402
from situate.policies.group_policy import GroupPolicy  # noqa: E402
from situate.policies.shape import Shape  # noqa: E402
from tests.solvers.families import devices, fork  # noqa: E402

SHAPES = (Shape(4, 2), Shape(4, 1, "general", aligned=True))


def pinned(pins):
    """A fork of eight ops, some of them pinned."""
    free = fork(8)
    ops = tuple(structs.replace(op, device=pins.get(i)) for i, op in enumerate(free.ops))
    return Problem(dataclasses.replace(free, ops=ops), devices(1, 1, 2))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_sample_keeps_to_pins_and_every_device_is_tried(shape):
    problem = pinned({2: "d1", 5: "d2"})
    groups = make_groups(problem, np.arange(problem.units))
    draws = torch.Generator().manual_seed(0)
    drawn = GroupPolicy(problem, groups, shape, draws).sample(200, draws).numpy()
    placements = groups.expand(drawn)
    assert (placements[:, 2] == 1).all()
    assert (placements[:, 5] == 2).all()
    assert all(len(np.unique(placements[:, op])) == 3 for op in (0, 1, 3, 4, 6, 7))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_parameters_take_part_once_the_policy_is_not_uniform(shape):
    problem = pinned({})
    groups = make_groups(problem, np.arange(problem.units))
    draws = torch.Generator().manual_seed(0)
    policy = GroupPolicy(problem, groups, shape, draws)
    torch.nn.init.normal_(policy.placer.head.weight, generator=draws)
    policy.log_probs(policy.sample(4, draws))[:, :, 0].sum().backward()
    assert all(bool(p.grad.abs().sum() > 0) for p in policy.parameters())
