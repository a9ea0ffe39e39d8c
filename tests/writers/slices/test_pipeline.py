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
from tests.writers.slices.staged import SPLIT, backward_first, on, planned, staged, weights_last

LOOPED = (0, 0, 1, 0, 1, 1)
FOLDED = (0, 0, 1, 1, 0, 0)


def with_reader(graph: Graph, tensor: str, reader: str) -> Graph:
    """The graph with one more op that reads a tensor."""
    names, made = [op.name for op in graph.ops], list(graph.tensors)
    at = next(i for i, each in enumerate(made) if each.name == tensor)
    read = (*made[at].consumers, names.index(reader))
    made[at] = Tensor(tensor, made[at].producer, made[at].size, read)
    return dataclasses.replace(graph, tensors=tuple(made))


@pytest.mark.parametrize(
    ("placed", "ranks", "chunks"),
    [
        (SPLIT, (0, 1), 1),
        (LOOPED, (0, 1, 0, 1), 2),
        (FOLDED, (0, 1, 0), 0),
        ((1, 1, 1, 0, 0, 0), (0, 1), 1),
    ],
)
def test_ranks_are_numbered_by_their_first_stage(placed, ranks, chunks):
    problem = on(staged())
    found = slice_pipeline(problem, planned(problem, placed))
    assert (found.ranks, found.chunks) == (ranks, chunks)
    assert found.devices[0] == placed[0]
    assert (found.slices, found.samples) == (4, 2)


def test_every_rank_has_every_pass_of_its_stages_once():
    problem = on(staged())
    plan = planned(problem, FOLDED)
    rows = planned_rows(problem, plan, slice_pipeline(problem, plan))
    for rank, stages in enumerate([(0, 2), (1,)]):
        expected = {f"{s}{kind}{part}" for s in stages for kind in "FB" for part in range(4)}
        found = [str(each).replace("I", "B") for each in rows[rank] if each.kind != "W"]
        assert sorted(found) == sorted(expected)


def test_what_a_stage_must_hand_through_is_said():
    graph = with_reader(staged(), "slice0/embed/mm", "slice0/head/mm")
    problem = on(graph, 3)
    with pytest.warns(UserWarning, match=r"stages behind that one read 'slice0/embed/mm'"):
        slice_pipeline(problem, planned(problem, (0, 0, 1, 1, 2, 2)))


def test_parameters_of_several_stages_are_said():
    problem = on(with_reader(staged(), "embed.weight", "slice0/head/mm"))
    with pytest.warns(UserWarning, match=r"several stages read 'embed\.weight'"):
        slice_pipeline(problem, planned(problem))


def test_a_step_that_takes_its_batch_whole_is_refused():
    problem = on(staged())
    assert equal_slices(problem, "a pipeline") == (4, 2)
    with pytest.raises(PlanError, match="takes its batch whole, and a pipeline goes by slices"):
        equal_slices(type(problem)(chain(2), devices(1)), "a pipeline")


def test_stages_that_are_not_in_turn_are_refused():
    problem = on(staged())
    check_in_turn(slice_pipeline(problem, planned(problem, LOOPED)), "a tool")
    with pytest.raises(NotAPipeline, match="on ranks 0, 1, 0, and a tool deals them out in turn"):
        check_in_turn(slice_pipeline(problem, planned(problem, FOLDED)), "a tool")


@pytest.mark.parametrize(("key", "said"), [(backward_first, False), (weights_last, True)])
def test_what_one_f_one_b_comes_to_is_said_where_it_is_not_the_plan(key, said):
    problem = on(staged())
    plan = planned(problem, LOOPED, key)
    with warnings.catch_warnings(record=True) as lines:
        warnings.simplefilter("always")
        warn_of_one_f_one_b(problem, plan, slice_pipeline(problem, plan))
    texts = [str(line.message) for line in lines]
    assert any("predicted step 42.0 s (the plan's 39.0 s)" in text for text in texts) == said


@pytest.mark.filterwarnings("ignore:of the pipeline")
@pytest.mark.parametrize("target", ["pipelining", "deepspeed", "torchtitan", "megatron"])
def test_only_tools_that_number_layers_ask_for_a_list_of_them(target, tmp_path):
    problem = on(staged(paths=("stem", "body", "tail", "head")))
    plan = planned(problem, (0, 0, 1, 1))
    write = import_module(f"situate.writers.{target}").write
    refused = pytest.raises(PlanError, match="names no layers, which a pipeline is made of")
    with refused if target in ("torchtitan", "megatron") else nullcontext():
        write(problem, plan, tmp_path / "stages")
