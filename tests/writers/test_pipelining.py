"""The stages and the schedule that torch.distributed.pipelining loads and runs."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

from situate.data.cluster import Cluster
from situate.data.graph import Op
from situate.data.problem import Problem
from situate.errors import PlanError, SituateError
from situate.report.slices.stages import NotAPipeline
from situate.writers.pipelining import write
from tests.writers.slices.staged import SPLIT, on, staged, staged_plan, weights_last

LOOPED = (0, 0, 1, 0, 1, 1)
FOLDED = (0, 0, 1, 1, 0, 0)


def test_stages_name_their_modules_and_ranks(tmp_path: Path):
    problem = on(staged())
    write(problem, staged_plan(problem, FOLDED), tmp_path / "stages.json")
    assert json.loads((tmp_path / "stages.json").read_text()) == {
        "stages": [["embed", "layers.0"], ["layers.1", "layers.2"], ["layers.3", "head"]],
        "split_points": ["layers.1", "layers.3"],
        "ranks": [0, 1, 0],
        "devices": ["gpu0", "gpu1"],
        "microbatches": 4,
        "scale_grads": True,
        "schedule": "stages.csv",
    }


def test_the_schedule_is_the_plans_own_a_line_a_rank(tmp_path: Path):
    problem = on(staged())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write(problem, staged_plan(problem), tmp_path / "stages.json")
    assert (tmp_path / "stages.csv").read_text().splitlines() == [
        "0F0,0F1,0F2,0F3,0B0,0B1,0B2,0B3",
        "1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3",
    ]


def test_gradients_of_weights_that_wait_are_actions_of_their_own(tmp_path: Path):
    problem = on(staged())
    write(problem, staged_plan(problem, SPLIT, weights_last), tmp_path / "stages.json")
    first, second = (tmp_path / "stages.csv").read_text().splitlines()
    assert first == "0F0,0F1,0F2,0I0,0F3,0W0,0B1,0B2,0B3"
    assert second == "1F0,1I0,1F1,1I1,1F2,1I2,1F3,1I3,1W0,1W1,1W2,1W3"


def test_a_loss_that_is_a_sum_leaves_gradients_as_they_are(tmp_path: Path):
    problem = on(staged(loss="sum"))
    write(problem, staged_plan(problem), tmp_path / "stages.json")
    assert json.loads((tmp_path / "stages.json").read_text())["scale_grads"] is False


def test_plans_that_are_no_pipeline_are_refused_where_they_break(tmp_path: Path):
    problem = on(staged())
    plan = staged_plan(problem)
    moved = next(j for j, op in enumerate(problem.graph.ops) if op.name == "slice2/layers.1/mm")
    plan.placement[[moved, moved + 1]] = 1
    plan.placement[
        [j for j, op in enumerate(problem.graph.ops) if "slice2/layers.1" in op.name]
    ] = 1
    with pytest.raises(NotAPipeline, match=r"'layers\.1' runs slice 0 on 'gpu0' and slice 2 on"):
        write(problem, plan, tmp_path / "stages.json")
    with pytest.raises(NotAPipeline, match="all slices run on one device"):
        write(problem, staged_plan(problem, [0] * 6), tmp_path / "stages.json")
    unequal = on(staged(shares=(3, 2, 2, 1)))
    with pytest.raises(PlanError, match="slices 3:2:2:1 are of several sizes"):
        write(unequal, staged_plan(unequal), tmp_path / "stages.json")
    assert not list(tmp_path.iterdir())


def test_a_file_that_would_be_the_schedule_is_refused(tmp_path: Path):
    problem = on(staged())
    with pytest.raises(SituateError, match=r"stages\.csv.*another ending, such as \.json"):
        write(problem, staged_plan(problem), tmp_path / "stages.csv")


def test_pytorch_runs_the_plan_and_accumulates_the_same_gradients(tmp_path: Path):
    """Two processes, three plans: one stage a device, two in turn with weights apart, and one that
    comes back."""
    torch = pytest.importorskip("torch")
    from situate import capture
    from situate.data.slices import Slices
    from tests.writers.ranks import start_ranks
    from tests.writers.slices.chain_model import BATCH, build, run_rank

    graph = capture(build, optimizer="sgd", slices=Slices((1, 1, 1, 1)))
    problem = Problem(graph, Cluster.find("k80-2"))
    files = [f"{i}.json" for i in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for file, devices in zip(files, (SPLIT, LOOPED, FOLDED), strict=True):
            key = weights_apart if devices is LOOPED else None
            write(problem, staged_plan(problem, devices, key), tmp_path / file)
    assert "W" in (tmp_path / "1.csv").read_text()
    start_ranks(run_rank, (str(tmp_path), files), 2)

    model, (x, y), loss = build()
    batches = zip(x.split(BATCH // 4), y.split(BATCH // 4), strict=True)
    expected = [loss(model, *batch) for batch in batches]
    sum(item / 4 for item in expected).backward()
    for file in files:
        ranks = [torch.load(tmp_path / f"{file}.{rank}") for rank in range(2)]
        losses = [loss for result, _ in ranks for loss in result]
        torch.testing.assert_close(losses, [item.detach() for item in expected])
        for name, value in model.named_parameters():
            (gradient,) = (grads[name] for _, grads in ranks if grads[name] is not None)
            torch.testing.assert_close(gradient, value.grad, rtol=1e-12, atol=1e-15)


def weights_apart(op: Op) -> float:
    """Gradients of weights, which are products and sums over samples, wait for all others."""
    late = op.name.endswith(("mm#2", "sum"))
    return 1.0 if op.phase == "forward" else 2.0 if late else 0.0
