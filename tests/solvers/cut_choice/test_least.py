"""The bound over all cuts that counts the ops between parts."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate import Cluster, Graph, Problem  # noqa: E402
from situate.bounds.any_cut import least_in_any_cut  # noqa: E402
from situate.data.cluster import Device, Link  # noqa: E402
from situate.data.cuts import Cut, Cuts  # noqa: E402
from situate.data.graph import Op, Tensor  # noqa: E402
from situate.data.letter_graph import (  # noqa: E402
    SUM,
    ClassOption,
    LetterGraph,
    LetterOp,
    Passage,
)
from situate.data.topology import inputs_of_ops  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from situate.solvers.cut_choice.candidates import candidates  # noqa: E402
from situate.solvers.cut_choice.divisions import Division  # noqa: E402
from situate.solvers.cut_choice.least import MEANS, LeastOverCuts, Mean  # noqa: E402
from situate.torch_capture import TracedStep, trace_step  # noqa: E402
from tests.torch_capture.cuts.cut_steps import mixture  # noqa: E402
from tests.torch_capture.cuts.networks import NETWORKS  # noqa: E402

LAUNCH = 1e-6

HALF = Mean(0.5, 1.0)


def cluster(speeds: tuple[float, ...] = (1, 1, 1, 1), launch: float = LAUNCH) -> Cluster:
    """GPUs of these speeds, which reach one another in no time."""
    gpus = tuple(
        Device(f"gpu{k}", flops={"float32": s * 1e11}, bandwidth=s * 1e10, launch=launch)
        for k, s in enumerate(speeds)
    )
    return Cluster("gpus", gpus, (Link("*", "*", bandwidth=1e15, latency=0.0),))


def products(sizes: tuple[int, ...] = (0, 0)) -> tuple[Problem, LetterGraph]:
    """A chain of products of about a millisecond. Each one's columns are the rows of the next one's
    weights, so the second makes partial results, and a loss reads the last result whole."""
    ops = [Op(f"op{k}", flops=10**8, dtype="float32") for k in range(len(sizes))]
    ops.append(Op("loss", flops=1, dtype="float32"))
    tensors = [Tensor(f"t{k}", k, 8, (k + 1,)) for k in range(len(sizes))]
    options = [ClassOption(0, (), (0,)), ClassOption(0, (0,), (SUM,))]
    letter_ops = [
        LetterOp(
            (k,),
            "",
            ((k - 1, 0),) if k else (),
            (size,),
            (options[min(k, 1)],),
            passages=(Passage(size),) if k else (),
        )
        for k, size in enumerate(sizes)
    ]
    last = len(sizes)
    letter_ops.append(
        LetterOp((last,), "", ((last - 1, 0),), (8,), (), passages=(Passage(sizes[-1]),))
    )
    problem = Problem(Graph("chain", tuple(ops), tuple(tensors)), cluster())
    return problem, LetterGraph(tuple(letter_ops), ("features",), (64,), (0,))


# Two products in four parts each, three additions, and the loss.
def test_parts_launch_ops_and_partial_results_are_added_up() -> None:
    problem, letters = products()
    work = float(problem.seconds[0, 0]) - LAUNCH
    load = (2 * (work + 4 * LAUNCH) + 3 * LAUNCH + LAUNCH) / 4
    path = 2 * (work / 4 + LAUNCH) + LAUNCH + LAUNCH
    bounds = LeastOverCuts(problem, letters, 4)
    assert bounds.seconds(HALF) == pytest.approx((load + path) / 2, rel=1e-4)


# Additions of a large result take longer than the parts save, so the second product is whole.
def test_large_partial_results_count() -> None:
    small, large = (LeastOverCuts(*products((0, size)), 4) for size in (0, 10**7))
    assert large.seconds(HALF) > 1.3 * small.seconds(HALF)


# Ops that clip gradients have no letters. Their parts may follow one another, too.
def test_ops_without_letters_are_on_the_path_in_parts() -> None:
    problem, letters = products((0, 0, 0))
    work = float(problem.seconds[0, 0]) - LAUNCH
    bounds = LeastOverCuts(problem, replace(letters, ops=letters.ops[:2]), 4)
    assert bounds.seconds(Mean(1e-6, 1.0)) == pytest.approx(3 * work / 4 + 4 * LAUNCH, rel=1e-4)


# A chain beside a long op: parts of the chain add launches to the load, and whole ops are a long
# path.
def test_launches_of_further_parts_count() -> None:
    ops = [Op(f"op{k}", flops=10**5, dtype="float32") for k in range(3)]
    ops.append(Op("long", flops=4 * 10**5, dtype="float32"))
    tensors = [Tensor(f"t{k}", k, 8, (k + 1,)) for k in range(2)]
    problem = Problem(Graph("chain", tuple(ops), tuple(tensors)), cluster((1, 1)))
    inputs = [(), (0,), (0,)]
    letter_ops = [
        LetterOp(
            (k,),
            "",
            ((k - 1, 0),) if k else (),
            (0,),
            (ClassOption(0, own, (0,)),),
            passages=(Passage(0),) if k else (),
        )
        for k, own in enumerate(inputs)
    ]
    letter_ops.append(LetterOp((3,), "", (), (0,), (ClassOption(1, (), (1,)),)))
    letters = LetterGraph(tuple(letter_ops), ("batch", "batch"), (64, 64), (0, 1))
    bounds = LeastOverCuts(problem, letters, 2)
    least = max(bounds.seconds(Mean(q, 1.0)) for q in (0.5, 0.7, 0.9))
    assert 1.01 * least_in_any_cut(problem, 2) < least <= problem.seconds[:3, 0].sum()


@cache
def traced(name: str) -> TracedStep:
    return trace_step({**NETWORKS, "mixture": mixture}[name], "adam", name)


@cache
def cut_graphs(name: str) -> list[Graph]:
    """The step whole,  in the cuts that planning tries, and in those of single modules and in
    unequal shares."""
    step = traced(name)
    divisions = [Division.equal(count) for count in (2, 3, 4)]
    tried = [*candidates(divisions, step.units)]
    modules = dict.fromkeys(own.module for own in step.classes if own.module)
    tried += [Cuts((Cut(module, (1, 1)),)) for module in [*modules][:4]]
    tried += [Cuts((Cut(kind, (2, 1)),), "tree") for kind in step.units]
    graphs = [step.graph()]
    for cuts in tried:
        with suppress(SituateError):
            graphs.append(step.graph(cuts=cuts))
    return graphs


def longest_data_path(problem: Problem) -> float:
    """Seconds, each op on its fastest device and transfers free."""
    seconds, end = problem.seconds.min(axis=1), np.zeros(problem.n)
    inputs, producer = inputs_of_ops(problem), problem.producer
    for op in problem.graph.program_order:
        before = (end[producer[t]] for t in inputs[op] if not problem.signal[t])
        end[op] = seconds[op] + max(before, default=0.0)
    return float(end.max())


def load_and_path(problem: Problem) -> tuple[float, float]:
    """Seconds of both for a cut step, each op on the device that is best for it.

    The devices have equal weights: they are alike.
    """
    load = problem.seconds.min(axis=1).sum() / problem.d
    return float(load), longest_data_path(problem)


# No cut step has less load and a shorter path than its bound says, so no plan of it is shorter.
@pytest.mark.parametrize("name", [*NETWORKS, "mixture"])
@pytest.mark.parametrize("launch", [1e-5, 1e-7])
def test_no_cut_step_has_a_smaller_mean(name, launch) -> None:
    problems = [Problem(graph, cluster(launch=launch)) for graph in cut_graphs(name)]
    assert len(problems) > 5
    bounds = LeastOverCuts(problems[0], traced(name).letters, 4)
    assert bounds.simple_seconds() == least_in_any_cut(problems[0], 4)
    steps = [load_and_path(problem) for problem in problems]
    for mean in MEANS:
        least = min(mean.load * load + (1 - mean.load) * path for load, path in steps)
        assert 0 < bounds.seconds(mean) <= least


# Exchanges make up much of a decoder in parts, which the load and the path alone do not see.
def test_exchanges_raise_the_bound_of_a_decoder() -> None:
    step = traced("decoder")
    whole = Problem(step.graph(), cluster(launch=3e-7))
    bounds = LeastOverCuts(whole, step.letters, 4)
    assert max(map(bounds.seconds, MEANS)) > 1.1 * least_in_any_cut(whole, 4)


def test_slow_devices_do_not_raise_the_bound() -> None:
    step = traced("perceptron")
    fast, mixed = (
        LeastOverCuts(Problem(step.graph(), cluster(speeds)), step.letters, 2)
        for speeds in ((1, 1), (1, 1, 0.1))
    )
    assert all(mixed.seconds(mean) <= fast.seconds(mean) for mean in MEANS)
