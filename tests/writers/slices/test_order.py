"""Orders of a pipeline's passes: a plan's, and those that tools run."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from situate.data.slices import Slices
from situate.errors import SituateError
from situate.report.slices.stages import NotAPipeline
from situate.writers.slices.order import (
    csv_bytes,
    csv_path,
    followers,
    in_order,
    merged,
    one_f_one_b,
    warn_of_axes,
)
from situate.writers.slices.passes import Pass
from tests.writers.slices.staged import on, staged


def row(text: str) -> list[Pass]:
    return [Pass(int(name[0]), name[1], int(name[2:])) for name in text.split()]


def waiting(stages: int, slices: int) -> dict[Pass, set[Pass]]:
    graph = staged(slices)
    return followers(graph, [None] * len(graph.ops), stages, slices)


def test_the_earliest_goes_first_and_none_before_what_it_waits_for():
    moment = {Pass(0, "F", 1): -1.0, Pass(1, "B", 0): -5.0}
    assert in_order(waiting(2, 2), moment) == row("0F1 0F0 1F0 1B0 0B0 1F1 1B1 0B1")


def test_every_stage_has_a_backward_pass_of_every_slice():
    result = in_order(waiting(3, 2), {})
    assert len(result) == len(set(result)) == 12


def test_rows_keep_their_order():
    rows = one_f_one_b(2, 3)
    result = merged(waiting(2, 3), rows)
    assert [item for item in result if item.stage == 1] == rows[1]


def test_rows_that_wait_for_one_another_are_refused():
    with pytest.raises(NotAPipeline, match="waits for slices that wait for it"):
        merged(waiting(2, 2), [row("0B0 0F0")])


def test_one_f_one_b_is_that_of_the_paper():
    assert one_f_one_b(2, 4) == [
        row("0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3"),
        row("1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"),
    ]


@pytest.mark.parametrize(("ranks", "slices", "chunks"), [(2, 4, 2), (4, 8, 3), (4, 4, 2)])
def test_the_interleaved_schedule_is_torchs(ranks: int, slices: int, chunks: int):
    pytest.importorskip("torch")
    from torch.distributed.pipelining.schedules import ScheduleInterleaved1F1B

    own = object.__new__(ScheduleInterleaved1F1B)  # without processes
    own.n_local_stages, own.pp_group_size = chunks, ranks
    own.microbatches_per_round, own._n_microbatches = ranks, slices
    for rank, result in enumerate(one_f_one_b(ranks, slices, chunks)):
        passes = own._calculate_single_rank_operations(rank)
        assert [str(item) for item in passes if item is not None] == list(map(str, result))


# The file of a schedule.
def test_a_rank_is_a_line():
    rows = [[Pass(0, "F", 0), Pass(0, "B", 0)], [Pass(1, "F", 0)]]
    assert csv_bytes(rows) == b"0F0,0B0\n1F0\n"


def test_it_is_beside_the_stages():
    assert csv_path("there/stages.json") == Path("there/stages.csv")
    assert csv_path("stages") == Path("stages.csv")
    with pytest.raises(SituateError, match="give the stages another ending"):
        csv_path("stages.csv")


def test_inputs_that_are_cut_along_another_dimension_are_said():
    graph = staged(2)
    slices = Slices((2, 2), axes={"0": 0, "mask": 1, "table": None})
    with pytest.warns(UserWarning, match=r"does not cut 'mask', 'table' along dimension 0"):
        warn_of_axes(on(dataclasses.replace(graph, slices=slices)))
