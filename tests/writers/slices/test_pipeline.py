"""Plans of slices as pipelines."""

from __future__ import annotations

import dataclasses
import warnings
from contextlib import nullcontext
from importlib import import_module

import pytest

from situate.data.graph import Graph, Tensor
from situate.errors import PlanError
from situate.report.slices.stages import NotAPipeline
from situate.writers.slices.pipeline import (
    check_in_turn,
    equal_slices,
    planned_rows,
    slice_pipeline,
    warn_of_one_f_one_b,
)
from tests.solvers.families import chain, devices
from tests.writers.slices.staged import SPLIT, backward_first, on, staged, staged_plan, weights_last

LOOPED = (0, 0, 1, 0, 1, 1)
FOLDED = (0, 0, 1, 1, 0, 0)


def with_reader(graph: Graph, tensor: str, reader: str) -> Graph:
    """The graph with one more op that reads a tensor."""
    names, result = [op.name for op in graph.ops], list(graph.tensors)
    at = next(i for i, item in enumerate(result) if item.name == tensor)
    read = (*result[at].consumers, names.index(reader))
    result[at] = Tensor(tensor, result[at].producer, result[at].size, read)
    return dataclasses.replace(graph, tensors=tuple(result))


@pytest.mark.parametrize(
    ("placement", "ranks", "chunks"),
    [
        (SPLIT, (0, 1), 1),
        (LOOPED, (0, 1, 0, 1), 2),
        (FOLDED, (0, 1, 0), 0),
        ((1, 1, 1, 0, 0, 0), (0, 1), 1),
    ],
)
def test_ranks_are_numbered_by_their_first_stage(placement, ranks, chunks):
    problem = on(staged())
    result = slice_pipeline(problem, staged_plan(problem, placement))
    assert (result.ranks, result.chunks) == (ranks, chunks)
    assert result.devices[0] == placement[0]
    assert (result.slices, result.samples) == (4, 2)


def test_every_rank_has_every_pass_of_its_stages_once():
    problem = on(staged())
    plan = staged_plan(problem, FOLDED)
    rows = planned_rows(problem, plan, slice_pipeline(problem, plan))
    for rank, stages in enumerate([(0, 2), (1,)]):
        expected = {f"{s}{kind}{part}" for s in stages for kind in "FB" for part in range(4)}
        results = [str(item).replace("I", "B") for item in rows[rank] if item.kind != "W"]
        assert sorted(results) == sorted(expected)


def test_what_a_stage_must_hand_through_is_said():
    graph = with_reader(staged(), "slice0/embed/mm", "slice0/head/mm")
    problem = on(graph, 3)
    with pytest.warns(UserWarning, match=r"stages behind that one read 'slice0/embed/mm'"):
        slice_pipeline(problem, staged_plan(problem, (0, 0, 1, 1, 2, 2)))


def test_parameters_of_several_stages_are_said():
    problem = on(with_reader(staged(), "embed.weight", "slice0/head/mm"))
    with pytest.warns(UserWarning, match=r"several stages read 'embed\.weight'"):
        slice_pipeline(problem, staged_plan(problem))


def test_a_step_that_takes_its_batch_whole_is_refused():
    problem = on(staged())
    assert equal_slices(problem, "a pipeline") == (4, 2)
    with pytest.raises(PlanError, match="takes its batch whole, and a pipeline goes by slices"):
        equal_slices(type(problem)(chain(2), devices(1)), "a pipeline")


def test_stages_that_are_not_in_turn_are_refused():
    problem = on(staged())
    check_in_turn(slice_pipeline(problem, staged_plan(problem, LOOPED)), "a tool")
    with pytest.raises(NotAPipeline, match="on ranks 0, 1, 0, and a tool deals them out in turn"):
        check_in_turn(slice_pipeline(problem, staged_plan(problem, FOLDED)), "a tool")


@pytest.mark.parametrize(("key", "message"), [(backward_first, False), (weights_last, True)])
def test_what_one_f_one_b_comes_to_is_said_where_it_is_not_the_plan(key, message):
    problem = on(staged())
    plan = staged_plan(problem, LOOPED, key)
    with warnings.catch_warnings(record=True) as lines:
        warnings.simplefilter("always")
        warn_of_one_f_one_b(problem, plan, slice_pipeline(problem, plan))
    texts = [str(line.message) for line in lines]
    assert any("predicted step 42.0 s (the plan's 39.0 s)" in text for text in texts) == message


@pytest.mark.filterwarnings("ignore:of the pipeline")
@pytest.mark.parametrize("target", ["pipelining", "deepspeed", "torchtitan", "megatron"])
def test_only_tools_that_number_layers_ask_for_a_list_of_them(target, tmp_path):
    problem = on(staged(paths=("stem", "body", "tail", "head")))
    plan = staged_plan(problem, (0, 0, 1, 1))
    write = import_module(f"situate.writers.{target}").write
    refused = pytest.raises(PlanError, match="names no layers, which a pipeline is made of")
    with refused if target in ("torchtitan", "megatron") else nullcontext():
        write(problem, plan, tmp_path / "stages")
