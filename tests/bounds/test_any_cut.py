"""The bound over all cuts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from situate import Cluster, Graph, Problem, solve  # noqa: E402
from situate.bounds.any_cut import least_in_any_cut, longest_path  # noqa: E402
from situate.data.cluster import Device, Link  # noqa: E402
from situate.data.cuts import Cuts, parse_cuts  # noqa: E402
from situate.data.graph import Op, Tensor  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from situate.torch_capture import trace_step  # noqa: E402
from tests.solvers.exhaustive import optimum  # noqa: E402

LAUNCH = 1e-6


def cluster(speeds: tuple[float, ...] = (1, 1)) -> Cluster:
    """GPUs of these speeds, which reach one another in no time."""
    gpus = tuple(
        Device(f"gpu{k}", flops={"float32": s * 1e12}, bandwidth=s * 1e12, launch=LAUNCH)
        for k, s in enumerate(speeds)
    )
    return Cluster("gpus", gpus, (Link("*", "*", bandwidth=1e15, latency=0.0),))


def chain(count: int = 3) -> Problem:
    """Ops of a microsecond of work, one after the other."""
    ops = tuple(Op(f"op{k}", flops=10**6, dtype="float32") for k in range(count))
    tensors = tuple(Tensor(f"t{k}", k, 8, (k + 1,)) for k in range(count - 1))
    return Problem(Graph("chain", ops, tensors), cluster())


# Each op of a path takes its launch and an equal share of its work.
def test_a_path_is_as_long_as_its_launches_and_shares() -> None:
    work = float(chain(1).seconds[0, 0]) - LAUNCH
    seconds, path = longest_path(chain(), 2)
    assert seconds == pytest.approx(3 * (LAUNCH + work / 2))
    assert sorted(path) == [0, 1, 2]


def test_the_larger_of_load_and_path_is_the_bound() -> None:
    apart = replace(chain(), graph=replace(chain().graph, tensors=()))
    assert least_in_any_cut(chain(), 2) == pytest.approx(longest_path(chain(), 2)[0])
    assert least_in_any_cut(apart, 2) == pytest.approx(apart.seconds[:, 0].sum() / 2)


def test_ops_with_times_of_their_own_have_no_launch() -> None:
    ops = (Op("op", seconds={"*": 8.0}),)
    own = Problem(Graph("step", ops), Cluster.identical(4))
    assert longest_path(own, 4)[0] == pytest.approx(2.0)
    assert least_in_any_cut(own, 4) == pytest.approx(2.0)


@pytest.mark.parametrize("objective", ["memory", "throughput"])
def test_other_objectives_have_no_bound(objective) -> None:
    assert least_in_any_cut(replace(chain(), objective=objective), 2) == 0.0


# Every cut of tiny steps, with the best of all placements and orders: none is below the bound.
def product_pair():
    """Two products of a sample, whose inner dimension can be cut."""
    model = nn.Sequential(nn.Linear(8, 32, bias=False), nn.Linear(32, 8, bias=False))
    return model, (torch.empty(4, 8),), lambda m, x: m(x)


def cuts_of_two() -> list[Cuts]:
    texts = (["features=2"], ["batch=2"], ["others=2"], ["features=3:1"], ["batch=3:1"])
    return [*map(parse_cuts, texts), parse_cuts(["batch=2", "features=2"])]


@pytest.mark.parametrize("speeds", [(1, 1), (3, 1)])
def test_no_plan_in_any_cut_is_below_the_bound(speeds) -> None:
    step = trace_step(product_pair, "sgd", "pair", training=False)
    machine = cluster(speeds)
    whole = Problem(step.graph(), machine)
    least, values = least_in_any_cut(whole, 2), [optimum(whole)]
    for cuts in cuts_of_two():
        try:
            problem = Problem(step.graph(cuts=cuts), machine)
        except SituateError:
            continue
        values.append(_best(problem))
    assert len(values) > 4
    assert 0 < least <= min(values)


def _best(problem: Problem) -> float:
    """The best plan of all placements, or no plan is better than its proved bound."""
    if problem.n <= 7:
        return optimum(problem)
    result = solve(problem, evaluations=3000)
    assert result.lower_bound is not None
    return result.value if result.optimal else result.lower_bound


def test_no_plan_of_a_training_step_is_below_the_bound() -> None:
    def build():
        model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
        return model, (torch.empty(32, 64),), lambda m, x: m(x).square().mean()

    step = trace_step(build, "adam", "perceptron")
    machine = cluster((2, 1, 1))
    least = least_in_any_cut(Problem(step.graph(), machine), 3)
    values = []
    for texts in (["features=2"], ["batch=2"], ["features=2:1:1"], ["batch=2", "features=2"]):
        problem = Problem(step.graph(cuts=parse_cuts(texts)), machine)
        values.append(solve(problem, evaluations=500).value)
    assert 0 < least <= np.min(values)
