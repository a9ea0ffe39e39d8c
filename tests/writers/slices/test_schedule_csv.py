"""The file of a schedule."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from situate.data.slices import Slices
from situate.errors import SituateError
from situate.writers.slices.passes import Pass
from situate.writers.slices.schedule_csv import csv_bytes, csv_path, warn_of_axes
from tests.writers.slices.staged import on, staged


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
