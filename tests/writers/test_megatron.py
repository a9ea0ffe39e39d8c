"""Megatron-LM's layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from situate.report.slices.stages import NotAPipeline
from situate.writers.megatron import layout, write
from tests.writers.layered import layered_plan
from tests.writers.slices.staged import SPLIT, on, staged, staged_plan


@pytest.mark.parametrize(
    ("counts", "text"),
    [((6,), "Et*6L"), ((1, 1), "Et|tL"), ((3, 1, 2), "Et*3|t|t*2L"), ((0, 2, 0), "E|t*2|L")],
)
def test_layouts(counts: tuple[int, ...], text: str):
    assert layout(counts) == text


def test_the_layout_is_quoted_for_the_shell(tmp_path: Path):
    write(*layered_plan([0, 0, 0, 0, 0, 1, 1, 1, 1]), tmp_path / "run.sh")
    arguments = (tmp_path / "run.sh").read_text().splitlines()[-1]
    assert arguments == (
        "exec \"$@\" --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*4|t*2L'"
    )


@pytest.mark.parametrize(
    ("devices", "column"), [(SPLIT, "Et*2|t*2L"), ((0, 0, 1, 0, 1, 1), "Et|t|t|tL")]
)
def test_slices_are_micro_batches_and_stages_may_be_virtual(devices, column, tmp_path: Path):
    problem = on(staged())
    write(problem, staged_plan(problem, devices), tmp_path / "run.sh")
    assert (tmp_path / "run.sh").read_text().splitlines()[-1] == (
        'exec "$@" --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout '
        f"'{column}' --micro-batch-size 2 --global-batch-size 8"
    )


@pytest.mark.parametrize(
    ("slices", "devices", "why"),
    [
        (4, (0, 0, 1, 1, 0, 0), "on ranks 0, 1, 0, and Megatron-LM deals them out in turn"),
        (3, (0, 0, 1, 0, 1, 1), "in groups of 2, one a device, and 3 are no multiple"),
    ],
)
def test_stages_that_it_does_not_run_are_refused(slices, devices, why, tmp_path: Path):
    problem = on(staged(slices))
    with pytest.raises(NotAPipeline, match=why):
        write(problem, staged_plan(problem, devices), tmp_path / "run.sh")
    assert not (tmp_path / "run.sh").exists()
