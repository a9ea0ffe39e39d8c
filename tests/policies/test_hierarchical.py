"""The Hierarchical Planner's policy, whose samples satisfy every constraint."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.data.graph import Graph, Op  # noqa: E402
from situate.data.problem import Problem  # noqa: E402
from situate.policies.grouper import Grouper  # noqa: E402
from situate.policies.hierarchical import Hierarchy, HierarchySample, Membership  # noqa: E402
from situate.policies.planner_features import (  # noqa: E402
    SampledGroupFeatures,
    op_features,
    unit_features,
)
from situate.policies.seq2seq import (  # noqa: E402
    Placer,
    entropy,
)
from tests.solvers.families import chain, devices, layered  # noqa: E402

EVERYWHERE = {"x1": 1.0, "x2": 1.5, "x3": 2.0}


def problem(*ops):
    """On d0, d1 and d2, whose kinds are x1, x2 and x3."""
    return Problem(Graph("small", ops), devices(1, 2, 3))


def op(name, seconds=EVERYWHERE, **changes):
    return Op(name, seconds=seconds, **changes)


# Membership: colocation groups, pins, and groups without a common device.
def test_ops_of_a_colocation_group_are_one_member():
    both = problem(op("a", group="g"), op("b"), op("c", group="g"))
    membership = Membership(both, 2)
    groups = np.array([1, 0])
    assert membership.of_ops(groups).tolist() == [1, 0, 1]
    assert membership.place(groups, np.array([2, 0])).tolist() == [0, 2, 0]


def test_a_unit_that_one_device_alone_can_run_is_in_no_group():
    pinned = problem(op("a", device="d1"), op("b"))
    membership = Membership(pinned, 4)
    assert membership.free.tolist() == [1]
    assert membership.of_ops(np.array([3])).tolist() == [4, 3]
    assert membership.place(np.array([3]), np.array([0, 0, 0, 2])).tolist() == [1, 2]


def test_a_group_may_go_where_all_of_its_members_can_run():
    some = problem(op("a", {"x1": 1.0, "x2": 1.0}), op("b", {"x2": 1.0, "x3": 1.0}), op("c"))
    membership = Membership(some, 3)
    allowed = membership.allowed(np.array([0, 0, 1]))
    assert allowed[0].tolist() == [False, True, False]
    assert allowed[1].all()


def test_an_empty_group_has_nothing_to_choose():
    allowed = Membership(problem(op("a"), op("b")), 3).allowed(np.array([2, 2]))
    assert allowed.tolist() == [[True, False, False], [True, False, False], [True, True, True]]


def test_without_a_common_device_the_most_members_decide_and_the_others_go_where_they_can_first():
    few, many = {"x1": 2.0, "x2": 1.0}, {"x3": 1.0, "x1": 1.0}
    some = problem(op("a", {"x2": 1.0, "x3": 2.0}), op("b", many), op("c", few), op("e", many))
    membership = Membership(some, 1)
    groups = np.zeros(4, np.int64)
    assert membership.allowed(groups).tolist() == [[True, False, True]]
    assert membership.place(groups, np.array([0])).tolist() == [1, 0, 0, 0]
    assert membership.place(groups, np.array([2])).tolist() == [2, 2, 0, 2]


OPS, GROUPS, DEVICES = 3, 2, 2


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def hierarchy(problem, groups=GROUPS):
    membership, ops = Membership(problem, groups), op_features(problem)
    embeddings = SampledGroupFeatures(problem, ops, groups)
    features = torch.from_numpy(unit_features(problem, ops)[membership.free])
    grouper = Grouper(features, groups, 4, seeded(1))
    placer = Placer(embeddings.width, problem.d, 3, generator=seeded(2), uniform=False, width=4)
    return Hierarchy(grouper, placer, membership, embeddings)


def every_sample(policy):
    """All groupings of the ops, each with all devices that its groups may go to."""
    groups = torch.tensor(list(product(range(GROUPS), repeat=OPS)))
    devices = torch.tensor(list(product(range(DEVICES), repeat=GROUPS)))
    grouping = torch.arange(len(groups)).repeat_interleave(len(devices))
    devices = devices.repeat(len(groups), 1)
    _, allowed = policy.encode(groups, grouping)
    possible = allowed.gather(2, devices.unsqueeze(2)).all(1).squeeze(1)
    grouping = grouping[possible]
    return HierarchySample(groups, grouping, *policy.encode(groups, grouping), devices[possible])


def probabilities(policy, sample):
    """p(g) p(d | g) of every sample."""
    log_p = torch.log_softmax(policy.grouper.last(policy.grouper.hidden()), 1)
    of_groups = log_p.expand(len(sample.groups), -1, -1).gather(2, sample.groups.unsqueeze(2))
    of_devices = policy.placer.log_probs(sample.memory, sample.devices, sample.allowed)
    placement_rows = of_devices.gather(2, sample.devices.unsqueeze(2)).sum((1, 2))
    return (of_groups.sum((1, 2))[sample.grouping] + placement_rows).exp()


# Estimators against the enumeration of all placements of a small problem.
def test_the_probabilities_of_all_placements_add_up_to_one():
    policy = hierarchy(Problem(chain(OPS), devices(1, 1))).double()
    total = probabilities(policy, every_sample(policy)).sum()
    assert total.item() == pytest.approx(1)


def test_the_mean_of_the_estimators_is_the_gradient_of_the_expected_reward():
    policy = hierarchy(Problem(chain(OPS), devices(1, 1))).double()
    sample = every_sample(policy)
    p = probabilities(policy, sample)
    reward = torch.randn(len(p), generator=seeded(3)).double()
    parameters = list(policy.parameters())
    exact = torch.autograd.grad((p * reward).sum(), parameters, retain_graph=True)
    as_often = p.detach() * len(p)
    estimated = torch.autograd.grad(policy.objective(sample, as_often * reward), parameters)
    for one, other in zip(exact, estimated, strict=True):
        torch.testing.assert_close(one, other)
        assert other.abs().max() > 0


def test_entropy_is_added_to_the_objective_with_its_weight():
    policy = hierarchy(Problem(chain(OPS), devices(1, 1))).double()
    sample = every_sample(policy)
    advantage = torch.randn(len(sample.grouping), generator=seeded(3)).double()
    log_p = policy.placer.log_probs(sample.memory, sample.devices, sample.allowed)
    both = policy.objective(sample, advantage, 2.0)
    torch.testing.assert_close(both, policy.objective(sample, advantage) + 2 * entropy(log_p))


def test_several_placements_of_a_grouping_share_its_groups():
    problem = Problem(layered(4, 4, 1), devices(1, 1, 2))
    sample = hierarchy(problem, groups=5).draw(7, 3, seeded())
    assert sample.groups.shape == (3, 16)
    assert sample.grouping.tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert sample.devices.shape == (7, 5)


@pytest.mark.parametrize("placements", [1, 3, 6])
def test_how_samples_are_shared_among_groupings_changes_no_sample_s_probability(placements):
    policy = hierarchy(Problem(layered(4, 4, 1), devices(1, 1, 2)), groups=5).double()
    sample = policy.draw(6, placements, seeded())
    alone = []
    for i, grouping in enumerate(sample.grouping.tolist()):
        groups, first = sample.groups[[grouping]], torch.zeros(1, dtype=torch.int64)
        one = HierarchySample(groups, first, *policy.encode(groups, first), sample.devices[[i]])
        alone.append(policy.objective(one, torch.ones(1).double()))
    together = policy.objective(sample, torch.ones(6).double())
    torch.testing.assert_close(together, torch.stack(alone).mean())
