"""The choice of cuts for a cluster."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate import Cluster, Graph, Problem, solve  # noqa: E402
from situate.bounds.any_cut import least_in_any_cut  # noqa: E402
from situate.data.cuts import Cuts, parse_cuts  # noqa: E402
from situate.data.graph import Op  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from situate.solvers.cut_choice import CutStep, choose_cuts  # noqa: E402
from situate.torch_capture import trace_step  # noqa: E402
from tests.torch_capture.cuts.cut_steps import (  # noqa: E402
    chosen,
    devices,
    homes,
    language_head,
    large_batch,
    long_context,
    mixture,
    transformer,
    two_nodes,
    wide_layers,
)
from tests.torch_capture.cuts.networks import decoder  # noqa: E402

UNITS = {"heads": [8, 8], "features": [24], "sequence": [16]}


def problem(cuts: Cuts | None, cluster: str = "identical:4", price: float = 0.0) -> Problem:
    """One op of 8 seconds, or its parts, which take `price` more each."""
    count = len(cuts.cuts[0].shares) if cuts else 1
    parts = [None] if cuts is None else range(count)
    ops = [
        Op(f"op{k}", seconds={"*": 8 / count + price * (cuts is not None)}, part=k) for k in parts
    ]
    return Problem(Graph("step", tuple(ops), cuts=cuts), Cluster.find(cluster))


# The best plan decides, and whole ops stay where no cut pays.
def test_the_cuts_with_the_shortest_step_are_chosen() -> None:
    chosen = choose_cuts(CutStep(problem, UNITS)).problem
    assert len(chosen.graph.cuts.cuts[0].shares) == 4


# Parts of 3:1 end at once, and equal parts may be asked for.
def test_unequal_devices_get_shares_by_speed() -> None:
    def by_speed(cuts: Cuts | None) -> Problem:
        shares = cuts.cuts[0].shares if cuts else (1,)
        work = [12 * share // sum(shares) for share in shares]
        ops = [
            Op(f"op{k}", seconds={"d0": own, "d1": 3 * own}, part=k if cuts else None)
            for k, own in enumerate(map(float, work))
        ]
        return Problem(Graph("step", tuple(ops), cuts=cuts), Cluster.find("identical:2"))

    step = CutStep(by_speed, {"features": [24]})
    assert choose_cuts(step).problem.graph.cuts == parse_cuts(["features=3:1"])
    assert choose_cuts(step, unequal=False).problem.graph.cuts is None


def test_ops_stay_whole_where_no_cut_pays() -> None:
    assert (
        choose_cuts(CutStep(lambda cuts: problem(cuts, price=9.0), UNITS)).problem.graph.cuts
        is None
    )


def test_a_step_with_nothing_to_cut_is_refused() -> None:
    with pytest.raises(SituateError, match="no dimension to cut"):
        choose_cuts(CutStep(problem, {}))


def test_cuts_that_a_step_refuses_are_left_out() -> None:
    def fussy(cuts: Cuts | None) -> Problem:
        if cuts is not None and len(cuts.cuts[0].shares) == 4:
            raise SituateError("no four parts")
        return problem(cuts)

    assert choose_cuts(CutStep(fussy, UNITS)).problem.graph.cuts in (
        parse_cuts(["heads=2", "features=2"]),
        parse_cuts(["heads=2", "features=2", "sequence=2"]),
        parse_cuts(["sequence=2"]),
    )


def test_a_large_step_is_cut_in_fewer_ways(monkeypatch) -> None:
    tried = []

    def counted(cuts: Cuts | None) -> Problem:
        tried.append(cuts)
        return problem(cuts)

    choose_cuts(CutStep(counted, UNITS))
    every = len(tried)
    tried.clear()
    monkeypatch.setattr("situate.solvers.cut_choice.choose.MOST_OPS", 8)
    choose_cuts(CutStep(counted, UNITS))
    assert 0 < len(tried) < every


# Layouts that people write by hand come out of the search where they are best.
def test_columns_and_rows_with_sequence_parallel_norms() -> None:
    kinds, plan = chosen(transformer)
    assert kinds == {"heads": 4, "features": 4, "sequence": 4}
    assert [*kinds][-1] == "sequence"
    for name in ("0.q.weight", "0.out.weight", "1.up.weight", "1.down.weight"):
        assert [part for part, _ in homes(plan, name)] == [0, 1, 2, 3]
        assert homes(plan, name) == homes(plan, "1.up.weight")
    assert len({device for _, device in homes(plan, "1.up.weight")}) == 4


def test_a_vocabulary_parallel_head() -> None:
    kinds, plan = chosen(language_head)
    assert next(iter(kinds)) == "vocabulary"
    assert len({device for _, device in homes(plan, "head.weight")}) == 4
    # Parts exchange a maximum and a sum for each token, and no logits.
    sent = plan.problem.size[plan.schedule.tensor]
    assert sent.max() < 512 * 64_000


def test_expert_parallel() -> None:
    _, plan = chosen(mixture)
    kinds = {own.name: own.kind for own in plan.problem.graph.cut_parameters}
    assert kinds["up"] == kinds["down"] == "experts"
    assert len({device for _, device in homes(plan, "up")}) == 4
    assert homes(plan, "up") == homes(plan, "down")


# Copies of whole parameters would not fit.
def test_data_parallel_with_sharded_parameters() -> None:
    kinds, plan = chosen(large_batch, devices(memory=2_200_000_000), sliced=False)
    assert [*kinds] == ["batch", "features"]
    for name in ("0.up.weight", "1.down.weight"):
        assert len({device for _, device in homes(plan, name)}) == 4


def test_data_parallel_slices() -> None:
    kinds, plan = chosen(large_batch, devices(memory=2_200_000_000))
    assert not kinds
    slices = np.array([-1 if op.slice is None else op.slice for op in plan.problem.graph.ops])
    of_slice = [plan.schedule.placement[slices == s] for s in range(4)]
    assert sorted(int(np.bincount(own).argmax()) for own in of_slice) == [0, 1, 2, 3]


def test_context_parallel() -> None:
    kinds, plan = chosen(long_context)
    assert kinds == {"sequence": 4}
    attention = [
        device
        for op, device in zip(plan.problem.graph.ops, plan.schedule.placement.tolist(), strict=True)
        if "attention" in op.kind and op.phase == "forward"
    ]
    assert sorted(attention) == [0, 1, 2, 3]


# Within a node parts exchange results, and over a slow network only stages do.
def test_tensor_parallel_layers_in_a_pipeline_over_nodes() -> None:
    kinds, plan = chosen(wide_layers(1), two_nodes())
    assert kinds["features"] == 2
    assert homes(plan, "0.up.weight") == [(0, 0), (1, 1)]
    assert homes(plan, "3.up.weight") == [(0, 2), (1, 3)]


def test_slices_in_a_pipeline() -> None:
    step, machine = trace_step(wide_layers(4), "adam", "step"), two_nodes()
    choice = choose_cuts(CutStep.of(step, lambda graph: Problem(graph, machine)))
    slices = choice.problem.graph.slices
    assert choice.slices
    assert slices is not None
    assert slices.shares == (1, 1, 1, 1)
    plan = solve(choice.problem, evaluations=200)
    assert choice.least <= plan.value
    assert len({homes(plan, f"{layer}.up.weight")[0] for layer in range(4)}) == 4


# The bound over all cuts counts exchanges where the classes of the ops are known. Modules that run
# again have ops without classes.
def test_the_choice_has_a_bound_over_all_cuts() -> None:
    step, machine = trace_step(decoder, "adam", "step"), devices(bandwidth=300e6)
    known = CutStep.of(step, lambda graph: Problem(graph, machine))
    choice = choose_cuts(known)
    simple = least_in_any_cut(Problem(step.graph(), machine), 4)
    assert simple <= choice.least <= solve(choice.problem, evaluations=200).value


def test_modules_that_run_again_have_a_bound_without_exchanges() -> None:
    step, machine, again = trace_step(decoder, "adam", "step"), devices(2), ["layers.0"]
    choice = choose_cuts(CutStep.of(step, lambda graph: Problem(graph, machine), again))
    assert choice.least == least_in_any_cut(Problem(step.graph(again), machine), 2)
