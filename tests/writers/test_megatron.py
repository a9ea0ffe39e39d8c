"""Megatron-LM's layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from situate.writers.megatron import layout, write
from tests.writers.layered import placed


@pytest.mark.parametrize(
    ("counts", "text"),
    [((6,), "Et*6L"), ((1, 1), "Et|tL"), ((3, 1, 2), "Et*3|t|t*2L")],
)
def test_layouts(counts: tuple[int, ...], text: str):
    assert layout(counts) == text


def test_the_layout_is_quoted_for_the_shell(tmp_path: Path):
    write(*placed([0, 0, 0, 0, 0, 1, 1, 1, 1]), tmp_path / "run.sh")
    arguments = (tmp_path / "run.sh").read_text().splitlines()[-1]
    assert arguments == (
        "exec \"$@\" --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*4|t*2L'"
    )
